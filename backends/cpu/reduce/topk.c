/* SPDX-License-Identifier: Apache-2.0 */
/* topk on the CPU: what beats the k-th of a row's elements so far is kept, and when there is no more room, the k-th is
 * found anew by the digits of those that are kept. Long rows may be taken in parts, whose best are then put together:
 * what comes is the same. */
#include <stdlib.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/topk.h"

enum {
    DIGIT = 11,
    DIGITS = 1 << DIGIT,
    SPARE = 1024,   /* kept elements beyond 2 k, at most */
    PART = 1 << 15, /* elements, at least */
    PART_ROOMS = 8, /* of a part: as many as that many times are kept, at least */
    SIDE = 4        /* vectors that are looked at together */
};

/* An element: its order, in whose numbers a larger one is before a smaller one, and its place turned over. */
typedef uint64_t key;

/* Larger numbers for larger elements, or for smaller ones if `flip` has all bits: those of -0 and 0 are equal, and
 * NaN's is the largest. */
INLINE vi orders(vf x, int32_t flip) {
    const vi bits = (vi)x, magnitude = bits & INT32_MAX, order = bits ^ ((bits >> 31) & INT32_MAX);
    return visel(magnitude > 0x7f800000, viset(INT32_MAX), visel(magnitude == 0, viset(0), order)) ^ flip;
}
INLINE key key_of(int32_t order, int64_t place) {
    return (key)((uint32_t)order ^ 0x80000000u) << 32 | (uint32_t)~(uint32_t)place;
}
INLINE int32_t order_of(key x) { return (int32_t)((uint32_t)(x >> 32) ^ 0x80000000u); }
INLINE uint32_t place_of(key x) { return ~(uint32_t)x; }

/* Leaves the first k of `count` keys, 0 < k < count, as they lie: equals are in the order of their places. Returns the
 * order of the last. */
static int32_t keep_first(key *keys, int64_t count, int64_t k) {
    uint32_t known = 0, mask = 0;
    for (int end = 32; end > 0; end -= DIGIT) {
        const int low = end > DIGIT ? end - DIGIT : 0;
        const uint32_t digit = (1u << (end - low)) - 1;
        int64_t number[DIGITS] = { 0 }, d = digit;
        for (int64_t i = 0; i < count; i++) {
            const uint32_t order = (uint32_t)(keys[i] >> 32);
            if ((order & mask) == known) number[order >> low & digit]++;
        }
        for (; number[d] < k; d--) k -= number[d];
        known |= (uint32_t)d << low;
        mask |= digit << low;
    }
    int64_t kept = 0, equals = k; /* of the last order */
    for (int64_t i = 0; i < count; i++) {
        const uint32_t order = (uint32_t)(keys[i] >> 32);
        if (order < known || (order == known && equals-- <= 0)) continue;
        keys[kept++] = keys[i];
    }
    return (int32_t)(known ^ 0x80000000u);
}

/* What is kept of a row's part. */
typedef struct best {
    key *keys;
    int64_t count, room, k;
    int32_t last; /* what an element must beat, */
    bool full;    /* if k have been found */
} best;

static void add(best *b, const int32_t *order, int64_t place, int n) {
    for (int j = 0; j < n; j++) {
        if (b->full && order[j] <= b->last) continue;
        b->keys[b->count++] = key_of(order[j], place + j);
        if (b->count < b->room) continue;
        b->last = keep_first(b->keys, b->count, b->k);
        b->count = b->k;
        b->full = true;
    }
}

/* The first k of elements first .. end-1 of a row, in the order of their places, with room for all or for more than k.
 */
INLINE void find(const void *row, int64_t first, int64_t end, uint32_t flip, best *b, trine_dtype T) {
    int64_t i = first;
    int32_t order[VL];
    for (; i + SIDE * VL <= end; i += SIDE * VL) {
        vi x[SIDE], any = viset(0);
        for (int v = 0; v < SIDE; v++) {
            x[v] = orders(vload(row, T, i + v * VL), (int32_t)flip);
            any |= x[v] > b->last;
        }
        if (b->full && !vany(any)) continue;
        for (int v = 0; v < SIDE; v++) {
            if (b->full && !vany(x[v] > b->last)) continue;
            memcpy(order, &x[v], sizeof order);
            add(b, order, i + v * VL, VL);
        }
    }
    for (; i < end; i += VL) {
        const int n = end - i < VL ? (int)(end - i) : VL;
        const vi x = orders(vloadn(row, T, i, n, 0), (int32_t)flip);
        memcpy(order, &x, sizeof order);
        add(b, order, i, n);
    }
    if (b->count > b->k) {
        keep_first(b->keys, b->count, b->k);
        b->count = b->k;
    }
}

static int first_large(const void *a, const void *b) {
    const key x = *(const key *)a, y = *(const key *)b;
    return (x < y) - (x > y);
}

INLINE void copy_values(const void *row, const key *keys, int64_t k, void *to, trine_dtype T) {
    const size_t size = vsize(T);
    for (int64_t j = 0; j < k; j++)
        memcpy((char *)to + (size_t)j * size, (const char *)row + (size_t)place_of(keys[j]) * size, size);
}

static char *row_of(const trine_tensor *t, int64_t i) {
    return (char *)t->data + i * t->stride[0] * (int64_t)trine_dtype_size(t->dtype);
}

