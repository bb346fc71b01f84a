/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of two vectors at once, for loops to which the order within the two does not matter: for bf16 the even and the odd elements,
 * which takes half the instructions of widening and narrowing them in order. */
#ifndef TRINE_VEC_PAIR_H
#define TRINE_VEC_PAIR_H

#include "vec.h"

typedef vu vu_any __attribute__((aligned(1), may_alias));

/* x rounded to bf16, in the high half of each element; the low half is rubbish. */
INLINE vu vf_round_bf16(vf x) {
    const vu bits = (vu)x;
    const vu rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return (vu)visel(x != x, (vi)(bits | 0x400000), (vi)rounded);
}

/* Elements i .. i+2*VL-1. */
INLINE void vload2(vf out[2], const void *data, trine_dtype dtype, int64_t i) {
    if (dtype == TRINE_BF16) {
        const vu both = *(const vu_any *)((const uint16_t *)data + i);
        out[0] = (vf)(both << 16);
        out[1] = (vf)(both & 0xffff0000u);
    } else {
        out[0] = vload(data, dtype, i);
        out[1] = vload(data, dtype, i + VL);
    }
}

INLINE void vstore2(void *data, trine_dtype dtype, int64_t i, const vf in[2]) {
    if (dtype == TRINE_BF16) {
        *(vu_any *)((uint16_t *)data + i) = (vf_round_bf16(in[0]) >> 16) | (vf_round_bf16(in[1]) & 0xffff0000u);
    } else {
        vstore(data, dtype, i, in[0]);
        vstore(data, dtype, i + VL, in[1]);
    }
}

#endif
