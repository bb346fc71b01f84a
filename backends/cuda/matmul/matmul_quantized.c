/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on CUDA devices: the host side. Up to 64 rows of x with tensor cores, which multiply by
 * codes as they are, or up to 4 without. */
#include "backends/simt/matmul/matmul_quantized_host.h"

#include "matmul_quantized.h"

/* Codes less their offset must be numbers of x's type: f16 has those to 2048, which is enough for all; bf16 those to
 * 256, and of fewer than 8 bits the way there is from 128 + offset on. */
static const char *refuse(const trine_call *call) {
    if (call->type[MATMUL_QUANTIZED_TYPE_T] == TRINE_F32) return "x is f32";
    if (call->dim[MATMUL_QUANTIZED_DIM_K] > INT32_MAX) return "rows of more than 2^31 - 1 weights";
    if (call->dim[MATMUL_QUANTIZED_DIM_M] > 8 * CODES_TILES) return "more than 64 rows";
    const quantized_params p = quantized_params_of(call);
    if (call->empty || p.groups == 0) return NULL;
    if (!p.words || p.group.by % 4 != 0) return "codes of 3, 5, 6 or 7 bits, or groups that are not whole 16 bytes";
    if (p.e2m1) return p.none == 0 ? NULL : "codes of e2m1 with an offset";
    if (call->type[MATMUL_QUANTIZED_TYPE_T] == TRINE_F16) return NULL;
    const float offset = p.none - 0x1p23f;
    if (p.bits == 8) return offset >= -1 && offset <= 256 ? NULL : "codes beyond 256 from their offset";
    return offset >= -128 && offset <= 128 ? NULL : "an offset beyond 128";
}

static trine_status launch(const trine_call *call) {
    const quantized_params p = quantized_params_of(call);
    int tiles = 1;
    while (8 * tiles < p.m) tiles *= 2;
    const simt_function function = { .step = "codes",
                                     .type = { call->type[MATMUL_QUANTIZED_TYPE_T] },
                                     .variant = tiles };
    return simt_launch(call, &function, simt_blocks(p.n, tiles <= CODES_FEW_TILES ? CODES_FEW_ROWS : CODES_ROWS),
                       SIMT_THREADS, &p, sizeof p);
}

/* Tiles of x's rows and of weights, and a chunk of words of each warp. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    for (int tiles = 1; tiles <= CODES_TILES; tiles *= 2) trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, 8 * tiles);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, CODES_FEW_ROWS);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, CODES_ROWS);
    const int64_t k = call->dim[MATMUL_QUANTIZED_DIM_K],
                  bytes = call->dim[MATMUL_QUANTIZED_DIM_BYTES] * call->dim[MATMUL_QUANTIZED_DIM_GROUPS];
    if (k > 0 && bytes > 0) trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_K, 16 * CODES_WORDS * k / bytes);
}

SIMT_KERNELS(matmul_quantized) = {
    { .name = SIMT_NAME "_codes", .refuse = refuse, .launch = launch, .edges = edges },
    { .name = SIMT_NAME, .refuse = quantized_few_refuse, .launch = quantized_few_launch, .edges = quantized_few_edges },
    { 0 }
};
