/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a draw as whole numbers, whose sums do not depend on their order: what the references of sample and
 * speculative_verify share. Each operation of f32 is rounded by itself. */
#ifndef TRINE_SPEC_WEIGHTS_H
#define TRINE_SPEC_WEIGHTS_H

#include "spec/spec.h"

static inline float weights_product(float a, float b) {
    volatile float p = a * b;
    return p;
}
static inline float weights_sum(float a, float b) {
    volatile float s = a + b;
    return s;
}

/* A number of [0, 1], or the nearest of it (NaN is 0), in units of 2^-bits, rounded up. */
static inline uint64_t weights_fixed(float x, int bits) {
    const double units = ldexp(x > 0 ? x < 1 ? x : 1 : 0, bits);
    return (uint64_t)ceil(units);
}

/* floor(part whole / 2^64): a place in [0, whole) for a part of 64 random bits. */
static inline uint64_t weights_place(uint64_t part, uint64_t whole) {
    const uint64_t a = part >> 32, b = part & UINT32_MAX, c = whole >> 32, d = whole & UINT32_MAX;
    const uint64_t middle = a * d + (b * d >> 32), low = b * c + (middle & UINT32_MAX);
    return a * c + (middle >> 32) + (low >> 32);
}

/* The words first and first + 1 of a block of Philox as one number, the first being its low half. */
static inline uint64_t weights_random(uint64_t seed, uint64_t offset, uint64_t block, int first) {
    uint32_t word[4];
    trine_philox(seed, offset, block, word);
    return (uint64_t)word[first + 1] << 32 | word[first];
}

/* The smallest i for which weight[0] + .. + weight[i] is more than `place`; -1 if there is none. */
static inline int64_t weights_find(const uint64_t *weight, int64_t count, uint64_t place) {
    for (int64_t i = 0; i < count; i++) {
        if (weight[i] > place) return i;
        place -= weight[i];
    }
    return -1;
}

#endif
