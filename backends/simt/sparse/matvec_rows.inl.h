/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_rows on devices: 32 threads have an output, or where rows of x have one list those of four.
 *
 * NOTES. Floor: the rows of w that are named, once for each list or each four rows of x. */
#include "dots.inl.h"

template <class T, int R> DEVICE void named_rows(const dots_params &p) {
    const int64_t group = (int64_t)quotient((uint64_t)block_index(), p.blocks),
                  a = (block_index() - group * p.blocks.by) * DOTS_TEAMS + thread_index() / DOTS_TEAM,
                  first = group * R;
    if (a >= p.outputs) return;
    const int64_t place = load_integer(p.other.data, p.long_ids, first * p.other.row + a * p.step);
    const bool there = place >= 0 && place < p.rows;
    dot_sums<R> sums = {};
    float bias = 0;
    if (there) {
        const typename T::bits *x[R];
        dot_rows<T, R>(x, p.x, first, p.t);
        sums = dots<T, R>(x, (const typename T::bits *)p.w.data + place * p.w.row, p.k, p.whole);
        if (p.bias) bias = load_one<T>(p.bias, place);
    }
    if (thread_index() % DOTS_TEAM != 0) return;
#pragma unroll
    for (int i = 0; i < R; i++) {
        if (first + i >= p.t) break;
        const float y = there ? sums.of[i] + bias : p.pad && place == -1 ? 0.0f : not_a_number();
        if (p.wide)
            store_one<f32>(p.y.data, (first + i) * p.y.row + a, y);
        else
            store_one<T>(p.y.data, (first + i) * p.y.row + a, y);
    }
}

#define NAMED_ENTRIES(T) \
    ENTRY(matvec_rows_##T##_1, SIMT_THREADS, dots_params) { named_rows<T, 1>(p); } \
    ENTRY(matvec_rows_##T##_4, SIMT_THREADS, dots_params) { named_rows<T, DOTS_FEW>(p); }
NAMED_ENTRIES(f32)
NAMED_ENTRIES(bf16)
NAMED_ENTRIES(f16)
