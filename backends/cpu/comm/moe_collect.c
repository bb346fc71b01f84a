/* SPDX-License-Identifier: Apache-2.0 */
/* moe_collect on the CPU. Every rank gets the places of all, and so all know in which order a rank's rows go: by token,
 * then by rank, then by slot. As many tokens as have room in the halves go at a time, and each is summed up whole, a
 * vector at a time, in the order of its slots. */
#include "backends/cpu/comm/copy.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/moe_collect.h"

typedef struct collect {
    const trine_call *call;
    int ranks, rank;
    int64_t t, k, p, n, width;
    int64_t columns, pitch, room; /* of a piece: most elements of a row, bytes from row to row, rows */
    const char **from;            /* of each slot of this rank's: where its row is, NULL if it has none */
    int32_t *places;              /* of all ranks */
    int32_t *row;                 /* of each slot of this rank's: where it is in its rank's half */
    int32_t *sent;                /* of the rows in this rank's half: which of x */
} collect;

static collect collect_of(const trine_call *call) {
    const int64_t *dim = call->dim, half = trine_cpu_group_bytes(call);
    collect c = { .call = call,
                  .ranks = (int)dim[MOE_COLLECT_DIM_RANKS],
                  .t = dim[MOE_COLLECT_DIM_T],
                  .k = dim[MOE_COLLECT_DIM_K],
                  .p = dim[MOE_COLLECT_DIM_P],
                  .n = dim[MOE_COLLECT_DIM_N],
                  .width = (int64_t)trine_dtype_size(call->type[MOE_COLLECT_TYPE_T]) };
    /* a half has room for all slots of a token */
    const int64_t most = half / (c.k > 0 ? c.k : 1), whole = most >= 64 ? most / 64 * 64 : most / c.width * c.width;
    c.columns = c.n * c.width <= whole ? c.n : whole / c.width;
    c.pitch = whole >= 64 && c.n > 0 ? cpu_round_up(c.columns * c.width, 64) : whole;
    c.room = c.pitch > 0 ? half / c.pitch : 0;
    if (call->workspace == NULL) return c;
    c.from = call->workspace;
    c.places = (int32_t *)(c.from + c.t * c.k);
    c.row = c.places + c.ranks * c.t * c.k;
    c.sent = c.row + c.t * c.k;
    return c;
}

/* Every rank gets the places of all; the first step of the call. */
static trine_status exchange_places(const collect *c) {
    const trine_tensor *own = &c->call->tensor[MOE_COLLECT_PLACES];
    const int64_t size = (int64_t)sizeof(int32_t), slots = c->t * c->k, room = copy_room(c->call, TRINE_I32, 1);
    int32_t *mine = c->places + c->rank * slots;
    for (int64_t i = 0; i < c->t && c->k > 0; i++)
        memcpy(mine + i * c->k, (const int32_t *)own->data + i * own->stride[0], (size_t)(c->k * size));
    for (int64_t at = 0; at == 0 || at < slots; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(c->call, &half);
        if (status != TRINE_OK) return status;
        const int64_t bytes = (slots - at < room ? slots - at : room) * size;
        copy_row(c->call, half, (const char *)(mine + at), bytes);
        status = trine_cpu_group_post(c->call, at == 0, 1);
        if (status != TRINE_OK) return status;
        copies all = { .rows = c->ranks, .bytes = bytes };
        for (int r = 0; r < c->ranks; r++) {
            all.from[r] = r == c->rank ? half : trine_cpu_group_half(c->call, r);
            all.to[r] = (char *)(c->places + r * slots + at);
        }
        copy_rows(c->call, &all);
    }
    return TRINE_OK;
}

/* Tokens that go at a time, of which token i of rank s has number i ranks + s; of each row some columns. */
typedef struct piece {
    const collect *c;
    int64_t first, last;
    int64_t from, columns;
    int64_t rows; /* in this rank's half */
    char *half;
    const char *halves[TRINE_MAX_RANKS];
} piece;

static int32_t place_of(const collect *c, int64_t rank, int64_t slot) {
    const int32_t place = c->places[rank * c->t * c->k + slot];
    return place >= 0 && place < c->ranks * c->p ? place : -1;
}

/* How many tokens from `first` on go together, and where their rows are. Slots of a rank's own rows need no room. */
static void plan(piece *g) {
    const collect *c = g->c;
    int64_t used[TRINE_MAX_RANKS] = { 0 };
    for (g->last = g->first; g->last < c->t * c->ranks; g->last++) {
        const int64_t i = g->last / c->ranks, s = g->last % c->ranks;
        bool fits = true;
        g->rows = used[c->rank];
        for (int64_t a = i * c->k; a < (i + 1) * c->k; a++) {
            const int32_t place = place_of(c, s, a);
            const int64_t r = place < 0 ? s : place / (int32_t)c->p;
            if (r == s) continue;
            fits &= used[r] < c->room;
            if (!fits) break;
            if (r == c->rank) c->sent[used[r]] = place % (int32_t)c->p;
            if (s == c->rank) c->row[a] = (int32_t)used[r];
            used[r]++;
        }
        if (!fits) return;
    }
    g->rows = used[c->rank];
}

static const char *row_of(const collect *c, int64_t row) {
    const trine_tensor *x = &c->call->tensor[MOE_COLLECT_X];
    return (const char *)x->data + row * x->stride[0] * c->width;
}

static void give(const void *context, int64_t first, int64_t last, int thread) {
    const piece *g = context;
    const collect *c = g->c;
    (void)thread;
    for (int64_t i = first; i < last; i++)
        memcpy(g->half + i * c->pitch, row_of(c, c->sent[i]) + g->from * c->width, (size_t)(g->columns * c->width));
}

