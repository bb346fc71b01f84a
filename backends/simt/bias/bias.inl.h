/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of the ops of x + bias. */
#ifndef TRINE_SIMT_BIAS_INL_H
#define TRINE_SIMT_BIAS_INL_H

#include "backends/simt/core/columns.inl.h"
#include "backends/simt/core/row.h"
#include "bias.h"

/* The bias of a thread's columns; 0 where there is none. */
template <class T> DEVICE void bias_load(float (&bias)[VECTOR], const simt_rows &from, bool as_f32, const lane &l) {
#pragma unroll
    for (int k = 0; k < VECTOR; k++) bias[k] = 0;
    if (!from.data) return;
    if (sizeof(typename T::bits) == 4 || as_f32)
        load<f32>(bias, from.data, l);
    else
        load<T>(bias, from.data, l);
}

template <class T, bool WHOLE>
DEVICE void bias_store(const float (&v)[VECTOR], const simt_rows &to, int64_t row, const lane &l) {
    if constexpr (WHOLE)
        store_vector<T>(v, row_at<T>(to, row) + l.at);
    else
        store<T>(v, row_at<T>(to, row), l);
}

/* rows.at<WHOLE>(row, l) for those that the thread has a part of. */
template <class Rows> DEVICE void bias_rows(const columns_params &p, const Rows &rows) {
    const columns_place place = columns_place_of(p);
    if (whole(place.l)) {
        for (int64_t row = place.first + place.line; row < place.end; row += COLUMNS_LINES)
            rows.template at<true>(row, place.l);
    } else {
        for (int64_t row = place.first + place.line; row < place.end; row += COLUMNS_LINES)
            rows.template at<false>(row, place.l);
    }
}

/* The entries that add up the partial sums of dbias, by its type. */
#define BIAS_FINISH(op, S) \
    ENTRY(op##_finish_##S, SIMT_THREADS, columns_params) { columns_finish<S>(p); }
#define BIAS_FINISHES(op) BIAS_FINISH(op, f32) BIAS_FINISH(op, bf16) BIAS_FINISH(op, f16)

#endif
