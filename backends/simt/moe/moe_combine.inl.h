/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine on devices: a thread has 8 elements of a token, and adds up its slots in their order.
 *
 * NOTES. Floor: the rows that slots name once, y once. */
#include "moe_combine.h"
#include "backends/simt/core/simt.h"

template <class T, class O> DEVICE void combine(const combine_params &p) {
    const int64_t unit = block_index() * SIMT_THREADS + thread_index();
    if (unit >= p.units) return;
    const int64_t token = divides_fast(p.units) ? (int64_t)quotient((uint32_t)unit, p.row_units)
                                                : (int64_t)quotient((uint64_t)unit, p.row_units);
    const lane l = { (unit - token * p.row_units.by) * VECTOR, p.n, p.aligned };
    const int32_t *const places = (const int32_t *)p.places.data + token * p.places.row;
    const float *const weights = p.weights.data ? (const float *)p.weights.data + token * p.weights.row : nullptr;
    float sum[VECTOR] = {};
    for (int32_t a = 0; a < p.k; a++) {
        const int64_t place = places[a];
        if (place < 0 || place >= p.p) continue;
        float x[VECTOR];
        load<T>(x, (const typename T::bits *)p.x.data + place * p.x.row, l);
        const float weight = weights ? weights[a] : 1.0f;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) sum[i] = fused(weight, x[i], sum[i]);
    }
    store<O>(sum, (typename O::bits *)p.y.data + token * p.y.row, l);
}

ENTRY(moe_combine_f32_f32, SIMT_THREADS, combine_params) { combine<f32, f32>(p); }
ENTRY(moe_combine_bf16_bf16, SIMT_THREADS, combine_params) { combine<bf16, bf16>(p); }
ENTRY(moe_combine_bf16_f32, SIMT_THREADS, combine_params) { combine<bf16, f32>(p); }
ENTRY(moe_combine_f16_f16, SIMT_THREADS, combine_params) { combine<f16, f16>(p); }
ENTRY(moe_combine_f16_f32, SIMT_THREADS, combine_params) { combine<f16, f32>(p); }
