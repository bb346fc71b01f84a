/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of a row of a matrix with a few vectors, which read the row once: of matvec_masked and matvec_rows. */
#ifndef TRINE_CPU_DOTS_H
#define TRINE_CPU_DOTS_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

enum { DOTS_MOST = 4, DOTS_SUMS = 4 }; /* vectors, and partial sums of each */

INLINE void dots_of(float *out, const void *const *x, int vectors, const void *w, int64_t k, trine_dtype T) {
    vf sum[DOTS_MOST][DOTS_SUMS] = { { { 0 } } };
    int64_t l = 0;
    for (; l + DOTS_SUMS * VL <= k; l += DOTS_SUMS * VL) {
        __builtin_prefetch((const char *)((uintptr_t)w + (uintptr_t)(l + 32 * VL) * vsize(T)));
#pragma GCC unroll 4
        for (int s = 0; s < DOTS_SUMS; s++) {
            const vf weight = vload(w, T, l + s * VL);
#pragma GCC unroll 4
            for (int i = 0; i < vectors; i++) sum[i][s] = vfma(vload(x[i], T, l + s * VL), weight, sum[i][s]);
        }
    }
    for (; l < k; l += VL) {
        const int n = k - l < VL ? (int)(k - l) : VL;
        const vf weight = n < VL ? vloadn(w, T, l, n, 0) : vload(w, T, l);
        for (int i = 0; i < vectors; i++)
            sum[i][0] = vfma(n < VL ? vloadn(x[i], T, l, n, 0) : vload(x[i], T, l), weight, sum[i][0]);
    }
    for (int i = 0; i < vectors; i++) out[i] = vhsum((sum[i][0] + sum[i][2]) + (sum[i][1] + sum[i][3]));
}

/* Of 1 .. DOTS_MOST vectors. */
INLINE void dots(float *out, const void *const *x, int vectors, const void *w, int64_t k, trine_dtype T) {
    switch (vectors) {
    case 1: dots_of(out, x, 1, w, k, T); break;
    case 2: dots_of(out, x, 2, w, k, T); break;
    case 3: dots_of(out, x, 3, w, k, T); break;
    default: dots_of(out, x, 4, w, k, T);
    }
}

INLINE void *dots_row(const trine_tensor *t, int64_t i) {
    return (char *)t->data + i * t->stride[0] * (int64_t)vsize(t->dtype);
}

/* Along a dot product. */
static inline void dots_edges(trine_kernel_edges *edges, int symbol) {
    trine_kernel_edge(edges, symbol, VL);
    trine_kernel_edge(edges, symbol, DOTS_SUMS * VL);
}

#endif
