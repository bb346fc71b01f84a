/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_masked on devices: 32 threads have a row of weights, and leave at once if no gate is open for it.
 *
 * NOTES. Floor: the rows of w that are needed, once for each four rows of x. */
#include "dots.inl.h"

template <class T, int R> DEVICE void masked(const dots_params &p) {
    const int64_t group = (int64_t)quotient((uint64_t)block_index(), p.blocks),
                  j = (block_index() - group * p.blocks.by) * DOTS_TEAMS + thread_index() / DOTS_TEAM,
                  first = group * R;
    if (j >= p.outputs) return;
    float gate[R];
    bool open = false;
#pragma unroll
    for (int i = 0; i < R; i++) {
        gate[i] = first + i < p.t ? load_one<T>(p.other.data, (first + i) * p.other.row + j) : 0.0f;
        open |= gate[i] != 0;
    }
    dot_sums<R> sums = {};
    if (open) {
        const typename T::bits *x[R];
        dot_rows<T, R>(x, p.x, first, p.t);
        sums = dots<T, R>(x, (const typename T::bits *)p.w.data + j * p.w.row, p.k, p.whole);
    }
    if (thread_index() % DOTS_TEAM != 0) return;
#pragma unroll
    for (int i = 0; i < R; i++)
        if (first + i < p.t)
            store_one<T>(p.y.data, (first + i) * p.y.row + j, gate[i] != 0 ? product(gate[i], sums.of[i]) : 0.0f);
}

#define MASKED_ENTRIES(T) \
    ENTRY(matvec_masked_##T##_1, SIMT_THREADS, dots_params) { masked<T, 1>(p); } \
    ENTRY(matvec_masked_##T##_4, SIMT_THREADS, dots_params) { masked<T, DOTS_FEW>(p); }
MASKED_ENTRIES(f32)
MASKED_ENTRIES(bf16)
MASKED_ENTRIES(f16)
