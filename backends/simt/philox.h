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

DEVICE four philox(const simt_dropout &d, uint64_t block) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = d.offset[0], c3 = d.offset[1], k0 = d.key[0], k1 = d.key[1];
#pragma unroll
    for (int round = 0; round < 10; round++) {
        philox_round(c0, c1, c2, c3, k0, k1);
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return { { c0, c1, c2, c3 } };
}

/* Block high 2^32 + low, by keys of rounds that the host has made. */
template <int ROUNDS> DEVICE four philox(const simt_dropout &d, const uint32_t (&key)[ROUNDS][2], uint32_t low, uint32_t high) {
    uint32_t c0 = low, c1 = high, c2 = d.offset[0], c3 = d.offset[1];
#pragma unroll
    for (int round = 0; round < ROUNDS; round++) philox_round(c0, c1, c2, c3, key[round][0], key[round][1]);
    return { { c0, c1, c2, c3 } };
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
