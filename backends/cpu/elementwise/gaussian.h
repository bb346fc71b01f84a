/* SPDX-License-Identifier: Apache-2.0 */
/* Normal numbers on the CPU, the bits that spec/elementwise/gaussian_axpy.c says: every product is rounded by itself.
 * */
#ifndef TRINE_CPU_GAUSSIAN_H
#define TRINE_CPU_GAUSSIAN_H

#include "backends/cpu/core/philox.h"

INLINE vf gaussian_polynomial(vf x, const float *coefficient, int count) {
    vf p = vset(coefficient[0]);
    for (int i = 1; i < count; i++) p = vproduct(p, x) + coefficient[i];
    return p;
}

/* -2 ln((w/2 rounded down, or 1) 2^-31) */
INLINE vf gaussian_logs(vu w) {
    static const float p[] = { 6.74926788e-2f,  -1.16700977e-1f, 1.18835486e-1f,  -1.24062337e-1f, 1.42203584e-1f,
                               -1.66679889e-1f, 2.00020716e-1f,  -2.50000089e-1f, 3.33333135e-1f };
    const vi bits = (vi) __builtin_convertvector((vi)(w >> 1 | 1), vf);
    const vi e = (bits - 0x3f3504f3) >> 23;
    const vf k = __builtin_convertvector(e - 31, vf), f = (vf)(bits - (e << 23)) - 1.0f, f2 = vproduct(f, f);
    const vf third = vproduct(vproduct(f2, f), gaussian_polynomial(f, p, 9));
    const vf low = vproduct(f2, vset(-0.5f)) + (third + vproduct(k, vset(-2.12194440e-4f)));
    return vproduct(vset(-2), vproduct(k, vset(0x1.63p-1f)) + (f + low));
}

INLINE vf gaussian_root(vf q) {
    const vf half = vproduct(vset(0.5f), q);
    vf r = (vf)(0x5f3759dfu - ((vu)q >> 1));
    for (int i = 0; i < 3; i++) r = vproduct(r, 1.5f - vproduct(vproduct(half, r), r));
    return vproduct(q, r);
}

/* r cos and r sin of 2 pi w/2^32: by quarters of a turn, which change places and signs. */
INLINE void gaussian_pair(vf r, vu w, vf *even, vf *odd) {
    static const float c[] = { 8.93573218e-4f, -2.08552536e-2f, 2.53668517e-1f, -1.23370051f },
                       s[] = { -4.68931627e-3f, 7.97135457e-2f, -6.45966709e-1f, 1.57079637f };
    const vu quarter = (w + 0x20000000u) >> 30;
    const vf x = vproduct(__builtin_convertvector((vi)(w - (quarter << 30)), vf), vset(0x1p-30f)), x2 = vproduct(x, x);
    const vf cosine = vproduct(x2, gaussian_polynomial(x2, c, 4)) + 1.0f,
             sine = vproduct(x, gaussian_polynomial(x2, s, 4));
    const vi swap = (vi)(quarter << 31) >> 31;
    const vu sign_even = ((quarter + 1) & 2) << 30, sign_odd = (quarter & 2) << 30;
    *even = vproduct(r, (vf)((vu)vsel(swap, sine, cosine) ^ sign_even));
    *odd = vproduct(r, (vf)((vu)vsel(swap, cosine, sine) ^ sign_odd));
}

/* The 4 VL numbers of the VL blocks from `block` on. */
INLINE void gaussian_blocks(const dropout *d, uint64_t block, float *out) {
    vu c[4];
    vf z[4];
    philox_blocks(d, block, c);
    gaussian_pair(gaussian_root(gaussian_logs(c[0])), c[1], &z[0], &z[1]);
    gaussian_pair(gaussian_root(gaussian_logs(c[2])), c[3], &z[2], &z[3]);
    for (int i = 0; i < 4; i++) c[i] = (vu)z[i];
    philox_order(c, out);
}

enum { GAUSSIAN_RUN = 256, GAUSSIAN_BUFFER = GAUSSIAN_RUN + 8 * VL };

/* The numbers of elements first .. first+count-1, count <= GAUSSIAN_RUN: a pointer into `buffer`, readable to the next
 * whole vector. */
INLINE const float *gaussian_run(const dropout *d, uint64_t first, int count, float buffer[GAUSSIAN_BUFFER]) {
    const int skip = (int)(first % 4);
    for (int i = 0; i < skip + count; i += 4 * VL) gaussian_blocks(d, first / 4 + (uint64_t)(i / 4), buffer + i);
    return buffer + skip;
}

#endif
