/* SPDX-License-Identifier: Apache-2.0 */
/* What pack_strided and unpack_strided share on devices: a thread has a word, whose place follows from its number.
 *
 * NOTES. Floor: the blocks once, packed once; short runs cost whole sectors of x. */
#ifndef TRINE_SIMT_STRIDED_INL_H
#define TRINE_SIMT_STRIDED_INL_H

#include "strided.h"
#include "backends/simt/core/simt.h"

/* A word of so many bytes. */
template <int BYTES> struct strided_word;
template <> struct strided_word<1> {
    using type = uint8_t;
};
template <> struct strided_word<2> {
    using type = uint16_t;
};
template <> struct strided_word<4> {
    using type = uint32_t;
};
template <> struct strided_word<8> {
    using type = uint64_t;
};

template <int BYTES> DEVICE void strided_copy(void *to, int64_t at, const void *from, int64_t there) {
    if constexpr (BYTES == 16) {
        const packed<uint32_t, 4> x = ((const packed<uint32_t, 4> *)from)[there];
        store_words((uint32_t *)to + 4 * at, x.v[0], x.v[1], x.v[2], x.v[3]);
    } else {
        using word = typename strided_word<BYTES>::type;
        ((word *)to)[at] = ((const word *)from)[there];
    }
}
template <int BYTES> DEVICE void strided_zero(void *to, int64_t at) {
    if constexpr (BYTES == 16)
        store_words((uint32_t *)to + 4 * at, 0, 0, 0, 0);
    else
        ((typename strided_word<BYTES>::type *)to)[at] = 0;
}

/* Where a run begins. */
struct strided_row {
    int64_t x, packed;

    DEVICE strided_row(const strided_params &p, int64_t row, bool fast) {
        x = p.start, packed = 0;
#pragma unroll
        for (int d = 0; d < STRIDED_LEVELS; d++) {
            if (d >= p.levels) break;
            const int64_t rest = fast ? (int64_t)quotient((uint32_t)row, p.count[d]) : row / p.count[d].by,
                          at = row - rest * p.count[d].by;
            x += at * p.step[d], packed += at * p.packed_step[d];
            row = rest;
        }
    }
};

template <int BYTES, bool PACK> DEVICE void strided_one(const strided_params &p, int64_t x, int64_t packed) {
    const bool there = x >= 0 && x < p.n;
    if (PACK && there)
        strided_copy<BYTES>(p.packed, packed, p.x, x);
    else if (PACK)
        strided_zero<BYTES>(p.packed, packed);
    else if (there)
        strided_copy<BYTES>(p.x, x, p.packed, packed);
}

/* Where runs may lie over each other a place of x belongs to one thread, which writes to it in the order of packed. */
template <int BYTES> DEVICE void strided_in_order(const strided_params &p) {
    const int64_t threads = (int64_t)p.ordered * SIMT_THREADS, own = block_index() * SIMT_THREADS + thread_index();
    for (int64_t row = 0; row < p.rows; row++) {
        const strided_row at(p, row, divides_fast(p.rows));
        int64_t first = (own - at.x) % threads;
        first += first < 0 ? threads : 0;
        for (int64_t i = first; i < p.run.by; i += threads) strided_one<BYTES, false>(p, at.x + i, at.packed + i);
    }
}

template <int BYTES, bool PACK> DEVICE void strided(const strided_params &p) {
    if constexpr (!PACK) {
        if (p.ordered > 0) {
            strided_in_order<BYTES>(p);
            return;
        }
    }
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.words) return;
    const bool fast = divides_fast(p.words);
    const int64_t row = fast ? (int64_t)quotient((uint32_t)number, p.run) : number / p.run.by,
                  i = number - row * p.run.by;
    const strided_row at(p, row, fast);
    strided_one<BYTES, PACK>(p, at.x + i, at.packed + i);
}

#define STRIDED_ENTRY(op, bytes, pack) \
    ENTRY(op##_##bytes, SIMT_THREADS, strided_params) { strided<bytes, pack>(p); }
#define STRIDED_ENTRIES(op, pack) \
    STRIDED_ENTRY(op, 1, pack) \
    STRIDED_ENTRY(op, 2, pack) \
    STRIDED_ENTRY(op, 4, pack) \
    STRIDED_ENTRY(op, 8, pack) \
    STRIDED_ENTRY(op, 16, pack)

#endif
