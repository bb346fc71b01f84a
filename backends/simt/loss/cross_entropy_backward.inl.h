/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on devices: probabilities anew from the saved lse, each vector by itself; where it is too
 * coarse, from the row's sums. A label out of range makes its row NaN. */
#include "cross_entropy_gradient.h"
#include "cross_entropy_weighted.h"

/* A row of a coarse lse, by one group from end to end, since the gradient may overwrite the logits that the sums want.
 * Such rows are rare: an element at a time takes few registers from the others. */
template <class T, bool NARROW, int SIZE>
DEVICE void coarse_gradient_row(const cross_entropy_params &p, int64_t row, int64_t label) {
    const typename T::bits *logits = row_at<T>(p.logits, row);
    const int rank = thread_index() % SIZE;
    logit_sums own = no_logits();
    for (int64_t k = rank; k < p.v; k += SIZE) logit_sums_add(own, p, product(load_one<T>(logits, k), p.f));
    const row_gradient g = gradient_of(p, row, label, group_logits<SIZE>(own, p));
    for (int64_t k = rank; k < p.v; k += SIZE) {
        const float d = gradient_at(p, g, load_one<T>(logits, k), k == label ? g.at_label : p.spread);
        gradient_row<T, NARROW>(p, row)[k] = gradient_bits<T, NARROW>(p, g.ignored ? 0.0f : d);
    }
}

/* A piece of a row. Its logits are asked for before its label is known, which may leave them out. */
template <class T, bool NARROW, class Group> DEVICE void cross_entropy_backward(const cross_entropy_params &p) {
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
        if (at == 0) coarse_gradient_row<T, NARROW, Group::SIZE>(p, row, label);
        return;
    }
    gradient_write<T, NARROW, Group>(p, gradient_of(p, row, label, weight_of(p, label), lse), row, x, at, n);
}

/* As many blocks as an SM or a CU holds without the way of coarse rows, which is seldom taken. */
#define CROSS_ENTROPY_BACKWARD(name, T, NARROW) \
    ENTRY_HELD(name##_##T, SIMT_THREADS, 2048 / SIMT_THREADS, cross_entropy_params) { \
        cross_entropy_backward<T, NARROW, group<32, GRADIENT_BYTES / (VECTOR * sizeof(T::bits)), true>>(p); \
    } \
    ENTRY_HELD(name##_ragged_##T, SIMT_THREADS, 2048 / SIMT_THREADS, cross_entropy_params) { \
        cross_entropy_backward<T, NARROW, group<32, 1, false>>(p); \
    }

CROSS_ENTROPY_BACKWARD(cross_entropy_backward, f32, false)
CROSS_ENTROPY_BACKWARD(cross_entropy_backward, bf16, false)
CROSS_ENTROPY_BACKWARD(cross_entropy_backward, f16, false)
CROSS_ENTROPY_BACKWARD(cross_entropy_backward_narrow, f32, true)

ENTRY(cross_entropy_backward_weighted, SIMT_THREADS, cross_entropy_params) { cross_entropy_backward_weighted_row(p); }
