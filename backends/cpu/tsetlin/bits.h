/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bits, and votes. */
#ifndef TRINE_CPU_TSETLIN_BITS_H
#define TRINE_CPU_TSETLIN_BITS_H

#include <string.h>

#include "backends/cpu/core/vec.h"

enum { BITS_STEP = 32 /* bytes at a time */ };

INLINE uint64_t bits_word(const uint8_t *row, int64_t at) {
    uint64_t word;
    memcpy(&word, row + at, sizeof word);
    return word;
}

/* Is every bit of `include` one of `literals`? */
INLINE bool bits_within(const uint8_t *include, const uint8_t *literals, int64_t w) {
    int64_t at = 0;
    for (; at + BITS_STEP <= w; at += BITS_STEP) {
        uint64_t missing = 0;
        for (int k = 0; k < BITS_STEP; k += 8) missing |= bits_word(include, at + k) & ~bits_word(literals, at + k);
        if (missing) return false;
    }
    for (; at + 8 <= w; at += 8)
        if (bits_word(include, at) & ~bits_word(literals, at)) return false;
    uint8_t missing = 0;
    for (; at < w; at++) missing |= include[at] & (uint8_t)~literals[at];
    return missing == 0;
}

/* Is there any? */
INLINE bool bits_any(const uint8_t *row, int64_t w) {
    uint8_t any = 0;
    for (int64_t at = 0; at < w; at++) any |= row[at];
    return any != 0;
}

INLINE int32_t vote_within(int32_t vote, int32_t threshold) {
    if (threshold > 0 && vote > threshold) return threshold;
    return threshold > 0 && vote < -threshold ? -threshold : vote;
}

#endif
