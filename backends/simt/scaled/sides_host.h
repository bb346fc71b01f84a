/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of products with scales of blocks, for the host side on any device. */
#ifndef TRINE_SIMT_SCALED_SIDES_HOST_H
#define TRINE_SIMT_SCALED_SIDES_HOST_H

#include "matmul_scaled.h"
#include "backends/simt/core/host.h"
#include "spec/scaled/blocks.h"

static inline scaled_type scaled_type_of(trine_dtype type) {
    switch (type) {
    case TRINE_F32: return SCALED_AS_F32;
    case TRINE_BF16: return SCALED_AS_BF16;
    case TRINE_F16: return SCALED_AS_F16;
    case TRINE_E8M0: return SCALED_AS_E8M0;
    default: return SCALED_AS_E4M3;
    }
}

static inline scaled_kind scaled_kind_of(trine_dtype type, bool packed, bool e2m1) {
    if (packed) return e2m1 ? SCALED_IS_E2M1 : SCALED_IS_HALF;
    return type == TRINE_E4M3 ? SCALED_IS_E4M3 : type == TRINE_E5M2 ? SCALED_IS_E5M2 : SCALED_IS_BYTE;
}

/* The last two dimensions of `t`, and of `scales` unless that is NULL. */
static inline scaled_side scaled_side_of(const trine_tensor *t, const trine_tensor *scales, int dims, int64_t k,
                                         scaled_kind kind, int32_t offset) {
    const int row = dims - 2;
    const bool half = kind >= SCALED_IS_E2M1, is_signed = t->dtype == TRINE_I8 && kind != SCALED_IS_E2M1;
    const int64_t run = half ? SCALED_RUN / 2 : SCALED_RUN;
    bool aligned = (int64_t)(uintptr_t)t->data % run == 0;
    for (int d = 0; d <= row; d++) aligned = aligned && t->stride[d] % run == 0;
    return (scaled_side){ .data = t->data,
                          .scale = scales ? scales->data : NULL,
                          .row = t->stride[row],
                          .scale_row = scales ? scales->stride[row] : 0,
                          .rows = t->shape[row],
                          .row_block = scaled_block(t->shape[row], scales ? scales->shape[row] : 1),
                          .block = simt_divisor_of(scaled_block(k, scales ? scales->shape[row + 1] : 1)),
                          .flip = !is_signed ? 0
                                  : half     ? 0x88888888u
                                             : 0x80808080u,
                          .none = offset + (!is_signed ? 0
                                            : half     ? 8
                                                       : 128),
                          .kind = kind,
                          .scale_type = scales ? scaled_type_of(scales->dtype) : SCALED_AS_F32,
                          .aligned = aligned };
}

#endif