/* How the call goes: keys that a thread has room for, elements of a part, parts of a row. */
typedef struct way {
    int64_t room, part, parts;
    int team;
} way;

enum { READS = 2 }; /* of a row, in time */
static way way_of(const trine_call *call) {
    const int64_t r = call->dim[TOPK_DIM_R], n = call->dim[TOPK_DIM_N], k = call->dim[TOPK_DIM_K],
                  bytes = READS * r * n * (int64_t)sizeof(float);
    way w = { .room = 2 * k + SPARE < n ? 2 * k + SPARE : n + 1 };
    w.part = PART_ROOMS * w.room > PART ? PART_ROOMS * w.room : PART;
    w.parts = n > 0 ? (n + w.part - 1) / w.part : 1;
    w.team = cpu_team(call, r * w.parts, bytes);
    if (w.parts > 1 && r % w.team != 0 && r < PART_ROOMS * (int64_t)w.team) return w;
    w.parts = 1;
    w.part = n;
    w.team = cpu_team(call, r, bytes);
    return w;
}

typedef struct job {
    const trine_call *call;
    way way;
    key *room, *found; /* of each thread; of each row's parts, if there are several: k each */
} job;

static best find_best(const job *b, int64_t i, int64_t first, int thread) {
    const trine_call *call = b->call;
    const trine_tensor *x = &call->tensor[TOPK_X];
    const uint32_t flip = ((const trine_topk_args *)call->args)->smallest ? ~0u : 0;
    const int64_t n = call->dim[TOPK_DIM_N], end = first + b->way.part < n ? first + b->way.part : n;
    best found = { .keys = b->room + thread * b->way.room, .room = b->way.room, .k = call->dim[TOPK_DIM_K] };
    if (found.k > 0) FOR_TYPE(x->dtype, find, row_of(x, i), first, end, flip, &found);
    return found;
}

/* Row i's outputs, of k keys. */
static void put(const trine_call *call, int64_t i, key *keys) {
    const trine_tensor *x = &call->tensor[TOPK_X], *values = &call->tensor[TOPK_VALUES],
                       *indices = &call->tensor[TOPK_INDICES];
    const int64_t k = call->dim[TOPK_DIM_K];
    qsort(keys, (size_t)k, sizeof *keys, first_large);
    if (call->present >> TOPK_VALUES & 1) FOR_TYPE(x->dtype, copy_values, row_of(x, i), keys, k, row_of(values, i));
    if (!(call->present >> TOPK_INDICES & 1)) return;
    char *to = row_of(indices, i);
    for (int64_t j = 0; j < k; j++) {
        const uint32_t at = place_of(keys[j]);
        if (indices->dtype == TRINE_I32)
            ((int32_t *)(void *)to)[j] = (int32_t)at;
        else
            ((int64_t *)(void *)to)[j] = at;
    }
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    for (int64_t i = first; i < last; i++) put(b->call, i, find_best(b, i, 0, thread).keys);
}

/* Parts of rows; all but a row's last have k. */
static void parts(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    for (int64_t item = first; item < last; item++) {
        const best found = find_best(b, item / b->way.parts, item % b->way.parts * b->way.part, thread);
        memcpy(b->found + item * found.k, found.keys, (size_t)found.count * sizeof(key));
    }
}
static void join(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const int64_t n = b->call->dim[TOPK_DIM_N], k = b->call->dim[TOPK_DIM_K], before = (b->way.parts - 1) * k,
                  rest = n - (b->way.parts - 1) * b->way.part;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        key *keys = b->found + i * b->way.parts * k;
        if (k > 0) keep_first(keys, before + (rest < k ? rest : k), k);
        put(b->call, i, keys);
    }
}

static const char *refuse(const trine_call *call) {
    return call->dim[TOPK_DIM_N] > INT32_MAX ? "rows of more than 2^31 - 1 elements" : NULL;
}

static size_t workspace(const trine_call *call) {
    const way w = way_of(call);
    return (size_t)(w.team * w.room + (w.parts > 1 ? call->dim[TOPK_DIM_R] * w.parts * call->dim[TOPK_DIM_K] : 0)) *
           sizeof(key);
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[TOPK_DIM_R];
    job b = { .call = call, .way = way_of(call), .room = call->workspace };
    b.found = b.room + b.way.team * b.way.room;
    if (b.way.parts == 1) {
        cpu_shares(call, b.way.team, r, rows, &b);
        return TRINE_OK;
    }
    cpu_shares(call, b.way.team, r * b.way.parts, parts, &b);
    cpu_shares(call, cpu_team(call, r, b.way.parts * r * call->dim[TOPK_DIM_K] * (int64_t)sizeof(key)), r, join, &b);
    return TRINE_OK;
}

/* One more element than are asked for, and than there is room for; several parts; and the second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t k = call->dim[TOPK_DIM_K];
    trine_kernel_edge(edges, TOPK_DIM_N, k);
    trine_kernel_edge(edges, TOPK_DIM_N, SIDE * VL);
    trine_kernel_edge(edges, TOPK_DIM_N, 2 * k + SPARE);
    trine_kernel_edge(edges, TOPK_DIM_N, PART_ROOMS * (2 * k + SPARE) > PART ? PART_ROOMS * (2 * k + SPARE) : PART);
    cpu_team_edge(edges, TOPK_DIM_R, READS * call->dim[TOPK_DIM_N] * (int64_t)sizeof(float));
}

CPU_KERNELS(topk) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