/* Where the rows of a token's slots are. */
static void find_rows(const piece *g, int64_t token) {
    const collect *c = g->c;
    for (int64_t slot = token * c->k; slot < (token + 1) * c->k; slot++) {
        const int32_t place = place_of(c, c->rank, slot);
        const int r = place < 0 ? -1 : place / (int32_t)c->p;
        c->from[slot] = r < 0          ? NULL
                        : r == c->rank ? row_of(c, place % (int32_t)c->p) + g->from * c->width
                                       : g->halves[r] + c->row[slot] * c->pitch;
    }
}

/* As moe_combine has it: the bits are the same. */
INLINE vf sum_of(const char *const *from, int64_t k, const float *weight, int64_t at, int n, trine_dtype T) {
    vf sum = vzero();
    for (int64_t a = 0; a < k; a++) {
        if (from[a] == NULL) continue;
        const vf v = n < VL ? vloadn(from[a], T, at, n, 0) : vload(from[a], T, at);
        sum = weight ? vfma(vset(weight[a]), v, sum) : sum + v;
    }
    return sum;
}

INLINE void sum_token(const piece *g, int64_t token, const float *weight, void *y, trine_dtype out, trine_dtype T) {
    const int64_t k = g->c->k;
    const char *const *from = g->c->from + token * k;
    for (int64_t j = 0; j < g->columns; j += VL) {
        const int n = g->columns - j < VL ? (int)(g->columns - j) : VL;
        const vf sum = sum_of(from, k, weight, j, n, T);
        if (n < VL)
            vstoren(y, out == T ? T : TRINE_F32, g->from + j, n, sum);
        else
            vstore(y, out == T ? T : TRINE_F32, g->from + j, sum);
    }
}

/* The first of this rank's tokens whose number among all ranks' is at least so much. */
static int64_t first_token(const collect *c, int64_t number) { return (number - c->rank + c->ranks - 1) / c->ranks; }

static void sums(const void *context, int64_t first, int64_t last, int thread) {
    const piece *g = context;
    const trine_call *call = g->c->call;
    const trine_tensor *weights = trine_call_given(call, MOE_COLLECT_WEIGHTS), *y = &call->tensor[MOE_COLLECT_Y];
    const int64_t begin = first_token(g->c, g->first);
    (void)thread;
    for (int64_t i = begin + first; i < begin + last; i++) {
        const float *weight = weights ? (const float *)weights->data + i * weights->stride[0] : NULL;
        void *to = (char *)y->data + i * y->stride[0] * (int64_t)vsize(y->dtype);
        find_rows(g, i);
        FOR_TYPE(call->tensor[MOE_COLLECT_X].dtype, sum_token, g, i, weight, to, y->dtype);
    }
}

static trine_status run_piece(piece *g) {
    const collect *c = g->c;
    trine_status status = trine_cpu_group_ready(c->call, &g->half);
    if (status != TRINE_OK) return status;
    const int64_t bytes = g->columns * c->width;
    if (g->rows > 0) cpu_shares(c->call, cpu_team(c->call, g->rows, g->rows * bytes), g->rows, give, g);
    if ((status = trine_cpu_group_post(c->call, false, 1)) != TRINE_OK) return status;
    for (int r = 0; r < c->ranks; r++) g->halves[r] = trine_cpu_group_half(c->call, r);
    const int64_t tokens = first_token(c, g->last) - first_token(c, g->first);
    if (tokens > 0) cpu_shares(c->call, cpu_team(c->call, tokens, tokens * (c->k + 1) * bytes), tokens, sums, g);
    return TRINE_OK;
}

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim, most = INT32_MAX / dim[MOE_COLLECT_DIM_RANKS], k = dim[MOE_COLLECT_DIM_K];
    if (k > 0 && dim[MOE_COLLECT_DIM_T] > most / k) return "more than 2^31 - 1 slots";
    if (dim[MOE_COLLECT_DIM_P] > most) return "more than 2^31 - 1 places";
    return k > trine_cpu_group_bytes(call) / (int64_t)trine_dtype_size(call->type[MOE_COLLECT_TYPE_T])
               ? "more slots of a token than the staging has elements"
               : NULL;
}

static size_t workspace(const trine_call *call) {
    const collect c = collect_of(call);
    const int64_t slots = c.t * c.k, all = c.ranks * slots;
    return (size_t)slots * sizeof(char *) + (size_t)(all + slots + (c.room < all ? c.room : all)) * sizeof(int32_t);
}

static trine_status launch(const trine_call *call) {
    collect c = collect_of(call);
    c.rank = trine_cpu_group_rank(call);
    trine_status status = exchange_places(&c);
    for (int64_t from = 0; from < c.n && status == TRINE_OK; from += c.columns) {
        piece g = { .c = &c, .from = from, .columns = c.n - from < c.columns ? c.n - from : c.columns };
        for (; g.first < c.t * c.ranks && status == TRINE_OK; g.first = g.last) {
            plan(&g);
            status = run_piece(&g);
        }
    }
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const collect c = collect_of(call);
    trine_kernel_edge(edges, MOE_COLLECT_DIM_N, VL);
    if (c.k > 0) {
        trine_kernel_edge(edges, MOE_COLLECT_DIM_N, trine_cpu_group_bytes(call) / c.k / 64 * 64 / c.width);
        trine_kernel_edge(edges, MOE_COLLECT_DIM_T, c.room / c.k);
    }
}

CPU_KERNELS(moe_collect) = {
    { .name = CPU_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
