/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout of the norms and of their gradients by a key that only the device has: elements that are dropped become 0, in
 * a pass of its own; the kernels of rows then keep and scale all. */
#ifndef TRINE_SIMT_NORM_MASK_H
#define TRINE_SIMT_NORM_MASK_H

#include "backends/simt/core/philox.h"
#include "backends/simt/core/walk.h"
#include "norm.h"

template <class T> struct norm_mask_op {
    template <int N> static DEVICE void step(const norm_mask_params &p, const unit &u) {
        const uint32_t bits = kept<N, false, false>(dropout_told(p.dropout, p.philox), (uint64_t)u.index);
        float x[N];
        unit_load<T>(x, p.walk, SIMT_WALK_FROM, u);
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = bits >> k & 1 ? x[k] : 0.0f;
        unit_store<T>(x, p.walk, SIMT_WALK_TO, u);
    }
};

/* The entries <op>_mask_<T>. */
#define NORM_MASK(op, T) \
    ENTRY_HELD(op##_mask_##T, SIMT_THREADS, 2048 / SIMT_THREADS, norm_mask_params) { \
        walk<norm_mask_op<T>, walk_length<T>>(p); \
    }
#define NORM_MASKS(op) NORM_MASK(op, f32) NORM_MASK(op, bf16) NORM_MASK(op, f16)

#endif
