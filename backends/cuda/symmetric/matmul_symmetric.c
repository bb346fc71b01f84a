/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric on CUDA devices: the host side. */
#include "backends/cuda/driver/state.h"
#include "backends/cuda/matmul/matmul_tiles.h"
#include "backends/simt/symmetric/matmul_symmetric_host.h"

enum { MMA_BYTES = MATMUL_MMA_BYTES(SYMMETRIC_SIDE, SYMMETRIC_SIDE), MMA_THREADS = 128 };

static bool by_cores(const trine_call *call) { return trine_dtype_size(call->type[MATMUL_SYMMETRIC_TYPE_T]) == 2; }

static const char *refuse(const trine_call *call) {
    return by_cores(call) && ((const cuda_device *)call->device)->shared < MMA_BYTES
               ? "a block cannot have as much shared memory"
               : NULL;
}

static matmul_params mma_params_of(const trine_call *call) {
    const symmetric_params own = symmetric_params_of(call, SYMMETRIC_SIDE);
    const trine_dtype type = call->type[MATMUL_SYMMETRIC_TYPE_O];
    const matmul_operand a = { .data = own.a,
                               .batch = own.batch,
                               .lane = own.lane,
                               .along = own.along,
                               .across = own.across,
                               .wide = own.aligned };
    return (matmul_params){ .a = a,
                            .b = a,
                            .to = { .d = own.d.data,
                                    .c = own.c.data,
                                    .d_batch = own.d.batch,
                                    .d_row = own.d.row,
                                    .c_batch = own.c.batch,
                                    .c_row = own.c.row,
                                    .alpha = own.alpha,
                                    .beta = own.beta,
                                    .type = type == TRINE_F32   ? MATMUL_F32
                                            : type == TRINE_F16 ? MATMUL_F16
                                                                : MATMUL_BF16 },
                            .m = own.m,
                            .n = own.m,
                            .k = own.k,
                            .tiles = own.tiles };
}

static trine_status launch(const trine_call *call) {
    if (!by_cores(call)) return symmetric_launch(call);
    const matmul_params p = mma_params_of(call);
    const simt_function function = { .step = p.a.across ? "mma_l" : "mma_k",
                                     .type = { call->type[MATMUL_SYMMETRIC_TYPE_T] },
                                     .shared = MMA_BYTES };
    return simt_launch(call, &function, call->dim[MATMUL_SYMMETRIC_DIM_G] * p.tiles, MMA_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    symmetric_edges(call, edges);
    if (!by_cores(call)) return;
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, 64);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, (int64_t)64 * MATMUL_MMA_STAGES);
}

SIMT_KERNELS(matmul_symmetric) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
