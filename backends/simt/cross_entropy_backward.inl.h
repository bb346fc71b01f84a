/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on devices: probabilities anew from the saved lse, each vector by itself. A label out of range makes its row NaN. */
#include "cross_entropy.h"
#include "row.h"

/* What the elements of a row share: gain (2^(base2 x - lse) factor - spread), lse being of base 2. */
struct row_gradient {
    float lse, gain, factor;
};

DEVICE row_gradient gradient_of(const cross_entropy_params &p, float lse, float dloss, bool valid) {
    return {
        (float)(lse * 1.4426950408889634), valid ? dloss * p.scale : not_a_number(),
        p.z_loss > 0 ? fused(p.twice_z_loss, lse, 1.0f) : 1.0f, /* not 1 + 0 * Inf */
    };
}

/* A piece of a row. Its logits are asked for before its label is known, which may leave them out. */
template <class T, class Group> DEVICE void cross_entropy_backward(const cross_entropy_params &p) {
    using index = typename Group::index;
    const int64_t task = Group::row();
    if (task >= p.tasks) return;
    const int64_t row = p.tasks <= 0xffffffff ? (int64_t)((uint32_t)task / (uint32_t)p.pieces) : task / p.pieces;
    const index at = (index)(task - row * p.pieces) * Group::PIECE, n = (index)p.v;
    typename Group::template raw<T> x;
    Group::template load<T>(x, row_at<T>(p.logits, row), at, n);
    const int64_t label = load_integer(p.labels.data, p.long_labels, row);
    const row_gradient g = gradient_of(p, load_one<f32>(p.lse.data, row), load_one<f32>(p.dloss.data, row), label >= 0 && label < p.v);
    const bool ignored = label == p.ignore;
    Group::each(at, n, [&](int v, const typename Group::lane &l) {
        const int64_t distance = label - l.at;
        const int at_label = distance >= 0 && distance < VECTOR ? (int)distance : -1;
        float d[VECTOR];
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            const float power = exp2_approx(fused(x[v].get(k), p.base2, -g.lse));
            d[k] = ignored ? 0.0f : g.gain * fused(power, g.factor, -(k == at_label ? p.at_label : p.spread));
        }
        put<T>(d, row_at<T>(p.dlogits, row), l);
    });
}

#define CROSS_ENTROPY_BACKWARD(T) \
    ENTRY(cross_entropy_backward_##T, SIMT_THREADS, cross_entropy_params) { \
        cross_entropy_backward<T, group<32, GRADIENT_BYTES / (VECTOR * sizeof(T::bits)), true>>(p); \
    } \
    ENTRY(cross_entropy_backward_ragged_##T, SIMT_THREADS, cross_entropy_params) { cross_entropy_backward<T, group<32, 1, false>>(p); }

CROSS_ENTROPY_BACKWARD(f32)
CROSS_ENTROPY_BACKWARD(bf16)
CROSS_ENTROPY_BACKWARD(f16)
