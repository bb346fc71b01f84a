/* SPDX-License-Identifier: Apache-2.0 */
/* What l1_norm and its gradient share on devices: a block has a row, which it reads again for each pass. */
#ifndef TRINE_SIMT_L1_NORM_ROWS_INL_H
#define TRINE_SIMT_L1_NORM_ROWS_INL_H

#include "backends/simt/core/columns.inl.h"
#include "backends/simt/core/row.h"
#include "l1_norm.h"

/* Body(l) for each vector of a row that a thread has. */
template <class Body> DEVICE void l1_each(int64_t n, bool aligned, const Body &body) {
    for (int64_t at = thread_index() * VECTOR; at < n; at += SIMT_THREADS * VECTOR) body(lane{ at, n, aligned });
}

/* Of a vector's columns; 1 or 0 where there is no such tensor. */
template <class T>
DEVICE void l1_columns(float (&v)[VECTOR], const void *from, bool as_f32, float absent, const lane &l) {
#pragma unroll
    for (int k = 0; k < VECTOR; k++) v[k] = absent;
    if (!from) return;
    if (sizeof(typename T::bits) == 4 || as_f32)
        load<f32>(v, from, l);
    else
        load<T>(v, from, l);
}

#endif
