/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce on the CPU. */
#include "segments.h"
#include "spec/places/segment_reduce.h"

INLINE void put(const segments *s, int64_t i, const segment_part *a, int k, vf y, trine_dtype T) {
    segment_store(segment_row(s->out, i), a, k, y, T);
}

INLINE void sum_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    vf sum[SEGMENT_VECTORS] = { { 0 } };
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) sum[k] += segment_load(segment_row(s->x, row), a, k, T);
    const bool mean = s->kind == TRINE_SEGMENT_MEAN && a->end > a->first;
    for (int k = 0; k < vectors; k++) put(s, i, a, k, mean ? sum[k] / vset((float)(a->end - a->first)) : sum[k], T);
}

INLINE void most_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    const bool least = s->kind == TRINE_SEGMENT_MIN;
    vf most[SEGMENT_VECTORS];
    for (int k = 0; k < vectors; k++) most[k] = vset(-INFINITY);
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) {
            const vf x = segment_signed(segment_load(segment_row(s->x, row), a, k, T), least);
            most[k] = vsel(segment_beats(x, most[k]), x, most[k]);
        }
    for (int k = 0; k < vectors; k++) put(s, i, a, k, segment_signed(most[k], least), T);
}

INLINE void power_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    segment_power p[SEGMENT_VECTORS];
    segment_powers(s, a, vectors, p, T);
    for (int k = 0; k < vectors; k++) {
        const vi infinite = vabs(p[k].most) == vset(INFINITY);
        put(s, i, a, k, vsel(infinite, p[k].most, p[k].shift + vlog(p[k].sum)), T);
    }
}

INLINE void product_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    for (int k = 0; k < vectors; k++) {
        segment_product p = segment_one();
        for (int64_t row = a->first; row < a->end; row++)
            segment_multiply(&p, segment_factor(segment_load(segment_row(s->x, row), a, k, T)));
        put(s, i, a, k, segment_value(p), T);
    }
}

INLINE void reduce_share(const segments *s, int64_t begin, int64_t end, trine_dtype T) {
    EACH_SEGMENT_OF_KIND(s, begin, end, T)
}

static void reduce_parts(const void *context, int64_t begin, int64_t end, int thread) {
    const segments *s = context;
    (void)thread;
    FOR_TYPE(s->x->dtype, reduce_share, s, begin, end);
}

static trine_status launch(const trine_call *call) {
    segments s = { .x = &call->tensor[SEGMENT_REDUCE_X],
                   .offsets = &call->tensor[SEGMENT_REDUCE_OFFSETS],
                   .out = &call->tensor[SEGMENT_REDUCE_Y],
                   .p = call->dim[SEGMENT_REDUCE_DIM_P],
                   .e = call->dim[SEGMENT_REDUCE_DIM_E],
                   .n = call->dim[SEGMENT_REDUCE_DIM_N],
                   .kind = ((const trine_segment_reduce_args *)call->args)->kind };
    s.pieces = (s.n + SEGMENT_VECTORS * VL - 1) / (SEGMENT_VECTORS * VL);
    const trine_status status = segments_ascend(call, "segment_reduce", &s);
    const int64_t count = s.e * s.pieces, bytes = (s.p + s.e) * s.n * (int64_t)vsize(s.x->dtype);
    if (status == TRINE_OK) cpu_shares(call, cpu_team(call, count, bytes), count, reduce_parts, &s);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SEGMENT_REDUCE_DIM_N, VL);
    trine_kernel_edge(edges, SEGMENT_REDUCE_DIM_N, SEGMENT_VECTORS * VL);
}

CPU_KERNELS(segment_reduce) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
