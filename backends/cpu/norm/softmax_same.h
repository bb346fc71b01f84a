/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on the CPU with the same bits as on every device (spec/same.h): e = exp((x/2 - m/2) 2 scale) with the largest
 * m, or the smallest if the scale is negative; y = e / sum. */
#include "backends/cpu/core/same.h"

typedef struct softmax_same {
    const trine_tensor *x, *y;
    int64_t s, n;
    float scale;
    bool causal;
} softmax_same;

INLINE void softmax_same_row(const softmax_same *a, const void *x, void *y, int64_t n, trine_dtype T) {
    const float sign = a->scale < 0 ? -1 : 1;
    vf most = vset(-INFINITY);
    same_lanes lanes = { 0 };
    for (int64_t j = 0; j < n; j += VL) most = same_larger(most, sign * same_load(x, T, j, n, -sign * INFINITY));
    const vf half = vset(0.5f), m = vproduct(vset(sign * same_largest(most)), half), twice = vset(2 * a->scale);
    for (int64_t j = 0; j < n; j += VL) {
        const vf e = same_exp(vproduct(vproduct(same_load(x, T, j, n, 0), half) - m, twice));
        same_add(&lanes, j, same_within(e, j, n));
    }
    const vf sum = vset(same_total(lanes.v, SAME_LANES));
    for (int64_t j = 0; j < n; j += VL) {
        const vf e = same_exp(vproduct(vproduct(same_load(x, T, j, n, 0), half) - m, twice));
        same_store(y, T, j, n, e / sum);
    }
}

INLINE void softmax_same_rows(const softmax_same *a, int64_t first, int64_t last, trine_dtype T) {
    for (int64_t row = first; row < last; row++) {
        const int64_t g = row / a->s, i = row % a->s, n = a->causal ? row_visible(i, a->s, a->n) : a->n;
        char *y = row_at3(a->y, g, i);
        const int64_t size = (int64_t)vsize(T);
        softmax_same_row(a, row_at3(a->x, g, i), y, n, T);
        if (n < a->n) memset(y + n * size, 0, (size_t)((a->n - n) * size));
    }
}

static void softmax_same_part(const void *context, int64_t first, int64_t last, int thread) {
    const softmax_same *a = context;
    (void)thread;
    FOR_TYPE(a->x->dtype, softmax_same_rows, a, first, last);
}

static trine_status softmax_same_launch(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    const softmax_same a = { .x = row_tensor(call, SOFTMAX_X),
                             .y = row_tensor(call, SOFTMAX_Y),
                             .s = call->dim[SOFTMAX_DIM_S],
                             .n = call->dim[SOFTMAX_DIM_N],
                             .scale = args->scale,
                             .causal = args->causal };
    const int64_t rows = call->dim[SOFTMAX_DIM_G] * a.s;
    cpu_shares(call, cpu_team(call, rows, row_bytes(call)), rows, softmax_same_part, &a);
    return TRINE_OK;
}
