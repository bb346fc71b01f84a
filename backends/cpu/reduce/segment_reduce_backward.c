/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce_backward on the CPU. */
#include "segments.h"
#include "spec/places/segment_reduce_backward.h"

INLINE vf gradient(const segments *s, int64_t i, const segment_part *a, int k, trine_dtype T) {
    return segment_load(segment_row(s->dy, i), a, k, T);
}
INLINE vf element(const segments *s, int64_t row, const segment_part *a, int k, trine_dtype T) {
    return segment_load(segment_row(s->x, row), a, k, T);
}
INLINE void put(const segments *s, int64_t row, const segment_part *a, int k, vf dx, trine_dtype T) {
    segment_store(segment_row(s->out, row), a, k, dx, T);
}

INLINE void sum_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    const vf count = vset(s->kind == TRINE_SEGMENT_MEAN ? (float)(a->end - a->first) : 1);
    vf dx[SEGMENT_VECTORS];
    for (int k = 0; k < vectors; k++) dx[k] = gradient(s, i, a, k, T) / count;
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) put(s, row, a, k, dx[k], T);
}

/* Rows are read before they are written, since dx may be x. */
INLINE void most_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    const bool least = s->kind == TRINE_SEGMENT_MIN;
    vf most[SEGMENT_VECTORS], dy[SEGMENT_VECTORS];
    for (int k = 0; k < vectors; k++) most[k] = vset(-INFINITY), dy[k] = gradient(s, i, a, k, T);
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) {
            const vf x = segment_signed(element(s, row, a, k, T), least);
            most[k] = vsel(segment_beats(x, most[k]), x, most[k]);
        }
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) {
            const vf x = segment_signed(element(s, row, a, k, T), least);
            const vi found = (x == most[k]) | ((x != x) & (most[k] != most[k]));
            put(s, row, a, k, vsel(found, dy[k], vzero()), T);
            dy[k] = vsel(found, vzero(), dy[k]); /* what is left for those behind */
        }
}

INLINE void power_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    segment_power p[SEGMENT_VECTORS];
    vf dy[SEGMENT_VECTORS];
    segment_powers(s, a, vectors, p, T);
    for (int k = 0; k < vectors; k++) dy[k] = gradient(s, i, a, k, T);
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) {
            const vf part = vexp(element(s, row, a, k, T) - p[k].shift) / p[k].sum;
            put(s, row, a, k, dy[k] * part, T);
        }
}

INLINE void product_part(const segments *s, int64_t i, const segment_part *a, int vectors, trine_dtype T) {
    segment_product all[SEGMENT_VECTORS];
    for (int k = 0; k < vectors; k++) all[k] = segment_factor(gradient(s, i, a, k, T));
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) segment_multiply(&all[k], segment_factor(element(s, row, a, k, T)));
    for (int64_t row = a->first; row < a->end; row++)
        for (int k = 0; k < vectors; k++) {
            const segment_product others = segment_without(all[k], segment_factor(element(s, row, a, k, T)));
            put(s, row, a, k, segment_value(others), T);
        }
}

INLINE void gradient_share(const segments *s, int64_t begin, int64_t end, trine_dtype T) {
    EACH_SEGMENT_OF_KIND(s, begin, end, T)
}

static void gradient_parts(const void *context, int64_t begin, int64_t end, int thread) {
    const segments *s = context;
    (void)thread;
    FOR_TYPE(s->x->dtype, gradient_share, s, begin, end);
}

static void clear_rows(const segments *s, int64_t first, int64_t end) {
    for (int64_t row = first; row < end && s->n > 0; row++)
        memset(segment_row(s->out, row), 0, (size_t)s->n * vsize(s->out->dtype));
}

static trine_status launch(const trine_call *call) {
    segments s = { .x = &call->tensor[SEGMENT_REDUCE_BACKWARD_X],
                   .offsets = &call->tensor[SEGMENT_REDUCE_BACKWARD_OFFSETS],
                   .dy = &call->tensor[SEGMENT_REDUCE_BACKWARD_DY],
                   .out = &call->tensor[SEGMENT_REDUCE_BACKWARD_DX],
                   .p = call->dim[SEGMENT_REDUCE_BACKWARD_DIM_P],
                   .e = call->dim[SEGMENT_REDUCE_BACKWARD_DIM_E],
                   .n = call->dim[SEGMENT_REDUCE_BACKWARD_DIM_N],
                   .kind = ((const trine_segment_reduce_backward_args *)call->args)->kind };
    s.pieces = (s.n + SEGMENT_VECTORS * VL - 1) / (SEGMENT_VECTORS * VL);
    const trine_status status = segments_ascend(call, "segment_reduce_backward", &s);
    if (status != TRINE_OK) return status;
    const int64_t count = s.e * s.pieces, bytes = (2 * s.p + s.e) * s.n * (int64_t)vsize(s.x->dtype);
    cpu_shares(call, cpu_team(call, count, bytes), count, gradient_parts, &s);
    clear_rows(&s, 0, segment_offset(&s, 0));
    clear_rows(&s, segment_offset(&s, s.e), s.p);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SEGMENT_REDUCE_BACKWARD_DIM_N, VL);
    trine_kernel_edge(edges, SEGMENT_REDUCE_BACKWARD_DIM_N, SEGMENT_VECTORS * VL);
}

CPU_KERNELS(segment_reduce_backward) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
