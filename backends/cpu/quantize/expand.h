/* SPDX-License-Identifier: Apache-2.0 */
/* From codes to the numbers that they stand for. */
#ifndef TRINE_CPU_EXPAND_H
#define TRINE_CPU_EXPAND_H

#include "codes.h"

typedef struct affine {
    vf scale, zero, min;
    vi half, offset; /* half: of the codes, if they have a sign */
    bool e2m1;
    trine_dtype type;
} affine;

INLINE vf value_of(affine a, vi code) {
    const vf offset = __builtin_convertvector(a.offset, vf);
    if (a.e2m1) return codes_from_e2m1(code) - offset;
    if (a.type == TRINE_E4M3) return vf_from_codes(code, TRINE_E4M3) - offset;
    if (a.type == TRINE_E5M2) return vf_from_codes(code, TRINE_E5M2) - offset;
    return __builtin_convertvector((code ^ a.half) - a.half - a.offset, vf);
}

/* `count` codes from element `at` on. */
INLINE void expand_unit(affine a, const uint8_t *from, int count, void *row, int64_t at, trine_dtype T, int bits) {
    const code_bytes codes = codes_load(from, count, bits);
#pragma GCC unroll 4
    for (int v = 0; v < CODES_VECTORS; v++) {
        const vf x = value_of(a, codes_widen(codes, v));
        const vf y = vfma(x - a.zero, a.scale, a.min);
        const int left = count - v * VL;
        if (left >= VL)
            vstore(row, T, at + v * VL, y);
        else if (left > 0)
            vstoren(row, T, at + v * VL, left, y);
    }
}

INLINE void expand(affine a, const uint8_t *from, int64_t n, void *row, int64_t at, trine_dtype T, int bits) {
    for (; n >= CODES_UNIT; n -= CODES_UNIT, from += CODES_UNIT / 8 * bits, at += CODES_UNIT)
        expand_unit(a, from, CODES_UNIT, row, at, T, bits);
    if (n > 0) expand_unit(a, from, (int)n, row, at, T, bits);
}

#endif
