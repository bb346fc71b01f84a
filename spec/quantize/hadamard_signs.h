/* SPDX-License-Identifier: Apache-2.0 */
/* The Hadamard matrices of order 12, 20 and 28 as kernels have them: bit j of a word is set where element j of its row
 * is -1. include/trine/quantize.h says how they are made. */
#ifndef TRINE_SPEC_HADAMARD_SIGNS_H
#define TRINE_SPEC_HADAMARD_SIGNS_H

#include <stdbool.h>
#include <stdint.h>

enum { HADAMARD_MOST = 28 };

/* Of n: the order of the factor that is not Sylvester's, four times what is odd in n. */
static inline int hadamard_order(int64_t n) {
    const int64_t odd = n >> __builtin_ctzll((unsigned long long)n);
    return odd == 1 ? 1 : 4 * (int)odd;
}

/* The rows of the matrix of order 12, 20 or 28, or those of the transposed one. */
static inline const uint32_t *hadamard_signs(int order, bool transposed) {
    static const uint32_t of_12[] = {
        0x0000002, 0x0000aab, 0x00003c8, 0x000096e, 0x0000f20, 0x00005ba,
        0x0000c8c, 0x00006e6, 0x000023c, 0x0000b96, 0x00008f0, 0x0000e5a,
    };
    static const uint32_t of_20[] = {
        0x00933de, 0x002e3bd, 0x005477b, 0x00a0ef7, 0x00499ef, 0x00637c1, 0x00c6ba2, 0x008d764, 0x001aee8, 0x00359f0,
        0x000fa53, 0x00174a7, 0x0026d4e, 0x0045e9c, 0x0083d39, 0x00f7a6d, 0x00ef4fa, 0x00dedd5, 0x00bdf8b, 0x007bf36,
    };
    static const uint32_t of_20_transposed[] = {
        0x006cc3e, 0x00d1c5d, 0x00ab89b, 0x005f117, 0x00b660f, 0x009cbde, 0x00397bd, 0x0072b7b, 0x00e52f7, 0x00ca5ef,
        0x00f79ac, 0x00ef758, 0x00deeb1, 0x00bdd63, 0x007bec6, 0x00f0592, 0x00e8b05, 0x00d922a, 0x00ba074, 0x007c0c9,
    };
    static const uint32_t of_28[] = {
        0xcd69e7e, 0x9ad7c7d, 0x37ab8fb, 0x6d571f7, 0xd8ae3ef, 0xb3587df, 0x66b4f3f, 0xb467f43, 0x6acbe87, 0xd593d8e,
        0xab27b9c, 0x564f7b8, 0xac9aff0, 0x5b31fe1, 0x87fb325, 0x0ff66ca, 0x1decd95, 0x39ddb2a, 0x71bf654, 0xe17eca9,
        0xc2fd9d2, 0xfcf1299, 0xfbe2532, 0xf7c4ae4, 0xef8d549, 0xdf1ea13, 0xbe3d4a6, 0x7e7a94c,
    };
    static const uint32_t of_28_transposed[] = {
        0x32961fe, 0x65283fd, 0xc85477b, 0x92a8e77, 0x2751c6f, 0x4ca785f, 0x994b0bf, 0x4b9bf3c, 0x9537ef8, 0x2a6fdf1,
        0x54dbbe3, 0xa9b37c7, 0x5366f8f, 0xa4cdf9e, 0x79f8cda, 0xf1f5935, 0xe3ef26a, 0xc7de4d5, 0x8fbc9ab, 0x1f7d356,
        0x3cfe62d, 0xfd0ed66, 0xfa1dacd, 0xf63b51b, 0xee72ab6, 0xdee15ec, 0xbfc2b59, 0x7f856b3,
    };
    switch (order) {
    case 12: return of_12;
    case 20: return transposed ? of_20_transposed : of_20;
    default: return transposed ? of_28_transposed : of_28;
    }
}

#endif
