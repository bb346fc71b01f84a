/* SPDX-License-Identifier: Apache-2.0 */
/* moe_dispatch on the CPU. All ranks learn how many slots of each name each expert; from that each knows where its own
 * slots stand, and which of the others' rows are for it. Then rows go, sorted by expert, in pieces that have room in a
 * half. */
#include "backends/cpu/comm/copy.h"
#include "spec/places/moe_dispatch.h"

/* Of rank s and expert j of all, by s * experts + j. */
typedef struct dispatch {
    const trine_call *call;
    int ranks, rank;
    int64_t slots, k, n, e, p, experts, capacity, width;
    int32_t *counts; /* the rank's slots that name the expert */
    int32_t *before; /* rows of that rank in front of those, in the order of experts; one more at the end */
    int32_t *place;  /* where the first of them stands, at the expert's rank */
    int32_t *order;  /* this rank's slots that are taken, in the order of experts */
} dispatch;

static size_t ints_of(const dispatch *d) { return (size_t)d->ranks * ((size_t)d->experts * 3 + 1) + (size_t)d->slots; }

static dispatch dispatch_of(const trine_call *call) {
    const int64_t *dim = call->dim;
    dispatch d = { .call = call,
                   .ranks = (int)dim[MOE_DISPATCH_DIM_RANKS],
                   .slots = dim[MOE_DISPATCH_DIM_T] * dim[MOE_DISPATCH_DIM_K],
                   .k = dim[MOE_DISPATCH_DIM_K],
                   .n = dim[MOE_DISPATCH_DIM_N],
                   .e = dim[MOE_DISPATCH_DIM_E],
                   .p = dim[MOE_DISPATCH_DIM_P],
                   .capacity = ((const trine_moe_dispatch_args *)call->args)->capacity,
                   .width = (int64_t)trine_dtype_size(call->type[MOE_DISPATCH_TYPE_T]) };
    d.experts = d.ranks * d.e;
    if (call->workspace == NULL) return d;
    d.counts = call->workspace;
    d.before = d.counts + d.ranks * d.experts;
    d.place = d.before + d.ranks * (d.experts + 1);
    d.order = d.place + d.ranks * d.experts;
    return d;
}

/* The expert of a slot; -1: none. */
static inline int64_t expert_of(const dispatch *d, int64_t slot) {
    const trine_tensor *t = &d->call->tensor[MOE_DISPATCH_EXPERTS];
    const int64_t at = slot / d->k * t->stride[0] + slot % d->k,
                  id = t->dtype == TRINE_I64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
    return id >= 0 && id < d->experts ? id : -1;
}

static void count(const dispatch *d) {
    int32_t *own = d->counts + d->rank * d->experts;
    for (int64_t j = 0; j < d->experts; j++) own[j] = 0;
    for (int64_t i = 0; i < d->slots; i++) {
        const int64_t j = expert_of(d, i);
        if (j >= 0) own[j]++;
    }
}

/* Every rank gets the counts of all; the first step of the call. */
static trine_status exchange_counts(const dispatch *d) {
    const int64_t size = (int64_t)sizeof(int32_t), room = copy_room(d->call, TRINE_I32, 1);
    for (int64_t at = 0; at == 0 || at < d->experts; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(d->call, &half);
        if (status != TRINE_OK) return status;
        const int64_t bytes = (d->experts - at < room ? d->experts - at : room) * size;
        copy_row(d->call, half, (const char *)(d->counts + d->rank * d->experts + at), bytes);
        status = trine_cpu_group_post(d->call, at == 0, 1);
        if (status != TRINE_OK) return status;
        copies all = { .rows = d->ranks, .bytes = bytes };
        for (int r = 0; r < d->ranks; r++) {
            all.from[r] = r == d->rank ? half : trine_cpu_group_half(d->call, r);
            all.to[r] = (char *)(d->counts + r * d->experts + at);
        }
        copy_rows(d->call, &all);
    }
    return TRINE_OK;
}

