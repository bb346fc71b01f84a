/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric on CUDA devices: the host side. */
#include "backends/cuda/driver/state.h"
#include "backends/cuda/matmul/matmul_tiles.h"
#include "backends/simt/symmetric/matmul_symmetric_product_host.h"

enum { MMA_BYTES = MATMUL_MMA_BYTES(SYMMETRIC_SIDE, SYMMETRIC_SIDE), MMA_THREADS = 128 };

static bool by_cores(const trine_call *call) { return trine_dtype_size(call->type[MATMUL_SYMMETRIC_TYPE_T]) == 2; }

static const char *tiles_refuse(const trine_call *call) {
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

static trine_status tiles_launch(const trine_call *call) {
    if (!by_cores(call)) return symmetric_launch(call);
    const matmul_params p = mma_params_of(call);
    const simt_function function = { .step = p.a.across ? "mma_l" : "mma_k",
                                     .type = { call->type[MATMUL_SYMMETRIC_TYPE_T] },
                                     .shared = MMA_BYTES };
    return simt_launch(call, &function, call->dim[MATMUL_SYMMETRIC_DIM_G] * p.tiles, MMA_THREADS, &p, sizeof p);
}

static void tiles_edges(const trine_call *call, trine_kernel_edges *edges) {
    symmetric_edges(call, edges);
    if (!by_cores(call)) return;
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, 64);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, (int64_t)64 * MATMUL_MMA_STAGES);
}

static size_t tiles_workspace(const trine_call *call) {
    (void)call;
    return 0;
}

/* Of an H200, by the size of a's elements: what a tile takes for a step of k where an SM has it alone, and where it has
 * several at a time, each of them; what is not steps; and what all SMs multiply in a second in matmul's kernels, which
 * have no wgmma elsewhere. */
typedef struct rates {
    double alone, step, begin, product;
} rates;
static rates rates_of(const trine_call *call) {
    static const rates halves = { 12.2e-9, 12.2e-9, 25e-6, 750e12 }, without = { 12.2e-9, 12.2e-9, 25e-6, 200e12 },
                       floats = { 205e-9, 142e-9, 5e-6, 40e12 }, doubles = { 100e-9, 84e-9, 5e-6, 48e12 };
    const size_t size = trine_dtype_size(call->type[MATMUL_SYMMETRIC_TYPE_T]);
    if (size > 2) return size == 4 ? floats : doubles;
    return ((const cuda_device *)call->device)->major == 9 ? halves : without;
}

static double tiles_seconds(const trine_call *call) {
    const symmetric_params p = symmetric_params_of(call, symmetric_side(call));
    const rates r = rates_of(call);
    const int units = simt_units(call);
    const int64_t each = simt_blocks(call->dim[MATMUL_SYMMETRIC_DIM_G] * p.tiles, units > 0 ? units : 1);
    return r.begin + (double)p.k * (each > 1 ? (double)each * r.step : r.alone);
}

static double symmetric_product_seconds(const trine_call *call) {
    const double m = (double)call->dim[MATMUL_SYMMETRIC_DIM_M], g = (double)call->dim[MATMUL_SYMMETRIC_DIM_G];
    return 12e-6 + 2 * g * m * m * (double)call->dim[MATMUL_SYMMETRIC_DIM_K] / rates_of(call).product;
}

/* ------------------------------------------------------------------------------------------------------- which way */

#define WAY(what, which) \
    { .name = SIMT_NAME what, \
      .refuse = which##_refuse, \
      .workspace = which##_workspace, \
      .launch = which##_launch, \
      .seconds = which##_seconds, \
      .edges = which##_edges }
enum { PRODUCT, TILES };
static const trine_kernel ways[] = { [PRODUCT] = WAY("_product", symmetric_product), [TILES] = WAY("_tiles", tiles) };

/* The tiles below the diagonal, where these fill the device; else the whole product, and its workspace. matmul is asked
 * for that once, and not where it would lose. */
static const trine_kernel *way_of(const trine_call *call, size_t *bytes_out) {
    const bool by_tiles = tiles_refuse(call) == NULL;
    *bytes_out = 0;
    if (by_tiles && symmetric_product_seconds(call) >= tiles_seconds(call)) return &ways[TILES];
    if (symmetric_product_needs(call, bytes_out) == TRINE_OK) return &ways[PRODUCT];
    *bytes_out = 0;
    return &ways[TILES];
}

static const char *best_refuse(const trine_call *call) {
    size_t bytes;
    return way_of(call, &bytes) == &ways[PRODUCT] ? NULL : tiles_refuse(call);
}
static size_t best_workspace(const trine_call *call) {
    size_t bytes;
    way_of(call, &bytes);
    return bytes;
}
static trine_status best_launch(const trine_call *call) {
    size_t bytes;
    return way_of(call, &bytes)->launch(call);
}
static double best_seconds(const trine_call *call) {
    size_t bytes;
    return way_of(call, &bytes)->seconds(call);
}
static void best_edges(const trine_call *call, trine_kernel_edges *edges_out) {
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) ways[i].edges(call, edges_out);
}

SIMT_KERNELS(matmul_symmetric) = { WAY("", best), WAY("_product", symmetric_product), WAY("_tiles", tiles), { 0 } };
