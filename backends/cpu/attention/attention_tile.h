/* SPDX-License-Identifier: Apache-2.0 */
/* What all kernels of attention are made of: a register-blocked product, exponentials, a transposition. */
#ifndef TRINE_CPU_ATTENTION_TILE_H
#define TRINE_CPU_ATTENTION_TILE_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "backends/cpu/core/vec_math.h"

/* Rows and columns of a register tile: with 2 MR accumulators, 2 vectors of the right operand and a broadcast it fits
 * the register file. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { MR = 12 };
#else
enum { MR = 6 };
#endif
enum { NR = 2 * VL };

INLINE int64_t leading(int64_t n) { return cpu_round_up(n, 16) + (cpu_round_up(n, 16) % 32 == 0 ? 16 : 0); }

INLINE vf get(const float *at) { return vload(at, TRINE_F32, 0); }
INLINE void put(float *at, vf x) { vstore(at, TRINE_F32, 0, x); }

/* ---------------------------------------------------------------------------------------------------------- product */

typedef enum tile_mode { SET, ADD, SCALE } tile_mode;

/* c[i][j] = sum_k a(i, k) b[k][j] for i < mr and j < nv vectors, a(i, k) = a[i ar + k ak];
 * added to what c holds, or to that times factor[i]. */
INLINE void tile(int mr, int nv, int64_t k, const float *a, int64_t ar, int64_t ak, const float *b, int64_t ldb,
                 float *c, int64_t ldc, tile_mode mode, const float *factor) {
    vf sum[MR][4];
#pragma GCC unroll 12
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) {
            const vf old = mode == SET ? vzero() : get(c + i * ldc + j * VL);
            sum[i][j] = mode == SCALE ? old * factor[i] : old;
        }
    for (int64_t l = 0; l < k; l++) {
        vf right[4];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) right[j] = get(b + j * VL);
#pragma GCC unroll 12
        for (int i = 0; i < mr; i++) {
            const vf left = vset(a[i * ar]);
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++) sum[i][j] = vfma(left, right[j], sum[i][j]);
        }
        a += ak;
        b += ldb;
    }
#pragma GCC unroll 12
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) put(c + i * ldc + j * VL, sum[i][j]);
}

/* x becomes e^x in n vectors of values <= 0 or NaN; results below the smallest normal may be 0. Error below 1.1 ulp.
 * The steps are those of vexp, which spends as much again on subnormals. They are long chains: the vectors go in step,
 * because a scheduler sees only one or two of them at a time otherwise. */
INLINE void exp_negative(vf *x, int n) {
    static const float c[] = { 1.38186966e-3f, 8.36871564e-3f, 4.16682921e-2f, 1.66665211e-1f, 4.99999940e-1f };
    const vf magic = vset(0x1.8p23f);
    vf t[4], r[4], p[4];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) t[i] = vfma(vmax(vset(-87.34f), x[i]), vset(1.44269504f), magic);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) r[i] = vfma(t[i] - magic, vset(-LN2_HI), vmax(vset(-87.34f), x[i]));
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) r[i] = vfma(t[i] - magic, vset(-LN2_LO), r[i]);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) p[i] = vfma(vset(c[0]), r[i], vset(c[1]));
#pragma GCC unroll 3
    for (int k = 2; k < 5; k++)
#pragma GCC unroll 4
        for (int i = 0; i < n; i++) p[i] = vfma(p[i], r[i], vset(c[k]));
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) p[i] = vfma(r[i] * r[i], p[i], r[i]) + 1.0f;
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) x[i] = (vf)((vi)(p[i] * (vf)(((vi)t[i] + 127) << 23)) & ~(x[i] < -87.34f));
}

/* -------------------------------------------------------------------------------------------------------- transpose */

#if VL == 4
#define INTERLEAVE(a, b, h) __builtin_shufflevector(a, b, 2 * h, 2 * h + 4, 2 * h + 1, 2 * h + 5)
#elif VL == 8
#define INTERLEAVE(a, b, h) \
    __builtin_shufflevector(a, b, 4 * h, 4 * h + 8, 4 * h + 1, 4 * h + 9, 4 * h + 2, 4 * h + 10, 4 * h + 3, 4 * h + 11)
#else
#define INTERLEAVE(a, b, h) \
    __builtin_shufflevector(a, b, 8 * h, 8 * h + 16, 8 * h + 1, 8 * h + 17, 8 * h + 2, 8 * h + 18, 8 * h + 3, \
                            8 * h + 19, 8 * h + 4, 8 * h + 20, 8 * h + 5, 8 * h + 21, 8 * h + 6, 8 * h + 22, \
                            8 * h + 7, 8 * h + 23)
#endif

/* Transposes VL vectors. Each step rotates the bits of an element's (row, column) to the left by one. */
INLINE void transpose(vf *x) {
#pragma GCC unroll 4
    for (int step = 1; step < VL; step *= 2) {
        vf y[VL];
#pragma GCC unroll 8
        for (int i = 0; i < VL / 2; i++) {
            y[2 * i] = INTERLEAVE(x[i], x[i + VL / 2], 0);
            y[2 * i + 1] = INTERLEAVE(x[i], x[i + VL / 2], 1);
        }
#pragma GCC unroll 16
        for (int i = 0; i < VL; i++) x[i] = y[i];
    }
}

#endif
