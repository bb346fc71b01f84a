/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of codes in words. */
#ifndef TRINE_SIMT_PACKING_HOST_H
#define TRINE_SIMT_PACKING_HOST_H

#include <trine/quantize.h>

#include "packing.h"
#include "backends/simt/core/host.h"

static inline packing_tensor packing_tensor_of(const trine_tensor *t) {
    const int d = t->rank - 1;
    return (packing_tensor){ t->data, t->rank == 3 ? t->stride[0] : 0, t->stride[d - 1], t->stride[d] };
}

static inline int64_t packing_size(int64_t stride) { return stride < 0 ? -stride : stride; }

static inline trine_status packing_launch(const trine_call *call, int codes_tensor, int packed_tensor, int output,
                                          int32_t order) {
    static const int32_t orders[] = { [TRINE_ORDER_ASCENDING] = PACKING_ASCENDING,
                                      [TRINE_ORDER_DESCENDING] = PACKING_DESCENDING,
                                      [TRINE_ORDER_AWQ] = PACKING_AWQ };
    const trine_tensor *codes = &call->tensor[codes_tensor], *packed = &call->tensor[packed_tensor],
                       *to = &call->tensor[output];
    const int64_t k = codes->shape[codes->rank - 1], words = packed->shape[packed->rank - 1],
                  q = to->shape[to->rank - 2], along = to->shape[to->rank - 1];
    const int64_t count = (to->rank == 3 ? to->shape[0] : 1) * q * along;
    if (count == 0) return TRINE_OK;
    const int width = packed->dtype == TRINE_I32 ? 32 : 8;
    const bool across = packing_size(to->stride[to->rank - 2]) < packing_size(to->stride[to->rank - 1]);
    const packing_params p = { .codes = packing_tensor_of(codes),
                               .packed = packing_tensor_of(packed),
                               .k = k,
                               .count = count,
                               .inner = simt_divisor_of(across ? q : along),
                               .outer = simt_divisor_of(across ? along : q),
                               .width = width,
                               .bits = (int32_t)(words * width / k),
                               .each = (int32_t)(k / words),
                               .order = orders[order],
                               .across = across,
                               .sign = codes->dtype == TRINE_I8 };
    return simt_launch(call, &(simt_function){ 0 }, simt_blocks(p.count, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

#endif
