/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a draw as whole numbers, on the CPU: the operations of spec/sample/weights.h and sample.c, to the bit. */
#ifndef TRINE_CPU_WEIGHTS_H
#define TRINE_CPU_WEIGHTS_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

/* x, of which the compiler does not know that it is a product: it is rounded before something is added. */
INLINE vf rounded(vf x) {
#if defined(__AVX512F__)
    __asm__("" : "+v"(x));
#elif defined(__x86_64__)
    __asm__("" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#else
    volatile vf kept = x;
    x = kept;
#endif
    return x;
}

/* 2^40 e^d, d <= 0, of which the weight is the whole part; 0 below -28 and of NaN. */
INLINE vf power(vf d) {
    const vi there = d >= -28.0f;
    d = vsel(there, d, vzero());
    const vf n = rounded(rounded(d * 1.44269504f) + 12582912.0f) - 12582912.0f;
    const vf r = rounded(d + rounded(n * -0.693359375f)) + rounded(n * 2.12194440e-4f);
    vf p = vset(1.9875691500e-4f);
    p = rounded(p * r) + 1.3981999507e-3f;
    p = rounded(p * r) + 8.3334519073e-3f;
    p = rounded(p * r) + 4.1665795894e-2f;
    p = rounded(p * r) + 1.6666665459e-1f;
    p = rounded(p * r) + 5.0000001201e-1f;
    p = rounded(rounded(p * rounded(r * r)) + r) + 1.0f;
    const vf scale = (vf)((__builtin_convertvector(n, vi) + 167) << 23);
    return vsel(there, p * scale, vzero());
}

/* A number of [0, 1], or the nearest of it (NaN is 0), in units of 2^-bits, rounded up. */
static inline uint64_t weights_fixed(float x, int bits) {
    return (uint64_t)ceil((double)(x > 0 ? x < 1 ? x : 1 : 0) * (double)(UINT64_C(1) << bits));
}

/* floor(part whole / 2^64). */
static inline uint64_t weights_place(uint64_t part, uint64_t whole) {
    const uint64_t a = part >> 32, b = part & UINT32_MAX, c = whole >> 32, d = whole & UINT32_MAX;
    const uint64_t middle = a * d + (b * d >> 32), low = b * c + (middle & UINT32_MAX);
    return a * c + (middle >> 32) + (low >> 32);
}

/* The words first and first + 1 of a block of Philox as one number. */
static inline uint64_t weights_random(const uint64_t key[2], uint64_t block, int first) {
    uint32_t word[4];
    trine_philox(key[0], key[1], block, word);
    return (uint64_t)word[first + 1] << 32 | word[first];
}

/* Key and stream of a call; `told`: where a tensor says them. */
static inline void weights_key(uint64_t seed, uint64_t offset, const trine_tensor *told, uint64_t key_out[2]) {
    const uint64_t *words = told ? told->data : NULL;
    key_out[0] = words ? words[0] : seed;
    key_out[1] = words ? words[1] + offset : offset;
}

#endif
