/* SPDX-License-Identifier: Apache-2.0 */
/* prune24 on the CPU. */
#include "pairs24.h"
#include "spec/places/prune24.h"

typedef uint8_t vb __attribute__((vector_size(VL)));
typedef vb vb_any __attribute__((aligned(1), may_alias));

/* The keys of elements i .. i+VL-1. */
INLINE vi keys_at(const void *x, int64_t i, trine_dtype T) {
    if (T == TRINE_I8) {
        const vi byte = vload_u8((const uint8_t *)x + i);
        return visel(byte > 127, 256 - byte, byte);
    }
    const int infinite = T == TRINE_F32 ? 0x7f800000 : T == TRINE_BF16 ? 0x7f80 : 0x7c00;
    const vi bits = T == TRINE_F32 ? (vi)vload(x, T, i)
                                   : __builtin_convertvector(*(const vh_any *)((const uint16_t *)x + i), vi),
             size = bits & (T == TRINE_F32 ? 0x7fffffff : 0x7fff);
    return visel(size > infinite, viset(infinite + 1), size);
}

/* -1 for those that are kept: each is held against the three others of its group. */
INLINE vi kept_of(vi key) {
    const vi lane = viota(), beside = (vi)vexchange((vf)key, 1), behind = (vi)vexchange((vf)key, 2),
             across = (vi)vexchange((vf)beside, 2);
    const vi odd = (lane & 1) != 0, upper = (lane & 2) != 0; /* of equals those that come before count as larger */
    const vi larger = ((beside > key) | ((beside == key) & odd)) + ((behind > key) | ((behind == key) & upper)) +
                      ((across > key) | ((across == key) & upper));
    return larger > -2;
}

INLINE void put(void *y, const void *x, int64_t i, vi kept, trine_dtype T) {
    if (T == TRINE_F32)
        *(vi_any *)((float *)y + i) = *(const vi_any *)((const float *)x + i) & kept;
    else if (T == TRINE_I8)
        *(vb_any *)((uint8_t *)y + i) = *(const vb_any *)((const uint8_t *)x + i) & __builtin_convertvector(kept, vb);
    else
        *(vh_any *)((uint16_t *)y + i) = *(const vh_any *)((const uint16_t *)x + i) & __builtin_convertvector(kept, vh);
}

INLINE void step(const void *x, void *y, uint8_t *mask, int64_t i, trine_dtype T) {
    const vi kept = kept_of(keys_at(x, i, T));
    if (mask) *(vb_any *)(mask + i) = __builtin_convertvector(kept & 1, vb);
    if (y) put(y, x, i, kept, T);
}

/* Elements first .. last-1 of a row, whole groups. */
INLINE void part(const char *x, char *y, uint8_t *mask, int64_t first, int64_t last, trine_dtype T) {
    const size_t size = (size_t)size24(T), rest = (size_t)((last - first) % VL);
    const int64_t whole = last - (int64_t)rest;
    for (int64_t i = first; i < whole; i += VL) step(x, y, mask, i, T);
    if (rest == 0) return;
    char from[VL * sizeof(float)] = { 0 }, to[VL * sizeof(float)];
    uint8_t bits[VL];
    memcpy(from, x + (size_t)whole * size, rest * size);
    step(from, to, bits, 0, T);
    if (y) memcpy(y + (size_t)whole * size, to, rest * size);
    if (mask) memcpy(mask + whole, bits, rest);
}

static void parts(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t n = call->dim[PRUNE24_DIM_N], each = parts24(n);
    (void)thread;
    for (int64_t p = first; p < last; p++) {
        const int64_t i = p / each, at = p % each * PART24, end = at + PART24 < n ? at + PART24 : n;
        FOR_TYPE24(call->type[PRUNE24_TYPE_T], part, row24(call, PRUNE24_X, i), row24(call, PRUNE24_Y, i),
                   row24(call, PRUNE24_MASK, i), at, end);
    }
}

static trine_status launch(const trine_call *call) {
    return run24(call, call->dim[PRUNE24_DIM_R], call->dim[PRUNE24_DIM_N], parts);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, PRUNE24_DIM_N, VL);
    trine_kernel_edge(edges, PRUNE24_DIM_N, PART24);
    cpu_team_edge(edges, PRUNE24_DIM_R, call->dim[PRUNE24_DIM_N] * WORK24);
}

CPU_KERNELS(prune24) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
