/* SPDX-License-Identifier: Apache-2.0 */
/* argsort on devices, by digits of the elements' orders from the lowest on. A tile is sorted in shared memory, four
 * bits at a time: a thread counts those of its own elements, and what the threads before have says where they go. A row
 * of one tile is done by that. Of a longer one each block sorts its tiles by the 8 bits of a digit, counts them in a
 * launch, and in another moves them behind those of lower digits and of the blocks before.
 *
 * NOTES. Floor of a long row: each byte of an order costs three times its orders and twice its places. A tile is sorted
 * twice for each, since counting needs no less: there are no atomics, so that the order of threads means nothing. */
#include "argsort.h"
#include "backends/simt/core/before.h"

enum { ARGSORT_BITS = 4, ARGSORT_COUNTS = 1 << ARGSORT_BITS };

/* Larger numbers for elements that come later: those of -0 and 0 are equal, and NaN's is the largest. */
template <class K> DEVICE K argsort_order(const argsort_params &p, K bits) {
    const K sign = (K)((K)1 << (8 * sizeof(K) - 1)), all = (K) ~(K)0, magnitude = (K)(bits & (K)~sign);
    K order = (K)(bits ^ sign);
    if (p.infinity) {
        order = bits & sign ? (K)~bits : (K)(bits | sign);
        order = magnitude == 0 ? sign : magnitude > (K)p.infinity ? all : order;
    }
    return p.descending ? (K)~order : order;
}

template <class K> DEVICE const K *argsort_row(const argsort_params &p, int64_t row) {
    return (const K *)p.x.data + row * p.x.row;
}

/* Place j of a row's result is element `at`. */
template <class K> DEVICE void argsort_put(const argsort_params &p, int64_t row, int64_t j, uint32_t at) {
    if (p.long_indices)
        ((int64_t *)p.indices.data + row * p.indices.row)[j] = at;
    else
        ((int32_t *)p.indices.data + row * p.indices.row)[j] = (int32_t)at;
    if (p.values.data) ((K *)p.values.data + row * p.values.row)[j] = argsort_row<K>(p, row)[at];
}

template <class K, int ITEMS> struct argsort_tile {
    K order[ITEMS * SIMT_THREADS];
    uint32_t at[ITEMS * SIMT_THREADS];
    uint16_t count[ARGSORT_COUNTS * SIMT_THREADS]; /* of each four bits the threads', then where the next one goes */
};

/* By the bits low .. end-1; equals stay in their order. */
template <class K, int ITEMS> DEVICE void argsort_bits(argsort_tile<K, ITEMS> &tile, int low, int end) {
    const int thread = thread_index();
    for (; low < end; low += ARGSORT_BITS) {
        K own[ITEMS];
        uint32_t at[ITEMS];
        sync_block();
#pragma unroll
        for (int v = 0; v < ITEMS; v++) own[v] = tile.order[thread * ITEMS + v], at[v] = tile.at[thread * ITEMS + v];
#pragma unroll
        for (int d = 0; d < ARGSORT_COUNTS; d++) tile.count[d * SIMT_THREADS + thread] = 0;
#pragma unroll
        for (int v = 0; v < ITEMS; v++)
            tile.count[(int)(own[v] >> low & (ARGSORT_COUNTS - 1)) * SIMT_THREADS + thread]++;
        sync_block();
        uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < ARGSORT_COUNTS; i++) sum += tile.count[thread * ARGSORT_COUNTS + i];
        uint32_t next = sum_before(sum);
#pragma unroll
        for (int i = 0; i < ARGSORT_COUNTS; i++) {
            const uint32_t many = tile.count[thread * ARGSORT_COUNTS + i];
            tile.count[thread * ARGSORT_COUNTS + i] = (uint16_t)next;
            next += many;
        }
        sync_block();
#pragma unroll
        for (int v = 0; v < ITEMS; v++) {
            const int place = tile.count[(int)(own[v] >> low & (ARGSORT_COUNTS - 1)) * SIMT_THREADS + thread]++;
            tile.order[place] = own[v], tile.at[place] = at[v];
        }
    }
    sync_block();
}

/* A row of one tile. What is missing to a whole tile comes behind all others. */
template <class K, int ITEMS> DEVICE void argsort_whole(const argsort_params &p) {
    SHARED argsort_tile<K, ITEMS> tile;
    const int64_t row = block_index();
    const K *const from = argsort_row<K>(p, row);
    for (int i = thread_index(); i < ITEMS * SIMT_THREADS; i += SIMT_THREADS) {
        tile.order[i] = i < p.n ? argsort_order(p, from[i]) : (K) ~(K)0;
        tile.at[i] = (uint32_t)i;
    }
    argsort_bits(tile, 0, 8 * (int)sizeof(K));
    for (int i = thread_index(); i < p.n; i += SIMT_THREADS) argsort_put<K>(p, row, i, tile.at[i]);
}

