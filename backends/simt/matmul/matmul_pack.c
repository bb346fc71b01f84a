/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_pack on devices: the host side. */
#include <trine/matmul.h>

#include "matmul_pack.h"
#include "backends/simt/core/host.h"
#include "spec/matmul/packed.h"
#include "spec/places/matmul_pack.h"

static trine_status launch(const trine_call *call) {
    const trine_tensor *b = &call->tensor[MATMUL_PACK_B], *packed = &call->tensor[MATMUL_PACK_PACKED];
    const int64_t deep = packed_deep(b->dtype), lines = packed->shape[2] * PACKED_DEPTH / deep;
    if (call->empty) return TRINE_OK;
    const matmul_pack_params p = { .b = b->data,
                                   .packed = packed->data,
                                   .lines = simt_divisor_of(lines),
                                   .groups = simt_divisor_of(packed->shape[1]),
                                   .b_batch = b->stride[0],
                                   .b_along = b->stride[1],
                                   .b_lane = b->stride[2],
                                   .packed_batch = packed->stride[0],
                                   .packed_group = packed->stride[1],
                                   .packed_block = packed->stride[2],
                                   .n = call->dim[MATMUL_PACK_DIM_N],
                                   .k = call->dim[MATMUL_PACK_DIM_K],
                                   .words = packed->shape[0] * packed->shape[1] * lines * PACKED_COLUMNS };
    const simt_function function = { .variant = (int)trine_dtype_size(b->dtype) };
    return simt_launch(call, &function, simt_blocks(p.words, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_PACK_DIM_K, PACKED_DEPTH);
    trine_kernel_edge(edges, MATMUL_PACK_DIM_N, PACKED_COLUMNS);
}

SIMT_KERNELS(matmul_pack) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
