/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_parallel_cross_entropy on devices: the sums of a rank's part of each row, which all ranks get; from these the
 * row's loss; and the part of the gradient. A label out of range, or that is not the same for all ranks, makes both
 * NaN. */
#include "exchange.inl.h"
#include "vocab_parallel_cross_entropy.h"
#include "backends/simt/loss/cross_entropy_gradient.h"

template <class T, class Group> DEVICE void vocab_parallel_cross_entropy_sums_row(const vocab_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.all.rows) return;
    const index n = (index)p.v;
    logit_sums own = no_logits();
    for (index at = 0; at < n; at += Group::PIECE) {
        float x[Group::VECTORS][VECTOR];
        Group::template load<T>(x, row_at<T>(p.all.logits, row), at, n);
        logit_sums_add<Group>(own, p.all, x, at, n);
    }
    const logit_sums s = group_logits<Group::SIZE>(own, p.all);
    if (Group::rank() != 0) return;
    const int64_t label = load_integer(p.all.labels.data, p.all.long_labels, row), place = label - p.first;
    const float at_label = place >= 0 && place < p.v ? load_one<T>(row_at<T>(p.all.logits, row), place) : 0.0f;
    p.told[row] = { s.origin, s.sum, s.total, s.count, at_label, 0, label };
}

template <class T> constexpr int vocab_parallel_cross_entropy_sums_held(int) { return 1; }

ROW_ENTRIES_STREAM(vocab_parallel_cross_entropy_sums, vocab_params, ROW_VECTORS, f32)
ROW_ENTRIES_STREAM(vocab_parallel_cross_entropy_sums, vocab_params, ROW_VECTORS, bf16)
ROW_ENTRIES_STREAM(vocab_parallel_cross_entropy_sums, vocab_params, ROW_VECTORS, f16)

EXCHANGE_ENTRY(vocab_parallel_cross_entropy_8, copy_rows<uint64_t>)

/* All ranks' sums are moved to the largest origin, once, and added up in float64. */
ENTRY(vocab_parallel_cross_entropy_losses, SIMT_THREADS, vocab_params) {
    const int64_t row = block_index() * SIMT_THREADS + thread_index(), rows = p.all.rows;
    if (row >= rows) return;
    const vocab_told *by = p.by + row;
    const int64_t label = by[0].label;
    float origin = by[0].origin;
    bool alike = true;
    for (int q = 1; q < p.ranks; q++) {
        origin = larger(origin, by[q * rows].origin);
        alike = alike && by[q * rows].label == label;
    }
    double sum = 0, total = 0;
    for (int q = 0; q < p.ranks; q++) {
        const vocab_told &s = by[q * rows];
        const float down = s.origin - origin;
        sum += down == 0 ? (double)s.sum : (double)s.sum * exp2_approx(down * p.all.base2);
        total += (double)s.total / TOTAL_UNIT + (double)s.count * down;
    }
    const logit_sums all = { origin, (float)sum, 0, 0 };
    const bool good = alike && (is_class(p.all, label) || label == p.all.ignore);
    const float at_label = alike && is_class(p.all, label) ? by[label / p.v * rows].at_label : 0.0f;
    loss_store(p.all, row, label, at_label, all, { 1, 1 }, total);
    if (!good) store_one<f32>(p.all.loss.data, row, not_a_number());
    p.row[row] = { lse_of(p.all, all), label, origin, 1 / all.sum, !good };
}

template <class T, bool NARROW, class Group> DEVICE void vocab_gradient(const vocab_params &p) {
    using index = typename Group::index;
    const int64_t task = Group::row();
    if (task >= p.all.tasks) return;
    const int64_t row = divides_fast(p.all.tasks) ? (int64_t)quotient((uint32_t)task, p.all.pieces)
                                                  : (int64_t)quotient((uint64_t)task, p.all.pieces);
    const index at = (index)(task - row * p.all.pieces.by) * Group::PIECE, n = (index)p.v;
    typename Group::template raw<T> x;
    Group::template load<T>(x, row_at<T>(p.all.logits, row), at, n);
    const vocab_row s = p.row[row];
    row_gradient g = gradient_of(p.all, row, s.label, { 1, 1 }, s.origin, s.inverse, s.lse);
    if (s.void_label) g.gain = not_a_number(), g.ignored = false;
    g.label -= p.first;
    gradient_write<T, NARROW, Group>(p.all, g, row, x, at, n);
}

#define VOCAB_GRADIENT(name, T, NARROW) \
    ENTRY_HELD(name##_##T, SIMT_THREADS, 2048 / SIMT_THREADS, vocab_params) { \
        vocab_gradient<T, NARROW, group<32, GRADIENT_BYTES / (VECTOR * sizeof(T::bits)), true>>(p); \
    } \
    ENTRY_HELD(name##_ragged_##T, SIMT_THREADS, 2048 / SIMT_THREADS, vocab_params) { \
        vocab_gradient<T, NARROW, group<32, 1, false>>(p); \
    }

VOCAB_GRADIENT(vocab_parallel_cross_entropy_gradient, f32, false)
VOCAB_GRADIENT(vocab_parallel_cross_entropy_gradient, bf16, false)
VOCAB_GRADIENT(vocab_parallel_cross_entropy_gradient, f16, false)
VOCAB_GRADIENT(vocab_parallel_cross_entropy_narrow_gradient, f32, true)
