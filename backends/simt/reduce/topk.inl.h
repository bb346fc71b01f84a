/* SPDX-License-Identifier: Apache-2.0 */
/* topk on devices. An element's key is its order and, turned over, its place: no two are equal, and larger ones come
 * first. A short row is sorted by the threads of a team. A longer one is cut into parts, of which blocks keep k keys
 * each, and so on with what is left, until one block has all. Its threads hold their keys; the k-th is found eight bits
 * at a time, by counting the keys that agree in what is known of it; and those that are not below it are sorted.
 *
 * NOTES. Floor: x once. Counts are added up in shared memory, in an order of no account. Which of a part's keys comes
 * first in memory is of none either: keys differ, and are sorted at the end. */
#include "sort.inl.h"
#include "topk.h"
#include "backends/simt/core/before.h"
#include <count.h>

/* Low bits of a float that say nothing where it is of T. */
template <class T> constexpr int TOPK_IDLE = 12; /* of 16 bits: f16 has 19 */
template <> constexpr int TOPK_IDLE<f32> = 0;

/* Larger numbers for larger elements, or for smaller ones: those of -0 and 0 are equal, and NaN's is the largest. */
template <class T> DEVICE uint32_t topk_order(float x, bool smallest) {
    uint32_t bits = bits_of_float(x);
    if (bits << 1 == 0) bits = 0;
    const uint32_t order = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (((bits & 0x7fffffffu) > 0x7f800000u ? ~0u : order) ^ (smallest ? ~0u : 0u)) >> TOPK_IDLE<T> << TOPK_IDLE<T>;
}

/* Keys that there are exceed 0. */
template <class T> DEVICE uint64_t topk_key(const typename T::bits *row, int32_t i, bool smallest) {
    return (uint64_t)topk_order<T>(T::get(row[i]), smallest) << 32 | ~(uint32_t)i;
}

/* Element j of a row's result. */
template <class T> DEVICE void topk_put(const topk_params &p, int64_t row, int32_t j, uint64_t key) {
    const uint32_t place = ~(uint32_t)key;
    if (p.values.data)
        ((typename T::bits *)p.values.data + row * p.values.row)[j] =
            ((const typename T::bits *)p.x.data + row * p.x.row)[place];
    if (p.indices.data && p.long_indices) ((int64_t *)p.indices.data + row * p.indices.row)[j] = place;
    if (p.indices.data && !p.long_indices) ((int32_t *)p.indices.data + row * p.indices.row)[j] = (int32_t)place;
}

/* A short row. Thread l of the team has keys l, l + 32, ... */
template <class T, int KEYS> DEVICE void topk_rows(const topk_params &p) {
    const int64_t number = block_index() * (SIMT_THREADS / TOPK_TEAM) + thread_index() / TOPK_TEAM,
                  row = number < p.rows ? number : p.rows - 1;
    const int lane = thread_index() % TOPK_TEAM;
    const typename T::bits *const from = (const typename T::bits *)p.x.data + row * p.x.row;
    uint64_t key[KEYS];
#pragma unroll
    for (int v = 0; v < KEYS; v++) {
        const int32_t i = v * TOPK_TEAM + lane;
        key[v] = i < p.n ? topk_key<T>(from, i, p.smallest) : 0;
    }
#pragma unroll
    for (int run = 2; run <= KEYS * TOPK_TEAM; run *= 2) {
#pragma unroll
        for (int step = run / 2; step > 0; step /= 2) {
#pragma unroll
            for (int v = 0; v < KEYS; v++) {
                const int i = v * TOPK_TEAM + lane;
                const bool falls = (i & run) == 0; /* along this run, in which the larger of two comes first */
                if (step >= TOPK_TEAM) {
                    const int other = v ^ step / TOPK_TEAM;
                    if (other < v) continue;
                    const uint64_t a = key[v], b = key[other];
                    const bool swap = (a < b) == falls;
                    key[v] = swap ? b : a, key[other] = swap ? a : b;
                } else {
                    const uint64_t mine = key[v], other = shuffle_xor(mine, step);
                    const bool first = (i & step) == 0;
                    key[v] = (mine < other) == (first == falls) ? other : mine;
                }
            }
        }
    }
#pragma unroll
    for (int v = 0; v < KEYS; v++)
        if (number < p.rows && v * TOPK_TEAM + lane < p.k) topk_put<T>(p, row, v * TOPK_TEAM + lane, key[v]);
}

enum { TOPK_BITS = 8, TOPK_DIGITS = 1 << TOPK_BITS, TOPK_COUNTS = SIMT_THREADS / WARP };
static_assert((int)TOPK_DIGITS == (int)SIMT_THREADS, "a thread has a digit");

struct topk_found {
    uint32_t digit, above, same;
};