/* Of all counts what is said of experts, and where the slots of each rank stand. */
static void add_up(const dispatch *d) {
    const trine_call *call = d->call;
    int32_t *counts = call->tensor[MOE_DISPATCH_COUNTS].data, *offsets = call->tensor[MOE_DISPATCH_OFFSETS].data,
            *needed = call->present >> MOE_DISPATCH_NEEDED & 1 ? call->tensor[MOE_DISPATCH_NEEDED].data : NULL;
    for (int s = 0; s < d->ranks; s++) d->before[s * (d->experts + 1)] = 0;
    int64_t start = 0;
    offsets[0] = 0;
    for (int64_t j = 0; j < d->experts; j++) {
        const int64_t most = d->capacity > 0 ? d->capacity : INT32_MAX;
        int64_t all = 0, taken = 0;
        if (j % d->e == 0) start = 0;
        for (int s = 0; s < d->ranks; s++) {
            const int64_t here = d->counts[s * d->experts + j], left = most - taken, room = d->p - start - taken,
                          some = here < left ? here : left;
            int32_t *before = &d->before[s * (d->experts + 1) + j];
            d->place[s * d->experts + j] = (int32_t)(start + taken);
            before[1] = before[0] + (int32_t)(some < room ? some : room > 0 ? room : 0);
            taken += some;
            all += here;
        }
        start += taken;
        if (j / d->e == d->rank) {
            counts[j % d->e] = (int32_t)all;
            offsets[j % d->e + 1] = (int32_t)(start < d->p ? start : d->p);
        }
        if (needed && j % d->e == d->e - 1) needed[j / d->e] = (int32_t)start;
    }
    for (int r = 0; needed && d->e == 0 && r < d->ranks; r++) needed[r] = 0;
}

/* The slots that are taken, and where each stands. The counts of this rank are used up. */
static void put(const dispatch *d) {
    const trine_tensor *places = &d->call->tensor[MOE_DISPATCH_PLACES];
    int32_t *next = d->counts + d->rank * d->experts, *first = d->place + d->rank * d->experts,
            *before = d->before + d->rank * (d->experts + 1);
    for (int64_t j = 0; j < d->experts; j++) next[j] = 0;
    for (int64_t i = 0; i < d->slots; i++) {
        const int64_t j = expert_of(d, i);
        int32_t place = -1;
        if (j >= 0 && next[j] < before[j + 1] - before[j]) {
            place = (int32_t)(j / d->e * d->p + first[j] + next[j]);
            d->order[before[j] + next[j]++] = (int32_t)i;
        }
        ((int32_t *)places->data)[i / d->k * places->stride[0] + i % d->k] = place;
    }
}

/* A piece: of each rank's rows those from `first` on that have room, of each some columns. */
typedef struct piece {
    const dispatch *d;
    int64_t first, room, from, bytes, pitch; /* bytes of a row from byte `from` on; pitch: between rows of a half */
    char *half;
    int64_t begin[TRINE_MAX_RANKS + 1]; /* of each rank's rows for this one, among all of them in the piece */
    int64_t row[TRINE_MAX_RANKS];       /* the first of them, among those of its rank */
    const char *halves[TRINE_MAX_RANKS];
} piece;

/* The first row of a rank that is for rank r, or for one behind it. */
static int64_t row_for(const dispatch *d, int s, int r) { return d->before[s * (d->experts + 1) + r * d->e]; }
static int64_t rows_of(const dispatch *d, int s) { return row_for(d, s, d->ranks); }

static const char *token_of(const piece *c, int64_t row) {
    const trine_tensor *x = &c->d->call->tensor[MOE_DISPATCH_X];
    return (const char *)x->data + c->d->order[row] / c->d->k * x->stride[0] * c->d->width + c->from;
}

/* This rank's rows for others. */
static void give(const void *context, int64_t first, int64_t last, int thread) {
    const piece *c = context;
    const int64_t own = row_for(c->d, c->d->rank, c->d->rank), end = row_for(c->d, c->d->rank, c->d->rank + 1);
    (void)thread;
    for (int64_t i = first; i < last; i++)
        if (c->first + i < own || c->first + i >= end)
            memcpy(c->half + i * c->pitch, token_of(c, c->first + i), (size_t)c->bytes);
}

