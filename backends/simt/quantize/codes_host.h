/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of codes in groups. */
#ifndef TRINE_SIMT_CODES_HOST_H
#define TRINE_SIMT_CODES_HOST_H

#include <trine/quantize.h>

#include "codes.h"
#include "backends/simt/core/host.h"

static inline simt_groups codes_groups(const trine_call *call, int tensor) {
    if (tensor < 0 || !simt_present(call, tensor)) return (simt_groups){ 0 };
    const trine_tensor *t = &call->tensor[tensor];
    return (simt_groups){ t->data, t->stride[0], t->stride[1] };
}

/* Of scales, zeros and mins. */
static inline int codes_type_of(trine_dtype dtype) {
    return dtype == TRINE_F32    ? CODES_F32
           : dtype == TRINE_BF16 ? CODES_BF16
           : dtype == TRINE_F16  ? CODES_F16
                                 : CODES_E8M0;
}

/* Are all groups of numbers aligned to 16 bytes, and all groups of codes to the bytes of a unit? */
static inline bool codes_numbers_aligned(const trine_tensor *x, int64_t n) {
    const int64_t size = (int64_t)trine_dtype_size(x->dtype);
    return n % CODES_UNIT == 0 && (uintptr_t)x->data % 16 == 0 && (x->shape[0] <= 1 || x->stride[0] * size % 16 == 0);
}
static inline bool codes_bytes_aligned(const trine_tensor *codes, int bits) {
    return (uintptr_t)codes->data % (size_t)bits == 0 && (codes->shape[0] <= 1 || codes->stride[0] % bits == 0) &&
           (codes->shape[1] <= 1 || codes->stride[1] % bits == 0);
}

/* The tensors by their places; -1: there is none. Rows of k numbers, `groups` groups of `bytes` bytes each. */
typedef struct codes_places {
    int x, codes, scales, zeros, mins;
    int64_t r, k, groups, bytes;
} codes_places;

static inline simt_codes codes_params(const trine_call *call, const codes_places *at, int32_t offset, int32_t format) {
    const trine_tensor *x = &call->tensor[at->x], *codes = &call->tensor[at->codes];
    const trine_dtype type = call->tensor[at->scales].dtype;
    const int64_t n = at->groups > 0 ? at->k / at->groups : 0;
    const int bits = at->k > 0 ? (int)(8 * at->bytes * at->groups / at->k) : 8;
    return (simt_codes){ .x = { .data = x->data, .row = x->stride[0] },
                         .codes = codes_groups(call, at->codes),
                         .scales = codes_groups(call, at->scales),
                         .zeros = codes_groups(call, at->zeros),
                         .mins = codes_groups(call, at->mins),
                         .n = n,
                         .items = at->r * at->groups,
                         .groups = simt_divisor_of(at->groups > 0 ? at->groups : 1),
                         .bits = bits,
                         .type = codes_type_of(type),
                         .others = type == TRINE_E8M0 ? CODES_F32 : codes_type_of(type),
                         .float8 = codes->dtype == TRINE_E4M3   ? CODES_E4M3
                                   : codes->dtype == TRINE_E5M2 ? CODES_E5M2
                                                                : CODES_WHOLE_NUMBERS,
                         .offset = (float)offset,
                         .sign = codes->dtype == TRINE_I8,
                         .e2m1 = format == TRINE_CODES_E2M1,
                         .vectors = codes_numbers_aligned(x, n),
                         .words = (bits == 4 || bits == 8) && codes_bytes_aligned(codes, bits) };
}

#endif
