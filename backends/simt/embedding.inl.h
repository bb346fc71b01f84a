/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on devices: rows are copied. An id out of range makes its row all ones, which is NaN in every type. */
#include "embedding.h"
#include "simt.h"

template <class Unit, class Integer> DEVICE void embedding_units(const embedding_params &p, Integer first) {
    Unit one[EMBEDDING_UNITS];
    int64_t token[EMBEDDING_UNITS], at[EMBEDDING_UNITS], id[EMBEDDING_UNITS];
#pragma unroll
    for (int i = 0; i < EMBEDDING_UNITS; i++) {
        const Integer number = first + i * SIMT_THREADS, row = quotient(number, p.row_units);
        token[i] = (int64_t)row, at[i] = (int64_t)(number - row * (Integer)p.row_units.by);
        id[i] = (int64_t)number < p.units ? load_integer(p.ids, p.long_ids, token[i]) : -1;
    }
#pragma unroll
    for (int i = 0; i < EMBEDDING_UNITS; i++) {
        __builtin_memset(&one[i], 0xff, sizeof one[i]);
        if (id[i] >= 0 && id[i] < p.v) one[i] = ((const Unit *)p.table.data)[id[i] * p.table.row + at[i]];
    }
#pragma unroll
    for (int i = 0; i < EMBEDDING_UNITS; i++)
        if ((int64_t)(first + i * SIMT_THREADS) < p.units) ((Unit *)p.y.data)[token[i] * p.y.row + at[i]] = one[i];
}

template <class Unit> DEVICE void embedding(const embedding_params &p) {
    const int64_t first = block_index() * (SIMT_THREADS * EMBEDDING_UNITS) + thread_index();
    if (divides_fast(p.units + EMBEDDING_UNITS * SIMT_THREADS))
        embedding_units<Unit>(p, (uint32_t)first);
    else
        embedding_units<Unit>(p, (uint64_t)first);
}

using unit16 = packed<uint32_t, 4>;

ENTRY(embedding_2, SIMT_THREADS, embedding_params) { embedding<uint16_t>(p); }
ENTRY(embedding_4, SIMT_THREADS, embedding_params) { embedding<uint32_t>(p); }
ENTRY(embedding_8, SIMT_THREADS, embedding_params) { embedding<uint64_t>(p); }
ENTRY(embedding_16, SIMT_THREADS, embedding_params) { embedding<unit16>(p); }