/* The least of the block's first k keys, of which there are `same`; or a number below it and above the next. */
template <int KEYS> DEVICE uint64_t topk_least(const uint64_t (&key)[KEYS], uint32_t k, uint32_t same, int skip) {
    SHARED uint32_t counts[TOPK_COUNTS][TOPK_DIGITS]; /* of each warp */
    SHARED topk_found found;
    const int thread = thread_index();
    uint64_t known = 0;
    uint32_t left = k; /* of the first k, those that agree in what is known, as `same` do of all */
#pragma unroll 1
    for (int low = 64 - TOPK_BITS; low >= 0 && same > left; low -= TOPK_BITS) {
        if (low >= 32 && low + TOPK_BITS <= 32 + skip) continue;
#pragma unroll
        for (int w = 0; w < TOPK_COUNTS; w++) counts[w][thread] = 0;
        sync_block();
#pragma unroll
        for (int v = 0; v < KEYS; v++)
            if (key[v] && (low + TOPK_BITS == 64 || key[v] >> (low + TOPK_BITS) == known >> (low + TOPK_BITS)))
                add_shared(&counts[thread / WARP][key[v] >> low & (TOPK_DIGITS - 1)], 1);
        sync_block();
        const uint32_t digit = (uint32_t)(TOPK_DIGITS - 1 - thread);
        uint32_t count = 0;
#pragma unroll
        for (int w = 0; w < TOPK_COUNTS; w++) count += counts[w][digit];
        const uint32_t above = sum_before(count);
        if (above < left && left <= above + count) found = { digit, above, count };
        sync_block();
        const topk_found one = found;
        left -= one.above, same = one.same;
        known |= (uint64_t)one.digit << low;
    }
    return known;
}

/* A part of a row: of x, or (KEYS_LEFT) of the keys that are left of it. */
template <class T, int KEYS, bool KEYS_LEFT> DEVICE void topk_part(const topk_params &p) {
    SHARED uint64_t sorted[TOPK_MOST];
    const int64_t row = block_index() / p.parts, part = block_index() - row * p.parts;
    const int thread = thread_index();
    const typename T::bits *const x = (const typename T::bits *)p.x.data + row * p.x.row;
    uint64_t key[KEYS];
    uint32_t mine = 0, all;
#pragma unroll
    for (int v = 0; v < KEYS; v++) {
        const int64_t i = (part * KEYS + v) * SIMT_THREADS + thread;
        key[v] = i >= p.n ? 0 : KEYS_LEFT ? p.from[row * p.n + i] : topk_key<T>(x, (int32_t)i, p.smallest);
        mine += key[v] != 0;
    }
    before_thread(mine, 0u, of_all(), &all);
    const uint64_t least = topk_least(key, (uint32_t)p.k, all, TOPK_IDLE<T>);
    mine = 0;
#pragma unroll
    for (int v = 0; v < KEYS; v++) mine += key[v] && key[v] >= least;
    uint32_t at = before_thread(mine, 0u, of_all(), &all);
    uint64_t *const to = p.parts == 1 ? sorted : p.to + block_index() * p.k;
#pragma unroll
    for (int v = 0; v < KEYS; v++)
        if (key[v] && key[v] >= least) to[at++] = key[v];
    if (p.parts > 1) {
        for (int32_t i = (int32_t)all + thread; i < p.k; i += SIMT_THREADS) to[i] = 0;
        return;
    }
    int count = 1;
    while (count < p.k) count *= 2;
    for (int i = p.k + thread; i < count; i += SIMT_THREADS) sorted[i] = 0;
    sort_keys<SIMT_THREADS>(sorted, count);
    for (int32_t i = thread; i < p.k; i += SIMT_THREADS) topk_put<T>(p, row, i, sorted[i]);
}

#define TOPK_ROWS(T, keys) \
    ENTRY(topk_rows_##T##_##keys, SIMT_THREADS, topk_params) { topk_rows<T, keys>(p); }
#define TOPK_PARTS(T, keys) \
    ENTRY(topk_part_##T##_##keys, SIMT_THREADS, topk_params) { topk_part<T, keys, false>(p); }
#define TOPK_LEFT(T, keys) \
    ENTRY(topk_left_##T##_##keys, SIMT_THREADS, topk_params) { topk_part<T, keys, true>(p); }
#define TOPK_ENTRIES(T) \
    TOPK_ROWS(T, 4) \
    TOPK_ROWS(T, 16) TOPK_PARTS(T, 4) TOPK_PARTS(T, 16) TOPK_PARTS(T, 32) TOPK_LEFT(T, 16) TOPK_LEFT(T, 32)
TOPK_ENTRIES(f32)
TOPK_ENTRIES(bf16)
TOPK_ENTRIES(f16)
