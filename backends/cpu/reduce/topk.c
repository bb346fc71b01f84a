/* SPDX-License-Identifier: Apache-2.0 */
/* topk on the CPU: a row's k-th element is found by the digits of its elements, which are counted; then those that are
 * not behind it are sorted. */
#include <stdlib.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/topk.h"

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

/* Larger numbers for larger elements, or for smaller ones if `flip` has all bits: those of -0 and 0 are equal, and
 * NaN's is the largest. */
INLINE uint32_t order_of(float x, uint32_t flip) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (bits << 1 == 0) bits = 0;
    const uint32_t order = bits >> 31 ? ~bits : bits | 0x80000000u;
    return ((bits & 0x7fffffffu) > 0x7f800000u ? ~0u : order) ^ flip;
}

/* The order of the k-th element, k > 0, and in `behind_out` how many of its equals are among the first k. */
INLINE void find(const void *row, int64_t n, int64_t k, uint32_t flip, uint32_t *order_out, int64_t *equals_out,
                 trine_dtype T) {
    uint32_t known = 0, mask = 0;
    for (int end = 32; end > 0; end -= DIGIT) {
        const int low = end > DIGIT ? end - DIGIT : 0;
        const uint32_t digit = (1u << (end - low)) - 1;
        int64_t count[DIGITS] = { 0 }, d = digit;
        for (int64_t i = 0; i < n; i++) {
            const uint32_t order = order_of(sload(row, T, i), flip);
            if ((order & mask) == known) count[order >> low & digit]++;
        }
        for (; count[d] < k; d--) k -= count[d];
        known |= (uint32_t)d << low;
        mask |= digit << low;
    }
    *order_out = known;
    *equals_out = k;
}

/* The first k in any order: an element's order, and its place turned over, so that the largest come first. */
INLINE void gather(const void *row, int64_t n, int64_t k, uint32_t flip, uint64_t *key, trine_dtype T) {
    uint32_t last = 0;
    int64_t equals = 0, count = 0;
    if (k < n) find(row, n, k, flip, &last, &equals, T);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t order = order_of(sload(row, T, i), flip);
        if (k < n && (order < last || (order == last && equals-- <= 0))) continue;
        key[count++] = (uint64_t)order << 32 | (uint32_t)~(uint32_t)i;
    }
}

static int first_large(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

INLINE void copy_values(const void *row, const uint64_t *key, int64_t k, void *to, trine_dtype T) {
    const size_t size = vsize(T);
    for (int64_t j = 0; j < k; j++)
        memcpy((char *)to + (size_t)j * size, (const char *)row + (size_t)(uint32_t)~(uint32_t)key[j] * size, size);
}

static int64_t keys_bytes(const trine_call *call) {
    return cpu_round_up(call->dim[TOPK_DIM_K] * (int64_t)sizeof(uint64_t), 64);
}

static char *row_of(const trine_tensor *t, int64_t i) {
    return (char *)t->data + i * t->stride[0] * (int64_t)trine_dtype_size(t->dtype);
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_topk_args *args = call->args;
    const trine_tensor *x = &call->tensor[TOPK_X], *values = &call->tensor[TOPK_VALUES],
                       *indices = &call->tensor[TOPK_INDICES];
    const int64_t n = call->dim[TOPK_DIM_N], k = call->dim[TOPK_DIM_K];
    const uint32_t flip = args->smallest ? ~0u : 0;
    uint64_t *key = (uint64_t *)(void *)((char *)call->workspace + thread * keys_bytes(call));
    for (int64_t i = first; i < last; i++) {
        const char *row = row_of(x, i);
        FOR_TYPE(x->dtype, gather, row, n, k, flip, key);
        qsort(key, (size_t)k, sizeof *key, first_large);
        if (call->present >> TOPK_VALUES & 1) FOR_TYPE(x->dtype, copy_values, row, key, k, row_of(values, i));
        if (!(call->present >> TOPK_INDICES & 1)) continue;
        char *to = row_of(indices, i);
        for (int64_t j = 0; j < k; j++) {
            const uint32_t at = ~(uint32_t)key[j];
            if (indices->dtype == TRINE_I32)
                ((int32_t *)(void *)to)[j] = (int32_t)at;
            else
                ((int64_t *)(void *)to)[j] = at;
        }
    }
}

enum { READS = 4 }; /* of a row */
static int team_of(const trine_call *call) {
    const int64_t r = call->dim[TOPK_DIM_R], n = call->dim[TOPK_DIM_N];
    return cpu_team(call, r, READS * r * n * (int64_t)sizeof(float));
}

static const char *refuse(const trine_call *call) {
    return call->dim[TOPK_DIM_N] > INT32_MAX ? "rows of more than 2^31 - 1 elements" : NULL;
}

static size_t workspace(const trine_call *call) { return (size_t)(team_of(call) * keys_bytes(call)); }

static trine_status launch(const trine_call *call) {
    cpu_shares(call, team_of(call), call->dim[TOPK_DIM_R], rows, call);
    return TRINE_OK;
}

/* One more element than are asked for, and the second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, TOPK_DIM_N, call->dim[TOPK_DIM_K]);
    cpu_team_edge(edges, TOPK_DIM_R, READS * call->dim[TOPK_DIM_N] * (int64_t)sizeof(float));
}

CPU_KERNELS(topk) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
