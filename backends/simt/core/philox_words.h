/* SPDX-License-Identifier: Apache-2.0 */
/* The words of elements in a row, from any one on. */
#ifndef TRINE_SIMT_PHILOX_WORDS_H
#define TRINE_SIMT_PHILOX_WORDS_H

#include "philox.h"

/* Of N <= 8 elements from number `index` on. */
template <int N> DEVICE void philox_words(uint32_t (&word)[N], const simt_dropout &d, uint64_t index) {
    static_assert(N <= 8, "those of two blocks");
    const int skip = (int)(index % 8);
    if (N == 8 && skip == 0) {
        const four w = philox(d, (uint32_t)(index / 8), (uint32_t)(index / 8 >> 32));
#pragma unroll
        for (int j = 0; j < N; j++) word[j] = philox_word(w, j);
        return;
    }
#pragma unroll 1
    for (int block = 0; 8 * block < skip + N; block++) {
        const uint64_t number = index / 8 + block;
        const four w = philox(d, (uint32_t)number, (uint32_t)(number >> 32));
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (skip + j == 8 * block + e) word[j] = philox_word(w, e);
    }
}

#endif
