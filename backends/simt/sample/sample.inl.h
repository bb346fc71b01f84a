/* SPDX-License-Identifier: Apache-2.0 */
/* sample on devices. A block has a row, and computes what it needs of it anew each time: the operations of
 * spec/sample/sample.c, to the bit. A token's key is the order of its z and, turned over, its place: no two are equal,
 * and larger ones come first.
 *
 * Of a top_k that is not too large the tokens are gathered, and all else is of them. Until few enough are left, the
 * keys that agree in what is known of the last one that counts are counted by their next eight bits. Otherwise where
 * top_k and top_p end is found four bits at a time, by adding up what the keys count that agree.
 *
 * NOTES. Floor: the logits once. They are read once to find the largest; some three times to gather; or some seven
 * times for top_k and as often for top_p, and twice to draw. */
#include "draw.inl.h"
#include "sample.h"
#include "backends/simt/reduce/order.inl.h"
#include "backends/simt/reduce/sort.inl.h"
#include <count.h>

/* 2^40 e^d, d <= 0, of which the weight is the whole part; 0 below -28 and of NaN. */
DEVICE float sample_power(float d) {
    if (!(d >= -28.0f)) return 0;
    const float n = (product(d, 1.44269504f) + 12582912.0f) - 12582912.0f;
    const float r = (d + product(n, -0.693359375f)) + product(n, 2.12194440e-4f);
    float p = 1.9875691500e-4f;
    p = product(p, r) + 1.3981999507e-3f;
    p = product(p, r) + 8.3334519073e-3f;
    p = product(p, r) + 4.1665795894e-2f;
    p = product(p, r) + 1.6666665459e-1f;
    p = product(p, r) + 5.0000001201e-1f;
    p = (product(p, product(r, r)) + r) + 1.0f;
    return product(p, float_of_bits((uint32_t)((int)n + 167) << 23));
}

/* A number of [0, 1], or the nearest of it (NaN is 0), in units of a power of two, rounded up. */
DEVICE uint64_t sample_fixed(float x, float units) {
    const float bounded = product(x > 0 ? x < 1 ? x : 1.0f : 0.0f, units);
    const int64_t below = (int64_t)bounded;
    return (uint64_t)(below + ((float)below < bounded));
}