/* The last expert in front of which there are no more than so many rows of rank s: it has the next one. */
static int64_t expert_at(const dispatch *d, int s, int64_t row) {
    const int32_t *before = d->before + s * (d->experts + 1);
    int64_t low = d->rank * d->e, high = low + d->e;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (before[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Rows for this rank. */
static void take(const void *context, int64_t first, int64_t last, int thread) {
    const piece *c = context;
    const dispatch *d = c->d;
    const trine_tensor *y = &d->call->tensor[MOE_DISPATCH_Y];
    int s = 0;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        while (i >= c->begin[s + 1]) s++;
        const int64_t row = c->row[s] + i - c->begin[s], j = expert_at(d, s, row),
                      place = d->place[s * d->experts + j] + row - d->before[s * (d->experts + 1) + j];
        const char *from = s == d->rank ? token_of(c, row) : c->halves[s] + (row - c->first) * c->pitch;
        memcpy((char *)y->data + place * y->stride[0] * d->width + c->from, from, (size_t)c->bytes);
    }
}

static trine_status send_piece(piece *c) {
    const dispatch *d = c->d;
    trine_status status = trine_cpu_group_ready(d->call, &c->half);
    if (status != TRINE_OK) return status;
    const int64_t left = rows_of(d, d->rank) - c->first, rows = left < c->room ? left : c->room;
    if (rows > 0) cpu_shares(d->call, cpu_team(d->call, rows, rows * c->bytes), rows, give, c);
    if ((status = trine_cpu_group_post(d->call, false, 1)) != TRINE_OK) return status;
    for (int s = 0; s < d->ranks; s++) {
        const int64_t from = row_for(d, s, d->rank), to = row_for(d, s, d->rank + 1), end = c->first + c->room,
                      low = from > c->first ? from : c->first, high = to < end ? to : end;
        c->row[s] = low;
        c->begin[s + 1] = c->begin[s] + (high > low ? high - low : 0);
        c->halves[s] = trine_cpu_group_half(d->call, s);
    }
    const int64_t all = c->begin[d->ranks];
    if (all > 0) cpu_shares(d->call, cpu_team(d->call, all, all * c->bytes), all, take, c);
    return TRINE_OK;
}

/* Rows have room in a half as a whole, or some of their columns: bytes of each. */
static int64_t piece_bytes(const dispatch *d) {
    const int64_t row = d->n * d->width, half = trine_cpu_group_bytes(d->call) / 64 * 64;
    return row < half ? row : half;
}

static trine_status send_rows(const dispatch *d) {
    const int64_t row = d->n * d->width, most = piece_bytes(d);
    int64_t rows = 0;
    for (int s = 0; s < d->ranks; s++)
        if (rows_of(d, s) > rows) rows = rows_of(d, s);
    for (int64_t from = 0; from < row; from += most) {
        piece c = { .d = d, .from = from, .bytes = row - from < most ? row - from : most };
        c.pitch = cpu_round_up(c.bytes, 64);
        c.room = trine_cpu_group_bytes(d->call) / c.pitch;
        for (c.first = 0; c.first < rows; c.first += c.room) {
            const trine_status status = send_piece(&c);
            if (status != TRINE_OK) return status;
        }
    }
    return TRINE_OK;
}

static void clear(const void *context, int64_t first, int64_t last, int thread) {
    const dispatch *d = context;
    const trine_tensor *y = &d->call->tensor[MOE_DISPATCH_Y];
    const int64_t taken = ((const int32_t *)d->call->tensor[MOE_DISPATCH_OFFSETS].data)[d->e];
    (void)thread;
    for (int64_t i = first; i < last; i++)
        memset((char *)y->data + (taken + i) * y->stride[0] * d->width, 0, (size_t)(d->n * d->width));
}

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim, most = INT32_MAX / dim[MOE_DISPATCH_DIM_RANKS], k = dim[MOE_DISPATCH_DIM_K];
    if (k > 0 && dim[MOE_DISPATCH_DIM_T] > most / k) return "more than 2^31 - 1 slots";
    if (dim[MOE_DISPATCH_DIM_P] > most) return "more than 2^31 - 1 places";
    return dim[MOE_DISPATCH_DIM_E] > most - 1 ? "more than 2^31 - 1 experts" : NULL;
}

static size_t workspace(const trine_call *call) {
    const dispatch d = dispatch_of(call);
    return ints_of(&d) * sizeof(int32_t);
}

static trine_status launch(const trine_call *call) {
    dispatch d = dispatch_of(call);
    d.rank = trine_cpu_group_rank(call);
    count(&d);
    trine_status status = exchange_counts(&d);
    if (status != TRINE_OK) return status;
    add_up(&d);
    put(&d);
    const int64_t left = d.p - ((const int32_t *)call->tensor[MOE_DISPATCH_OFFSETS].data)[d.e];
    if (left > 0 && d.n > 0) cpu_shares(call, cpu_team(call, left, left * d.n * d.width), left, clear, &d);
    return send_rows(&d);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const dispatch d = dispatch_of(call);
    trine_kernel_edge(edges, MOE_DISPATCH_DIM_N, trine_cpu_group_bytes(call) / 64 * 64 / d.width);
    if (d.n > 0 && d.k > 0)
        trine_kernel_edge(edges, MOE_DISPATCH_DIM_T,
                          trine_cpu_group_bytes(call) / cpu_round_up(piece_bytes(&d), 64) / d.k);
}

CPU_KERNELS(moe_dispatch) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
