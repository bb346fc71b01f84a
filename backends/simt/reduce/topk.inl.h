/* SPDX-License-Identifier: Apache-2.0 */
/* topk on devices. A block has a row. An element's key is its order and, turned over, its place: no two are equal, and
 * larger ones come first. The k-th key is found four bits at a time, by counting the keys that agree in what is known
 * of it; then those that are not below it are gathered and sorted in shared memory.
 *
 * NOTES. Floor: x once. A row is read once for each four bits of the order, and for those of the place only if the k-th
 * element has equals that are not among the first k. */
#include "topk.h"
#include "backends/simt/core/simt.h"

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

template <class T> DEVICE uint64_t topk_key(const typename T::bits *row, int32_t i, bool smallest) {
    return (uint64_t)topk_order<T>(T::get(row[i]), smallest) << 32 | ~(uint32_t)i;
}

/* Keys by four of their bits. */
struct topk_counts {
    int32_t of[16];
    DEVICE friend topk_counts operator+(topk_counts a, const topk_counts &b) {
#pragma unroll
        for (int d = 0; d < 16; d++) a.of[d] += b.of[d];
        return a;
    }
};

/* The least key of the first k. */
template <class T> DEVICE uint64_t topk_least(const topk_params &p, const typename T::bits *row) {
    int32_t left = p.k, same = p.n; /* of the first k, and of all, those that agree in what is known */
    uint64_t known = 0;
#pragma unroll 1
    for (int low = 60; low >= 0 && same > left; low -= 4) {
        if (low >= 32 && low < 32 + TOPK_IDLE<T>) continue;
        topk_counts counts = {};
#pragma unroll 1
        for (int32_t i = thread_index(); i < p.n; i += SIMT_THREADS) {
            const uint64_t key = topk_key<T>(row, i, p.smallest);
            if (low < 60 && key >> (low + 4) != known >> (low + 4)) continue;
#pragma unroll
            for (int d = 0; d < 16; d++) counts.of[d] += (int)(key >> low & 15) == d;
        }
        counts = group_sum<SIMT_THREADS>(counts);
        int digit = 0, found = 0;
#pragma unroll
        for (int d = 15; d >= 0; d--) {
            if (found) continue;
            if (counts.of[d] >= left)
                digit = d, found = 1, same = counts.of[d];
            else
                left -= counts.of[d];
        }
        known |= (uint64_t)digit << low;
    }
    return known;
}

/* Sorts keys in descending order, a power of two of them; by a block. */
DEVICE void topk_sort(uint64_t *key, int count) {
    for (int run = 2; run <= count; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            sync_block();
            for (int pair = thread_index(); pair < count / 2; pair += SIMT_THREADS) {
                const int i = pair / step * 2 * step + pair % step, j = i + step;
                const bool rises = i & run;
                const uint64_t a = key[i], b = key[j];
                if ((a < b) != rises) key[i] = b, key[j] = a;
            }
        }
    sync_block();
}

template <class T> DEVICE void topk(const topk_params &p) {
    SHARED uint64_t key[TOPK_MOST];
    SHARED int32_t part[SIMT_THREADS];
    const typename T::bits *const row = (const typename T::bits *)p.x.data + block_index() * p.x.row;
    const uint64_t least = topk_least<T>(p, row);
    const int thread = thread_index();
    int32_t mine = 0, at = 0, count = 1;
    for (int32_t i = thread; i < p.n; i += SIMT_THREADS) mine += topk_key<T>(row, i, p.smallest) >= least;
    part[thread] = mine;
    sync_block();
    for (int i = 0; i < thread; i++) at += part[i];
    for (int32_t i = thread; i < p.n; i += SIMT_THREADS) {
        const uint64_t one = topk_key<T>(row, i, p.smallest);
        if (one >= least) key[at++] = one;
    }
    while (count < p.k) count *= 2;
    for (int i = p.k + thread; i < count; i += SIMT_THREADS) key[i] = 0;
    topk_sort(key, count);
    for (int32_t i = thread; i < p.k; i += SIMT_THREADS) {
        const uint32_t place = ~(uint32_t)key[i];
        if (p.values.data) ((typename T::bits *)p.values.data + block_index() * p.values.row)[i] = row[place];
        if (p.indices.data && p.long_indices) ((int64_t *)p.indices.data + block_index() * p.indices.row)[i] = place;
        if (p.indices.data && !p.long_indices)
            ((int32_t *)p.indices.data + block_index() * p.indices.row)[i] = (int32_t)place;
    }
}

ENTRY(topk_f32, SIMT_THREADS, topk_params) { topk<f32>(p); }
ENTRY(topk_bf16, SIMT_THREADS, topk_params) { topk<bf16>(p); }
ENTRY(topk_f16, SIMT_THREADS, topk_params) { topk<f16>(p); }
