/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout on devices: the words of Philox4x32-10 (Salmon et al. 2011) that trine_philox() of spec/spec.h gives. */
#ifndef TRINE_SIMT_PHILOX_H
#define TRINE_SIMT_PHILOX_H

#include "params.h"
#include "simt.h"

struct four {
    uint32_t word[4];
};

DEVICE void philox_round(uint32_t &c0, uint32_t &c1, uint32_t &c2, uint32_t &c3, uint32_t k0, uint32_t k1) {
    const uint64_t a = (uint64_t)c0 * 0xd2511f53u, b = (uint64_t)c2 * 0xcd9e8d57u;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)a;
}

/* Block high 2^32 + low. If `high` is the same for all threads, much of two rounds is done once for a warp. */
DEVICE four philox(const simt_dropout &d, uint32_t low, uint32_t high) {
    uint32_t c0 = low, c1 = high, c2 = d.offset[0], c3 = d.offset[1];
#pragma unroll
    for (int round = 0; round < SIMT_PHILOX_ROUNDS; round++) philox_round(c0, c1, c2, c3, d.key[round][0], d.key[round][1]);
    return { { c0, c1, c2, c3 } };
}
DEVICE four philox(const simt_dropout &d, uint64_t block) { return philox(d, (uint32_t)block, (uint32_t)(block >> 32)); }

/* The blocks of words of a run of elements, whose first has a number that is a multiple of 4: from block high 2^32 + low on, and nearly always ALIKE in `high`. */
struct dropout_words {
    uint32_t low, high;
    bool alike;
    DEVICE dropout_words(int64_t first, uint32_t count)
        : low((uint32_t)((uint64_t)first / 4)), high((uint32_t)((uint64_t)first / 4 >> 32)), alike(low <= low + count / 4) {}
};

/* N elements of 16 bits of a run whose words are alike, from its element `at` on: ones where one is kept, and zeros. */
template <class T, int N> DEVICE held<T, N> dropout_mask(const simt_dropout &d, const dropout_words &words, uint32_t at) {
    held<T, N> mask;
#pragma unroll
    for (int block = 0; block < N / 4; block++) {
        const four w = philox(d, words.low + at / 4 + block, words.high);
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            uint32_t pair = w.word[j] <= d.last ? 0xffffu : 0;
            if (w.word[j + 1] <= d.last) pair |= 0xffff0000u;
            mask.word[2 * block + j / 2] = pair;
        }
    }
    return mask;
}

/* What dropout leaves of N elements likewise, not scaled: each word is compared where it is. */
template <int N> DEVICE void dropout_left(float (&x)[N], const simt_dropout &d, const dropout_words &words, uint32_t at) {
#pragma unroll
    for (int block = 0; block < N / 4; block++) {
        const four w = philox(d, words.low + at / 4 + block, words.high);
#pragma unroll
        for (int j = 0; j < 4; j++) x[4 * block + j] = w.word[j] <= d.last ? x[4 * block + j] : 0.0f;
    }
}

/* Bit i: is element index + i kept? ALIGNED: index is a multiple of 4. */
template <int N, bool ALIGNED = false> DEVICE uint32_t kept(const simt_dropout &d, uint64_t index) {
    const int skip = ALIGNED ? 0 : (int)(index % 4);
    uint32_t bits = 0;
#pragma unroll
    for (int block = 0; block < (N + (ALIGNED ? 3 : 6)) / 4; block++) {
        if (4 * block >= N + skip) break;
        const four w = philox(d, index / 4 + block);
#pragma unroll
        for (int j = 0; j < 4; j++) bits |= (uint32_t)(w.word[j] <= d.last) << (4 * block + j);
    }
    return bits >> skip;
}

#endif