/* A block's elements of a long row, tile by tile. */
template <class K> struct argsort_block {
    argsort_tile<K, ARGSORT_ITEMS> tile;
    uint32_t next[ARGSORT_DIGITS];                       /* of each digit, where the next element goes */
    uint16_t first[ARGSORT_DIGITS], end[ARGSORT_DIGITS]; /* of each digit, its elements of the tile */
};

template <class K> DEVICE int argsort_digit(const argsort_params &p, K order) {
    return (int)(order >> (ARGSORT_DIGIT * p.pass) & (ARGSORT_DIGITS - 1));
}

/* `count` elements from `first` on, sorted by the pass's digit. */
template <class K>
DEVICE void argsort_load(const argsort_params &p, argsort_block<K> &b, int64_t row, int64_t first, int count) {
    const int thread = thread_index(), turn = (p.pass + 1) % 2;
    const K *const order = (const K *)p.order[turn] + row * p.n + first;
    const uint32_t *const at = p.at[turn] + row * p.n + first;
    for (int i = thread; i < ARGSORT_TILE; i += SIMT_THREADS) {
        K own = (K) ~(K)0;
        uint32_t place = 0;
        if (i < count && p.pass == 0)
            own = argsort_order(p, argsort_row<K>(p, row)[first + i]), place = (uint32_t)(first + i);
        else if (i < count)
            own = order[i], place = at[i];
        b.tile.order[i] = own, b.tile.at[i] = place;
    }
    b.first[thread] = b.end[thread] = 0;
    argsort_bits(b.tile, ARGSORT_DIGIT * p.pass, ARGSORT_DIGIT * (p.pass + 1));
    for (int i = thread; i < count; i += SIMT_THREADS) {
        const int digit = argsort_digit(p, b.tile.order[i]);
        if (i == 0 || argsort_digit(p, b.tile.order[i - 1]) != digit) b.first[digit] = (uint16_t)i;
        if (i + 1 == count || argsort_digit(p, b.tile.order[i + 1]) != digit) b.end[digit] = (uint16_t)(i + 1);
    }
    sync_block();
}

/* Body(row, count) for each tile of the block, whose first elements are `count` sorted ones. */
template <class K, class Body> DEVICE void argsort_tiles(const argsort_params &p, argsort_block<K> &b, Body body) {
    const int64_t row = block_index() / p.blocks, begin = block_index() % p.blocks * p.length,
                  end = begin + p.length < p.n ? begin + p.length : p.n;
    for (int64_t first = begin; first < end; first += ARGSORT_TILE) {
        const int count = end - first < ARGSORT_TILE ? (int)(end - first) : (int)ARGSORT_TILE;
        argsort_load(p, b, row, first, count);
        body(row, count);
        sync_block();
        b.next[thread_index()] += (uint32_t)(b.end[thread_index()] - b.first[thread_index()]);
        sync_block();
    }
}

template <class K> DEVICE void argsort_count(const argsort_params &p) {
    SHARED argsort_block<K> b;
    b.next[thread_index()] = 0;
    argsort_tiles(p, b, [](int64_t, int) {});
    p.count[block_index() * ARGSORT_DIGITS + thread_index()] = b.next[thread_index()];
}

template <class K> DEVICE void argsort_move(const argsort_params &p) {
    SHARED argsort_block<K> b;
    const int64_t own = block_index() % p.blocks;
    const uint32_t *const counts = p.count + (block_index() - own) * ARGSORT_DIGITS + thread_index();
    uint32_t before = 0, all = 0;
#pragma unroll 16
    for (int64_t block = 0; block < p.blocks; block++) {
        const uint32_t count = counts[block * ARGSORT_DIGITS];
        all += count;
        before += block < own ? count : 0;
    }
    b.next[thread_index()] = sum_before(all) + before;
    argsort_tiles(p, b, [&](int64_t row, int count) {
        K *const order = (K *)p.order[p.pass % 2] + row * p.n;
        uint32_t *const at = p.at[p.pass % 2] + row * p.n;
        for (int i = thread_index(); i < count; i += SIMT_THREADS) {
            const K one = b.tile.order[i];
            const int digit = argsort_digit(p, one);
            const int64_t place = (int64_t)b.next[digit] + (i - b.first[digit]);
            if (p.last)
                argsort_put<K>(p, row, place, b.tile.at[i]);
            else
                order[place] = one, at[place] = b.tile.at[i];
        }
    });
}

#define ARGSORT(bits, K) \
    ENTRY(argsort_small_##bits, SIMT_THREADS, argsort_params) { argsort_whole<K, 1>(p); } \
    ENTRY(argsort_tile_##bits, SIMT_THREADS, argsort_params) { argsort_whole<K, ARGSORT_ITEMS>(p); } \
    ENTRY(argsort_count_##bits, SIMT_THREADS, argsort_params) { argsort_count<K>(p); } \
    ENTRY(argsort_move_##bits, SIMT_THREADS, argsort_params) { argsort_move<K>(p); }
ARGSORT(16, uint16_t)
ARGSORT(32, uint32_t)
ARGSORT(64, uint64_t)
