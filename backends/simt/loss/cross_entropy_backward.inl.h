/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on devices: probabilities anew from the saved lse, each vector by itself; where it is too
 * coarse, from the row's sums. A label out of range makes its row NaN. */
#include "cross_entropy_gradient.h"

/* A piece of a row. Its logits are asked for before its label is known, which may leave them out. A row of a coarse lse
 * is one group's, from end to end, since the gradient may overwrite the logits that the sums want. */
template <class T, class Group> DEVICE void cross_entropy_backward(const cross_entropy_params &p) {
    using index = typename Group::index;
    const int64_t task = Group::row();
    if (task >= p.tasks) return;
    const int64_t row = divides_fast(p.tasks) ? (int64_t)quotient((uint32_t)task, p.pieces)
                                              : (int64_t)quotient((uint64_t)task, p.pieces);
    const index at = (index)(task - row * p.pieces.by) * Group::PIECE, n = (index)p.v;
    typename Group::template raw<T> x;
    Group::template load<T>(x, row_at<T>(p.logits, row), at, n);
    const int64_t label = load_integer(p.labels.data, p.long_labels, row);
    const float lse = load_one<f32>(p.lse.data, row);
    if (magnitude(lse) >= COARSE_LSE) {
        if (at == 0) logit_gradient_row<T, Group>(p, row, label, 0, [](const logit_sums &, float) {});
        return;
    }
    gradient_write<T, Group>(p, gradient_of(p, row, label, lse), row, x, at, n);
}

/* As many blocks as an SM or a CU holds without the way of coarse rows, which is seldom taken, and whose registers may
 * spill. */
#define CROSS_ENTROPY_BACKWARD(T) \
    ENTRY_HELD(cross_entropy_backward_##T, SIMT_THREADS, 2048 / SIMT_THREADS, cross_entropy_params) { \
        cross_entropy_backward<T, group<32, GRADIENT_BYTES / (VECTOR * sizeof(T::bits)), true>>(p); \
    } \
    ENTRY_HELD(cross_entropy_backward_ragged_##T, SIMT_THREADS, 2048 / SIMT_THREADS, cross_entropy_params) { \
        cross_entropy_backward<T, group<32, 1, false>>(p); \
    }

CROSS_ENTROPY_BACKWARD(f32)
CROSS_ENTROPY_BACKWARD(bf16)
CROSS_ENTROPY_BACKWARD(f16)