/* A row and what is asked of it. */
template <class T> struct sample_row {
    const sample_params &p;
    const typename T::bits *logits;
    const int32_t *counts;
    float heat, largest;
    uint64_t least, min_p; /* key and weight of a candidate, at least */

    DEVICE float z(typename T::bits logit, int32_t count) const {
        float z = T::get(logit);
        if (count > 0) {
            z = product(z, z > 0 ? p.inverse : p.penalty);
            z = z - product((float)count, p.frequency);
            z = z - p.presence;
        }
        return product(z, heat);
    }
    DEVICE float z(int64_t j) const { return z(logits[j], counts ? counts[j] : 0); }
    DEVICE static uint64_t key(float z, int64_t j) { return (uint64_t)order_of(z, false) << 32 | ~(uint32_t)j; }
    DEVICE uint64_t weight(int64_t j, float x) const {
        if (key(x, j) < least) return 0;
        const uint64_t w = (uint64_t)(int64_t)(x == largest ? 0x1p40f : sample_power(x - largest));
        return w < min_p ? 0 : w;
    }
    /* Body(j, z) for each token, by the threads of the block. */
    template <class Body> DEVICE void each(const Body &body) const {
#pragma unroll 1
        for (int64_t at = thread_index() * VECTOR; at < p.v; at += DRAW_THREADS * VECTOR) {
            const lane l = { at, p.v, p.wide };
            typename T::bits logit[VECTOR];
            int32_t count[VECTOR] = {};
            load_bits(logit, logits, l);
            if (counts) load_bits(count, counts, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                if (within(l, k)) body(at + k, z(logit[k], count[k]));
        }
    }
};

struct sample_sums {
    uint64_t of[16], keys; /* by the next four bits; and how many keys agree in those before */
    DEVICE friend sample_sums operator+(sample_sums a, const sample_sums &b) {
#pragma unroll
        for (int d = 0; d < 16; d++) a.of[d] += b.of[d];
        a.keys += b.keys;
        return a;
    }
};

/* The least key, or what is not above it and above the next, of those that count `need` together, from the largest on;
 * Part(j, z): what one counts. */
template <class T, class Part> DEVICE uint64_t sample_least(const sample_row<T> &row, uint64_t need, const Part &part) {
    uint64_t known = 0;
#pragma unroll 1
    for (int low = 60; low >= 0; low -= 4) {
        sample_sums sums = {};
        row.each([&](int64_t j, float z) {
            const uint64_t key = row.key(z, j);
            if (low < 60 && key >> (low + 4) != known >> (low + 4)) return;
            const uint64_t one = part(j, z);
            sums.keys++;
#pragma unroll
            for (int d = 0; d < 16; d++) sums.of[d] += (int)(key >> low & 15) == d ? one : 0;
        });
        sums = group_sum<DRAW_THREADS>(sums);
        if (sums.keys == 1) break;
        int digit = 0;
        bool found = false;
        uint64_t same = 0;
#pragma unroll
        for (int d = 15; d >= 0; d--) {
            if (found) continue;
            if (sums.of[d] >= need)
                digit = d, found = true, same = sums.of[d];
            else
                need -= sums.of[d];
        }
        known |= (uint64_t)digit << low;
        if (same == need) break;
    }
    return known;
}

enum { SAMPLE_HELD = DRAW_THREADS, SAMPLE_BITS = 8, SAMPLE_DIGITS = 1 << SAMPLE_BITS, SAMPLE_COUNTS = 8 };

/* The k largest keys, in descending order; k is up to SAMPLE_HELD, and there are as many. */
template <class T> DEVICE void sample_gather(const sample_row<T> &row, uint32_t k, uint64_t (&key)[SAMPLE_HELD]) {
    SHARED uint32_t counts[SAMPLE_COUNTS][SAMPLE_DIGITS], count[SAMPLE_DIGITS], next;
    const int thread = thread_index();
    uint64_t known = 0;
    uint32_t above = 0;     /* keys that are larger than those that agree in what is known, */
    int64_t same = row.p.v; /* which are so many */
#pragma unroll 1
    for (int low = 64 - SAMPLE_BITS; above + same > SAMPLE_HELD; low -= SAMPLE_BITS) {
        for (int i = thread; i < SAMPLE_COUNTS * SAMPLE_DIGITS; i += DRAW_THREADS)
            counts[i / SAMPLE_DIGITS][i % SAMPLE_DIGITS] = 0;
        sync_block();
        row.each([&](int64_t j, float z) {
            const uint64_t one = row.key(z, j);
            if (low + SAMPLE_BITS == 64 || one >> (low + SAMPLE_BITS) == known >> (low + SAMPLE_BITS))
                add_shared(&counts[thread / WARP % SAMPLE_COUNTS][one >> low & (SAMPLE_DIGITS - 1)], 1);
        });
        sync_block();
        for (int d = thread; d < SAMPLE_DIGITS; d += DRAW_THREADS) {
            count[d] = 0;
#pragma unroll
            for (int i = 0; i < SAMPLE_COUNTS; i++) count[d] += counts[i][d];
        }
        sync_block();
        int digit = SAMPLE_DIGITS - 1;
        while (digit > 0 && above + count[digit] < k) above += count[digit--];
        same = count[digit];
        known |= (uint64_t)digit << low;
    }
    if (thread == 0) next = 0;
    key[thread] = 0;
    sync_block();
    row.each([&](int64_t j, float z) {
        const uint64_t one = row.key(z, j);
        if (one >= known) key[add_shared(&next, 1)] = one;
    });
    sort_keys<DRAW_THREADS>(key, SAMPLE_HELD);
}

/* What top_p leaves of the k largest, and of them one. */
template <class T> DEVICE drawn sample_held(sample_row<T> &row, uint32_t k, uint64_t share, uint64_t random) {
    SHARED uint64_t key[SAMPLE_HELD], sum[SAMPLE_HELD];
    SHARED uint32_t kept;
    const uint32_t thread = (uint32_t)thread_index();
    sample_gather(row, k, key);
    const int64_t j = ~(uint32_t)key[thread];
    sum[thread] = thread < k ? row.weight(j, row.z(j)) : 0;
    if (thread == 0) kept = k;
    sync_block();
    for (uint32_t step = 1; step < SAMPLE_HELD; step *= 2) {
        const uint64_t before = thread >= step ? sum[thread - step] : 0;
        sync_block();
        sum[thread] += before;
        sync_block();
    }
    const uint64_t all = sum[SAMPLE_HELD - 1],
                   some = share * (all >> 32) + ((share * (uint32_t)all + UINT32_MAX) >> 32), need = some ? some : 1;
    if (share < (uint64_t)1 << 32 && sum[thread] >= need && (thread == 0 || sum[thread - 1] < need)) kept = thread + 1;
    sync_block();
    /* in the order of their places */
    key[thread] = thread < kept ? (uint32_t)key[thread] : 0;
    sort_keys<DRAW_THREADS>(key, SAMPLE_HELD);
    drawn token = draw(kept, random, [&](int64_t i) {
        const int64_t at = ~(uint32_t)key[i];
        return row.weight(at, row.z(at));
    });
    if (token.at >= 0) token.at = ~(uint32_t)key[token.at];
    return token;
}

struct sample_largest {
    DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};

DEVICE void sample_put(const sample_params &p, int64_t token, float share) {
    if (thread_index() != 0) return;
    put_integer(p.tokens, p.long_tokens, block_index(), token);
    if (p.probabilities) p.probabilities[block_index()] = share;
}
template <class T> DEVICE void sample_put(const sample_row<T> &row, const drawn &token) {
    sample_put(row.p, token.at, (float)((double)row.weight(token.at, row.z(token.at)) / (double)token.sum));
}

template <class T> DEVICE void sample(const sample_params &p) {
    const int64_t i = block_index();
    const float temperature = p.temperatures ? p.temperatures[i] : p.temperature,
                top_p = p.top_ps ? p.top_ps[i] : p.top_p;
    const int64_t top_k = p.top_ks ? p.top_ks[i] : p.top_k;
    sample_row<T> row = { p,
                          (const typename T::bits *)p.logits.data + i * p.logits.row,
                          p.counts.data ? (const int32_t *)p.counts.data + i * p.counts.row : nullptr,
                          temperature > 0 ? (float)(1 / (double)temperature) : 1.0f,
                          0,
                          0,
                          sample_fixed(p.min_ps ? p.min_ps[i] : p.min_p, 0x1p40f) };
    uint64_t first = 0;
    row.each([&](int64_t j, float z) { first = sample_largest()(first, row.key(z, j)); });
    first = group_combine<DRAW_THREADS>(first, sample_largest());
    const int64_t greedy = ~(uint32_t)first;
    row.largest = row.z(greedy);
    if (row.largest != row.largest || row.largest == -infinity()) return sample_put(p, -1, not_a_number());
    if (!(temperature > 0)) return sample_put(p, greedy, 1.0f);
    const uint64_t share = sample_fixed(top_p != top_p ? 1.0f : top_p, 0x1p32f),
                   random = random_of(p.key, (uint64_t)i, 0);
    if (top_k > 0 && top_k < p.v && top_k <= SAMPLE_HELD)
        return sample_put(row, sample_held(row, (uint32_t)top_k, share, random));
    if (top_k > 0 && top_k < p.v)
        row.least = sample_least<T>(row, (uint64_t)top_k, [](int64_t, float) { return (uint64_t)1; });
    const auto weight = [&](int64_t j, float z) { return row.weight(j, z); };
    if (share < (uint64_t)1 << 32) {
        uint64_t sum = 0;
        row.each([&](int64_t j, float z) { sum += row.weight(j, z); });
        sum = group_sum<DRAW_THREADS>(sum);
        const uint64_t need = share * (sum >> 32) + ((share * (uint32_t)sum + UINT32_MAX) >> 32);
        const uint64_t least = sample_least<T>(row, need ? need : 1, weight);
        row.least = least > row.least ? least : row.least;
    }
    sample_put(row, draw(p.v, random, [&](int64_t j) { return row.weight(j, row.z(j)); }));
}

ENTRY(sample_f32, DRAW_THREADS, sample_params) { sample<f32>(p); }
ENTRY(sample_bf16, DRAW_THREADS, sample_params) { sample<bf16>(p); }
ENTRY(sample_f16, DRAW_THREADS, sample_params) { sample<f16>(p); }
