/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on CUDA devices: the host side. Up to 4 rows of x without tensor cores, up to 64 with them. */
#include "backends/simt/matmul/matmul_quantized_host.h"

#include "matmul_quantized.h"

static const char *refuse(const trine_call *call) {
    if (call->type[MATMUL_QUANTIZED_TYPE_T] == TRINE_F32) return "x is f32";
    if (call->dim[MATMUL_QUANTIZED_DIM_K] > INT32_MAX) return "rows of more than 2^31 - 1 weights";
    if (call->dim[MATMUL_QUANTIZED_DIM_M] > 8 * QUANTIZED_MOST_TILES) return "more than 64 rows";
    return call->empty || quantized_params_of(call).words
               ? NULL
               : "codes of 3, 5, 6 or 7 bits, or groups that are not whole words of four bytes";
}

static trine_status launch(const trine_call *call) {
    const quantized_params p = quantized_params_of(call);
    int tiles = 1;
    while (8 * tiles < p.m) tiles *= 2;
    const simt_function function = { .step = p.bits == 4 ? "tiles4" : "tiles",
                                     .type = { call->type[MATMUL_QUANTIZED_TYPE_T] },
                                     .variant = tiles };
    return simt_launch(call, &function, simt_blocks(p.n, QUANTIZED_TILE), SIMT_THREADS, &p, sizeof p);
}

/* Tiles of x's rows and of weights, and a warp's chunk of words. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    for (int tiles = 1; tiles <= QUANTIZED_MOST_TILES; tiles *= 2)
        trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, 8 * tiles);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, QUANTIZED_TILE);
    const int64_t k = call->dim[MATMUL_QUANTIZED_DIM_K],
                  bytes = call->dim[MATMUL_QUANTIZED_DIM_BYTES] * call->dim[MATMUL_QUANTIZED_DIM_GROUPS];
    if (k > 0 && bytes > 0) trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_K, 16 * QUANTIZED_CHUNK * k / bytes);
}

SIMT_KERNELS(matmul_quantized) = {
    { .name = SIMT_NAME, .refuse = quantized_few_refuse, .launch = quantized_few_launch, .edges = quantized_few_edges },
    { .name = SIMT_NAME "_tiles", .refuse = refuse, .launch = launch, .edges = edges },
    { 0 }
};
