/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout on devices: the words of Philox4x32-10 (Salmon et al. 2011) that trine_philox() of spec/spec.h gives. */
#ifndef TRINE_SIMT_PHILOX_H
#define TRINE_SIMT_PHILOX_H

#include "params.h"
#include "simt.h"

struct four {
    uint32_t word[4];
};

DEVICE four philox(const simt_dropout &d, uint64_t block) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = d.offset[0], c3 = d.offset[1], k0 = d.key[0], k1 = d.key[1];
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c0 * 0xd2511f53u, b = (uint64_t)c2 * 0xcd9e8d57u;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return { { c0, c1, c2, c3 } };
}

DEVICE bool kept(const simt_dropout &d, uint64_t index) {
    const four w = philox(d, index / 4);
    const uint32_t low = index & 1 ? w.word[1] : w.word[0], high = index & 1 ? w.word[3] : w.word[2];
    return (index & 2 ? high : low) <= d.last;
}

/* Elements index, index + 1, ...: are they kept? Vectors that begin at a multiple of 4 share blocks. */
template <int N> DEVICE void keep(bool (&k)[N], const simt_dropout &d, uint64_t index) {
    if (N % 4 == 0 && index % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            const four w = philox(d, index / 4 + i);
#pragma unroll
            for (int j = 0; j < 4; j++) k[(4 * i + j) % N] = w.word[j] <= d.last;
        }
        return;
    }
#pragma unroll 1
    for (int i = 0; i < N; i++) {
        const bool one = kept(d, index + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j == i) k[j] = one;
    }
}

#endif
