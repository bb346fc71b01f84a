/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on devices: rows are copied. An id out of range makes its row all ones, which is NaN in every type. */
#include "embedding.h"
#include "backends/simt/core/simt.h"

template <class Bits, int N, class Integer> DEVICE void embedding_units(const embedding_params &p, Integer first) {
    Bits unit[EMBEDDING_UNITS][N];
    int64_t token[EMBEDDING_UNITS], at[EMBEDDING_UNITS], id[EMBEDDING_UNITS];
#pragma unroll
    for (int i = 0; i < EMBEDDING_UNITS; i++) {
        const Integer number = first + i * SIMT_THREADS, row = quotient(number, p.row_units);
        token[i] = (int64_t)row, at[i] = (int64_t)(number - row * (Integer)p.row_units.by);
        id[i] = (int64_t)number < p.units ? load_integer(p.ids, p.long_ids, token[i]) : -1;
    }
#pragma unroll
    for (int i = 0; i < EMBEDDING_UNITS; i++) {
#pragma unroll
        for (int k = 0; k < N; k++) unit[i][k] = (Bits) ~(Bits)0;
        if (id[i] < 0 || id[i] >= p.v) continue;
        const packed<Bits, N> from = ((const packed<Bits, N> *)p.table.data)[id[i] * p.table.row + at[i]];
#pragma unroll
        for (int k = 0; k < N; k++) unit[i][k] = from.v[k];
    }
#pragma unroll
    for (int i = 0; i < EMBEDDING_UNITS; i++) {
        if ((int64_t)(first + i * SIMT_THREADS) >= p.units) break;
        Bits *const to = (Bits *)p.y.data + (token[i] * p.y.row + at[i]) * N;
        if constexpr (N == 1)
            *to = unit[i][0];
        else
            store_whole(unit[i], to);
    }
}

template <class Bits, int N> DEVICE void embedding(const embedding_params &p) {
    const int64_t first = block_index() * (SIMT_THREADS * EMBEDDING_UNITS) + thread_index();
    if (divides_fast(p.units + EMBEDDING_UNITS * SIMT_THREADS))
        embedding_units<Bits, N>(p, (uint32_t)first);
    else
        embedding_units<Bits, N>(p, (uint64_t)first);
}

/* A row for each block. */
ENTRY(embedding_row, SIMT_THREADS, embedding_params) {
    const int64_t token = block_index(), id = load_integer(p.ids, p.long_ids, token);
    const packed<uint32_t, 4> *from = (const packed<uint32_t, 4> *)p.table.data + id * p.table.row;
    uint32_t *to = (uint32_t *)p.y.data + token * p.y.row * 4;
    for (int64_t at = thread_index(); at < p.row_units.by; at += SIMT_THREADS) {
        packed<uint32_t, 4> unit = { { ~0u, ~0u, ~0u, ~0u } };
        if (id >= 0 && id < p.v) unit = from[at];
        store_whole(unit.v, to + at * 4);
    }
}

ENTRY(embedding_2, SIMT_THREADS, embedding_params) { embedding<uint16_t, 1>(p); }
ENTRY(embedding_4, SIMT_THREADS, embedding_params) { embedding<uint32_t, 1>(p); }
ENTRY(embedding_8, SIMT_THREADS, embedding_params) { embedding<uint64_t, 1>(p); }
ENTRY(embedding_16, SIMT_THREADS, embedding_params) { embedding<uint32_t, 4>(p); }
