/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of a row of a matrix with a few vectors, on devices: 32 threads have a row, each every 32nd vector of 8
 * elements, and the row is read once. Of matvec_masked and matvec_rows. */
#ifndef TRINE_SIMT_DOTS_INL_H
#define TRINE_SIMT_DOTS_INL_H

#include "dots.h"
#include "backends/simt/core/simt.h"

template <int R> struct dot_sums {
    float of[R];
    DEVICE friend dot_sums operator+(dot_sums a, const dot_sums &b) {
#pragma unroll
        for (int i = 0; i < R; i++) a.of[i] += b.of[i];
        return a;
    }
};

template <class T, int R, bool WHOLE>
DEVICE void dot_add(dot_sums<R> &sums, const typename T::bits *const (&x)[R], const typename T::bits *w,
                    const lane &l) {
    float weight[VECTOR];
    load_lane<T, WHOLE>(weight, w, l);
#pragma unroll
    for (int i = 0; i < R; i++) {
        float v[VECTOR];
        load_lane<T, WHOLE>(v, x[i], l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sums.of[i] = fused(v[k], weight[k], sums.of[i]);
    }
}

/* `whole`: rows are aligned, and k is a multiple of 8. Every thread of the team gets the sums. */
template <class T, int R>
DEVICE dot_sums<R> dots(const typename T::bits *const (&x)[R], const typename T::bits *w, int64_t k, bool whole) {
    const int64_t first = thread_index() % DOTS_TEAM * VECTOR;
    [[maybe_unused]] constexpr int AHEAD = R == 1 ? 4 : 2; /* of a row, on their way at a time */
    dot_sums<R> sums = {};
    if (whole) {
#pragma unroll AHEAD
        for (int64_t at = first; at < k; at += DOTS_TEAM * VECTOR) dot_add<T, R, true>(sums, x, w, { at, k, true });
    } else {
#pragma unroll 1
        for (int64_t at = first; at < k; at += DOTS_TEAM * VECTOR) dot_add<T, R, false>(sums, x, w, { at, k, false });
    }
    return group_sum<DOTS_TEAM>(sums);
}

/* The rows of x from `first` on, of `rows`; where there are fewer, the last one again. */
template <class T, int R>
DEVICE void dot_rows(const typename T::bits *(&x)[R], const simt_rows &from, int64_t first, int64_t rows) {
#pragma unroll
    for (int i = 0; i < R; i++)
        x[i] = (const typename T::bits *)from.data + (first + i < rows ? first + i : rows - 1) * from.row;
}

#endif
