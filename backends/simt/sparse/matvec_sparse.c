/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_sparse on devices: the host side. */
#include "matvec_sparse.h"
#include "backends/simt/core/host.h"
#include "spec/places/matvec_sparse.h"

static int64_t rows_of(const trine_call *call) { return call->dim[MATVEC_SPARSE_DIM_R] == 1 ? 1 : SPARSE_ROWS; }

/* As many parts as make a launch of enough blocks, of whole pieces of w. */
static sparse_params params_of(const trine_call *call) {
    const int64_t n = call->dim[MATVEC_SPARSE_DIM_N], r = call->dim[MATVEC_SPARSE_DIM_R],
                  k = call->dim[MATVEC_SPARSE_DIM_K], pieces = simt_blocks(n, SPARSE_PIECE),
                  tiles = simt_blocks(k, SPARSE_TILE), blocks = tiles * simt_blocks(r, rows_of(call));
    int64_t splits = blocks > 0 ? SPARSE_BLOCKS / blocks : 1;
    if (splits > pieces) splits = pieces;
    if (splits < 1) splits = 1;
    const int64_t part = simt_blocks(pieces, splits) * SPARSE_PIECE;
    return (sparse_params){ .h = simt_rows_of(call, MATVEC_SPARSE_H),
                            .w = simt_rows_of(call, MATVEC_SPARSE_W),
                            .y = simt_rows_of(call, MATVEC_SPARSE_Y),
                            .r = r,
                            .n = n,
                            .k = k,
                            .tiles = tiles,
                            .splits = n > part ? simt_blocks(n, part) : 1,
                            .part = part };
}

static size_t workspace(const trine_call *call) {
    const sparse_params p = params_of(call);
    return p.splits > 1 ? (size_t)(p.splits * p.r * p.k) * sizeof(float) : 0;
}

static trine_status launch(const trine_call *call) {
    sparse_params p = params_of(call);
    p.partial = p.splits > 1 ? call->workspace : NULL;
    p.whole = simt_aligned(call, MATVEC_SPARSE_W);
    const trine_dtype T = call->type[MATVEC_SPARSE_TYPE_T];
    const simt_function parts = { .type = { T }, .variant = (int)rows_of(call) },
                        sum = { .step = "sum", .type = { T } };
    const int64_t blocks = p.tiles * p.splits * simt_blocks(p.r, rows_of(call));
    const trine_status status = simt_launch(call, &parts, blocks, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK || !p.partial) return status;
    return simt_launch(call, &sum, simt_blocks(p.r * p.k, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_K, SIMT_VECTOR);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_K, SPARSE_TILE);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_R, SPARSE_ROWS);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_N, SPARSE_PIECE);
}

SIMT_KERNELS(matvec_sparse) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                { 0 } };
