/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout on devices: the words of Philox4x32-10 (Salmon et al. 2011) that trine_philox() of spec/spec.h gives. */
#ifndef TRINE_SIMT_PHILOX_H
#define TRINE_SIMT_PHILOX_H

#include "params.h"
#include "simt.h"

struct four {
    uint32_t word[4];
};

constexpr uint32_t PHILOX_A = 0xd2511f53u, PHILOX_B = 0xcd9e8d57u;

DEVICE void philox_round(uint32_t &c0, uint32_t &c1, uint32_t &c2, uint32_t &c3, uint32_t k0, uint32_t k1) {
    const uint64_t a = (uint64_t)c0 * PHILOX_A, b = (uint64_t)c2 * PHILOX_B;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)a;
}

/* With the key that a tensor has, and its stream beside that of d. */
DEVICE simt_dropout dropout_told(const simt_dropout &d, const int64_t *words) {
    const uint64_t key = (uint64_t)words[0], offset = (uint64_t)words[1] + ((uint64_t)d.offset[1] << 32 | d.offset[0]);
    simt_dropout told = d;
#pragma unroll
    for (int round = 0; round < SIMT_PHILOX_ROUNDS; round++) {
        told.key[round][0] = (uint32_t)key + round * SIMT_PHILOX_KEY_0;
        told.key[round][1] = (uint32_t)(key >> 32) + round * SIMT_PHILOX_KEY_1;
    }
    told.offset[0] = (uint32_t)offset;
    told.offset[1] = (uint32_t)(offset >> 32);
    return told;
}

/* Block high 2^32 + low. If `high` is the same for all threads, much of two rounds is done once for a warp. */
template <int ROUNDS> DEVICE four philox_rounds(const simt_dropout &d, uint32_t low, uint32_t high) {
    uint32_t c0 = low, c1 = high, c2 = d.offset[0], c3 = d.offset[1];
#pragma unroll
    for (int round = 0; round < ROUNDS; round++) philox_round(c0, c1, c2, c3, d.key[round][0], d.key[round][1]);
    return { { c0, c1, c2, c3 } };
}
DEVICE four philox(const simt_dropout &d, uint32_t low, uint32_t high) {
    return philox_rounds<SIMT_PHILOX_ROUNDS>(d, low, high);
}

/* Its first two words, or its last two: a round of which half is done. */
DEVICE four philox_half(const simt_dropout &d, uint32_t low, uint32_t high, bool last) {
    constexpr int ROUND = SIMT_PHILOX_ROUNDS - 1;
    const four c = philox_rounds<ROUND>(d, low, high);
    const uint64_t x = (uint64_t)(last ? c.word[0] : c.word[2]) * (last ? PHILOX_A : PHILOX_B);
    return { { (uint32_t)(x >> 32) ^ (last ? c.word[3] ^ d.key[ROUND][1] : c.word[1] ^ d.key[ROUND][0]),
               (uint32_t)x } };
}

/* What says whether element k of a block, or of its half, is kept: a word for two, with its halves exchanged for the
 * second. */
DEVICE uint32_t philox_word(const four &w, int k) {
    const uint32_t x = w.word[k / 2];
    return k % 2 ? x << 16 | x >> 16 : x;
}

/* The blocks of words of a run of elements, whose first has a number that is a multiple of 4: from block high 2^32 +
 * low on, and nearly always ALIKE in `high`. */
struct dropout_words {
    uint32_t low, high, quads; /* quads: of 4 elements, from the beginning of that block to the run's first */
    bool alike;
    DEVICE dropout_words(int64_t first, uint32_t count)
        : low((uint32_t)((uint64_t)first / 8)), high((uint32_t)((uint64_t)first / 8 >> 32)),
          quads((uint32_t)first / 4 % 2), alike(low <= low + (count + 4) / 8) {}
    DEVICE dropout_words(uint32_t block) : low(block), high(0), quads(0), alike(true) {}
};

/* Body(k, word) for N elements of a run whose words are alike, from its element `at` on, that have numbers which are
 * multiples of N. */
template <int N, class Body>
DEVICE void dropout_each(const simt_dropout &d, const dropout_words &words, uint32_t at, const Body &body) {
    static_assert(N == 4 || N % 8 == 0, "blocks, or the half of one");
    if constexpr (N == 4) {
        const uint32_t quad = words.quads + at / 4;
        const four w = philox_half(d, words.low + quad / 2, words.high, quad % 2);
#pragma unroll
        for (int k = 0; k < N; k++) body(k, philox_word(w, k));
    } else {
#pragma unroll
        for (int block = 0; block < N / 8; block++) {
            const four w = philox(d, words.low + at / 8 + block, words.high);
#pragma unroll
            for (int k = 0; k < 8; k++) body(8 * block + k, philox_word(w, k));
        }
    }
}

/* N elements of 16 bits likewise: ones where one is kept, and zeros. */
template <class T, int N>
DEVICE held<T, N> dropout_mask(const simt_dropout &d, const dropout_words &words, uint32_t at) {
    held<T, N> mask = {};
    dropout_each<N>(d, words, at, [&](int k, uint32_t word) {
        if (word <= d.last) mask.word[k / 2] |= k % 2 ? 0xffff0000u : 0xffffu;
    });
    return mask;
}

/* What dropout leaves of N elements likewise, not scaled: each word is compared where it is. */
template <int N>
DEVICE void dropout_left(float (&x)[N], const simt_dropout &d, const dropout_words &words, uint32_t at) {
    dropout_each<N>(d, words, at, [&](int k, uint32_t word) { x[k] = word <= d.last ? x[k] : 0.0f; });
}

/* Bit k: is element index + k kept? ALIGNED: index is a multiple of N, which is 4 or 8.
 * UNROLLED: as many blocks at a time as there are. */
template <int N, bool ALIGNED = false, bool UNROLLED = true>
DEVICE uint32_t kept(const simt_dropout &d, uint64_t index) {
    constexpr int BLOCKS = ALIGNED ? 1 : (N + 14) / 8;
    [[maybe_unused]] constexpr int AT_ONCE = UNROLLED ? BLOCKS : 1;
    const int skip = ALIGNED && N == 8 ? 0 : (int)(index % 8);
    uint32_t bits = 0;
#pragma unroll AT_ONCE
    for (int block = 0; block < BLOCKS; block++) {
        if (8 * block >= N + skip) break;
        const uint64_t number = index / 8 + block;
        const four w = philox(d, (uint32_t)number, (uint32_t)(number >> 32));
#pragma unroll
        for (int k = 0; k < 8; k++) bits |= (uint32_t)(philox_word(w, k) <= d.last) << (8 * block + k);
    }
    return bits >> skip;
}

#endif
