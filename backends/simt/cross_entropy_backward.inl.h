/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on devices: probabilities anew from the saved lse, each vector by itself. A label out of range makes its row NaN. */
#include "cross_entropy.h"
#include "simt.h"

/* What the elements of a row share: gain (2^(base2 x - lse) factor - spread), lse being of base 2. */
struct row_gradient {
    float lse, gain, factor, spread, at_label;
};

DEVICE row_gradient gradient_of(const cross_entropy_params &p, int64_t row, bool valid) {
    const float lse = load_one<f32>(p.lse.data, row);
    const double spread = p.smoothing / (double)p.v;
    return {
        (float)(lse * 1.4426950408889634),
        valid ? load_one<f32>(p.dloss.data, row) * p.scale : not_a_number(),
        p.z_loss > 0 ? (float)(1 + 2.0 * p.z_loss * lse) : 1.0f, /* not 1 + 0 * Inf */
        (float)spread,
        (float)(1 - p.smoothing + spread),
    };
}

template <class T> DEVICE void cross_entropy_backward(const cross_entropy_params &p) {
    const int64_t per_row = (p.v + SIMT_THREADS * VECTOR - 1) / (SIMT_THREADS * VECTOR), row = block_index() / per_row;
    const lane l = { ((block_index() - row * per_row) * SIMT_THREADS + thread_index()) * VECTOR, p.v, p.wide };
    if (!within(l, 0)) return;
    const int64_t label = load_integer(p.labels.data, p.long_labels, row);
    float x[VECTOR] = {};
    if (label != p.ignore) {
        const row_gradient g = gradient_of(p, row, label >= 0 && label < p.v);
        load<T>(x, (const typename T::bits *)p.logits.data + row * p.logits.row, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++)
            x[k] = g.gain * fused(exp2_approx(fused(x[k], p.base2, -g.lse)), g.factor, -(l.at + k == label ? g.at_label : g.spread));
    }
    store<T>(x, (typename T::bits *)p.dlogits.data + row * p.dlogits.row, l);
}

#define CROSS_ENTROPY_BACKWARD(T) \
    ENTRY(cross_entropy_backward_##T, SIMT_THREADS, cross_entropy_params) { cross_entropy_backward<T>(p); }

CROSS_ENTROPY_BACKWARD(f32)
CROSS_ENTROPY_BACKWARD(bf16)
CROSS_ENTROPY_BACKWARD(f16)
