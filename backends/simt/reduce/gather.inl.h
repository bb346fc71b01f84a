/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table in the order of an index, on devices: copied. An id out of range makes all of its row's bits alike:
 * all ones is NaN in every floating-point type. */
#include "gather.h"
#include "backends/simt/core/simt.h"

DEVICE uint32_t missing_bits(const gather_params &p, int64_t id) { return p.pad && id == -1 ? 0 : p.missing; }

template <class Bits, int N, class Integer> DEVICE void gather_units(const gather_params &p, Integer first) {
    Bits unit[GATHER_UNITS][N];
    int64_t token[GATHER_UNITS], at[GATHER_UNITS], id[GATHER_UNITS];
#pragma unroll
    for (int i = 0; i < GATHER_UNITS; i++) {
        const Integer number = first + i * SIMT_THREADS, row = quotient(number, p.row_units);
        token[i] = (int64_t)row, at[i] = (int64_t)(number - row * (Integer)p.row_units.by);
        id[i] = (int64_t)number < p.units ? load_integer(p.ids, p.long_ids, token[i]) : -1;
    }
#pragma unroll
    for (int i = 0; i < GATHER_UNITS; i++) {
#pragma unroll
        for (int k = 0; k < N; k++) unit[i][k] = (Bits)(0 - (uint64_t)(missing_bits(p, id[i]) & 1));
        if (id[i] < 0 || id[i] >= p.v) continue;
        const packed<Bits, N> from = ((const packed<Bits, N> *)p.table.data)[id[i] * p.table.row + at[i]];
#pragma unroll
        for (int k = 0; k < N; k++) unit[i][k] = from.v[k];
    }
#pragma unroll
    for (int i = 0; i < GATHER_UNITS; i++) {
        if ((int64_t)(first + i * SIMT_THREADS) >= p.units) break;
        Bits *const to = (Bits *)p.y.data + (token[i] * p.y.row + at[i]) * N;
        if constexpr (N == 1)
            *to = unit[i][0];
        else
            store_whole(unit[i], to);
    }
}

template <class Bits, int N> DEVICE void gather(const gather_params &p) {
    const int64_t first = block_index() * (SIMT_THREADS * GATHER_UNITS) + thread_index();
    if (divides_fast(p.units + GATHER_UNITS * SIMT_THREADS))
        gather_units<Bits, N>(p, (uint32_t)first);
    else
        gather_units<Bits, N>(p, (uint64_t)first);
}

/* A row for each block. */
DEVICE void gather_row(const gather_params &p) {
    const int64_t token = block_index(), id = load_integer(p.ids, p.long_ids, token);
    const packed<uint32_t, 4> *from = (const packed<uint32_t, 4> *)p.table.data + id * p.table.row;
    uint32_t *to = (uint32_t *)p.y.data + token * p.y.row * 4;
    const uint32_t missing = missing_bits(p, id);
    for (int64_t at = thread_index(); at < p.row_units.by; at += SIMT_THREADS) {
        packed<uint32_t, 4> unit = { { missing, missing, missing, missing } };
        if (id >= 0 && id < p.v) unit = from[at];
        store_whole(unit.v, to + at * 4);
    }
}

/* By units of so many bytes. */
#define GATHER_ENTRY(op, bytes, Bits, N) \
    ENTRY(op##_##bytes, SIMT_THREADS, gather_params) { gather<Bits, N>(p); }
#define GATHER_ENTRIES(op) \
    ENTRY(op##_row, SIMT_THREADS, gather_params) { gather_row(p); } \
    GATHER_ENTRY(op, 2, uint16_t, 1) \
    GATHER_ENTRY(op, 4, uint32_t, 1) \
    GATHER_ENTRY(op, 8, uint64_t, 1) \
    GATHER_ENTRY(op, 16, uint32_t, 4)
