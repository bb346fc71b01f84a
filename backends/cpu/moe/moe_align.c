/* SPDX-License-Identifier: Apache-2.0 */
/* moe_align on the CPU: a counting sort in chunks of slots, whose counts are added up between the two passes. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/moe_align.h"

enum { CHUNK = 4096, MOST_CHUNKS = 64, SLOT_BYTES = 32 /* what a slot costs, of both passes */ };

/* The slots of a call in chunks, each with a row of counts. */
typedef struct align {
    const trine_call *call;
    int64_t slots, k, e, b, length, chunks;
    int32_t *table;
} align;

static align align_of(const trine_call *call) {
    align a = { .call = call,
                .slots = call->dim[MOE_ALIGN_DIM_T] * call->dim[MOE_ALIGN_DIM_K],
                .k = call->dim[MOE_ALIGN_DIM_K],
                .e = call->dim[MOE_ALIGN_DIM_E],
                .b = call->dim[MOE_ALIGN_DIM_B],
                .length = CHUNK,
                .table = call->workspace };
    if (a.slots > CHUNK * MOST_CHUNKS) a.length = (a.slots + MOST_CHUNKS - 1) / MOST_CHUNKS;
    a.chunks = (a.slots + a.length - 1) / a.length;
    return a;
}

/* The expert of a slot; -1: none. */
INLINE int64_t expert_of(const align *a, int64_t slot) {
    const trine_tensor *t = &a->call->tensor[MOE_ALIGN_EXPERTS];
    const int64_t at = slot / a->k * t->stride[0] + slot % a->k,
                  id = t->dtype == TRINE_I64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
    return id >= 0 && id < a->e ? id : -1;
}

/* Where place `at` of the rows is in memory. */
INLINE int32_t *row_at(const align *a, int64_t at) {
    const trine_tensor *rows = &a->call->tensor[MOE_ALIGN_ROWS];
    return (int32_t *)rows->data + at / a->b * rows->stride[0] + at % a->b;
}

INLINE int64_t chunk_end(const align *a, int64_t chunk) {
    return (chunk + 1) * a->length < a->slots ? (chunk + 1) * a->length : a->slots;
}

static void count(const void *context, int64_t first, int64_t last, int thread) {
    const align *a = context;
    (void)thread;
    for (int64_t c = first; c < last; c++) {
        int32_t *counts = a->table + c * a->e;
        if (a->e > 0) memset(counts, 0, (size_t)a->e * sizeof *counts);
        for (int64_t i = c * a->length; i < chunk_end(a, c); i++) {
            const int64_t id = expert_of(a, i);
            if (id >= 0) counts[id]++;
        }
    }
}

/* Of counts the table makes how many slots of an expert come before a chunk. */
static void add_up(const align *a) {
    const trine_call *call = a->call;
    const trine_moe_align_args *args = call->args;
    int32_t *counts = call->tensor[MOE_ALIGN_COUNTS].data, *offsets = call->tensor[MOE_ALIGN_OFFSETS].data,
            *owners = call->present >> MOE_ALIGN_BLOCK_EXPERTS & 1 ? call->tensor[MOE_ALIGN_BLOCK_EXPERTS].data : NULL;
    const int64_t m = call->dim[MOE_ALIGN_DIM_M];
    int64_t place = 0;
    offsets[0] = 0;
    for (int64_t j = 0; j < a->e; j++) {
        int32_t before = 0;
        for (int64_t c = 0; c < a->chunks; c++) {
            const int32_t here = a->table[c * a->e + j];
            a->table[c * a->e + j] = before;
            before += here;
        }
        counts[j] = before;
        const int64_t kept = args->capacity > 0 && before > args->capacity ? args->capacity : before,
                      end = place + cpu_round_up(kept, a->b);
        for (int64_t i = place + kept; i < end; i++) *row_at(a, i) = -1;
        for (int64_t i = place / a->b; owners && i < end / a->b; i++) owners[i] = (int32_t)j;
        offsets[j + 1] = (int32_t)(place = end);
    }
    for (int64_t i = place; i < m * a->b; i++) *row_at(a, i) = -1;
    for (int64_t i = place / a->b; owners && i < m; i++) owners[i] = -1;
}

static void put(const void *context, int64_t first, int64_t last, int thread) {
    const align *a = context;
    const trine_moe_align_args *args = a->call->args;
    const trine_tensor *places = &a->call->tensor[MOE_ALIGN_PLACES];
    const int32_t *offsets = a->call->tensor[MOE_ALIGN_OFFSETS].data;
    (void)thread;
    for (int64_t c = first; c < last; c++)
        for (int64_t i = c * a->length; i < chunk_end(a, c); i++) {
            const int64_t id = expert_of(a, i);
            int32_t place = -1;
            if (id >= 0) {
                const int32_t rank = a->table[c * a->e + id]++;
                if (args->capacity == 0 || rank < args->capacity) {
                    place = offsets[id] + rank;
                    *row_at(a, place) = (int32_t)i;
                }
            }
            ((int32_t *)places->data)[i / a->k * places->stride[0] + i % a->k] = place;
        }
}

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim;
    if (dim[MOE_ALIGN_DIM_E] > INT32_MAX - 1) return "more than 2^31 - 1 experts";
    if (dim[MOE_ALIGN_DIM_T] > 0 && dim[MOE_ALIGN_DIM_K] > INT32_MAX / dim[MOE_ALIGN_DIM_T])
        return "more than 2^31 - 1 slots";
    return dim[MOE_ALIGN_DIM_M] > INT32_MAX / dim[MOE_ALIGN_DIM_B] ? "more than 2^31 - 1 places" : NULL;
}

static size_t workspace(const trine_call *call) {
    const align a = align_of(call);
    return (size_t)(a.chunks * a.e) * sizeof(int32_t);
}

static trine_status launch(const trine_call *call) {
    const align a = align_of(call);
    const int team = cpu_team(call, a.chunks, a.slots * SLOT_BYTES);
    cpu_shares(call, team, a.chunks, count, &a);
    add_up(&a);
    cpu_shares(call, team, a.chunks, put, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t k = call->dim[MOE_ALIGN_DIM_K];
    if (k > 0) trine_kernel_edge(edges, MOE_ALIGN_DIM_T, CHUNK / k);
    cpu_team_edge(edges, MOE_ALIGN_DIM_T, SLOT_BYTES * k);
}

CPU_KERNELS(moe_align) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
