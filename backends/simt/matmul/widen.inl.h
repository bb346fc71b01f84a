/* SPDX-License-Identifier: Apache-2.0 */
/* Float8 rewritten as f16, which holds all values of e4m3 and e5m2 exactly: what matrix units without float8 multiply.
 * Rows end with zeros.
 *
 * NOTES. Floor: 3 bytes an element. */
#ifndef TRINE_SIMT_WIDEN_INL_H
#define TRINE_SIMT_WIDEN_INL_H

#include "backends/simt/core/float8.h"
#include "widen.h"

/* A thread has 8 elements. */
template <class T> DEVICE void simt_widen(const simt_widen_params &p) {
    const int64_t vectors = p.pitch / VECTOR, index = block_index() * SIMT_WIDEN_THREADS + thread_index(),
                  line = index / vectors, at = (index - line * vectors) * VECTOR;
    if (line >= p.batches * p.rows) return;
    const int64_t batch = line / p.rows, row = line - batch * p.rows;
    uint8_t x[VECTOR];
    uint16_t y[VECTOR];
    load_bits(x, (const uint8_t *)p.from + batch * p.batch + row * p.row, { at, p.columns, p.aligned });
#pragma unroll
    for (int k = 0; k < VECTOR; k++) y[k] = f16::put(T::get(x[k]));
    store_whole(y, (uint16_t *)p.to + line * p.pitch + at);
}

#endif
