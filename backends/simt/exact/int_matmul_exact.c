/* SPDX-License-Identifier: Apache-2.0 */
/* int_matmul_exact on devices: the host side. */
#include "backends/simt/core/host.h"
#include "exact.h"
#include "spec/places/int_matmul_exact.h"

/* Words of a slice. */
static int64_t words_of(const trine_call *call) {
    const int64_t words = simt_blocks(call->dim[INT_MATMUL_EXACT_DIM_K], 4);
    return (words > 0 ? simt_blocks(words, EXACT_STEP) : 1) * EXACT_STEP;
}

static int64_t lines_of(const trine_call *call, int dim) { return call->dim[INT_MATMUL_EXACT_DIM_G] * call->dim[dim]; }

static size_t workspace(const trine_call *call) {
    const trine_int_matmul_exact_args *args = call->args;
    const size_t lines = (size_t)call->dim[INT_MATMUL_EXACT_DIM_G] *
                         ((size_t)call->dim[INT_MATMUL_EXACT_DIM_M] + (size_t)call->dim[INT_MATMUL_EXACT_DIM_N]);
    return lines * sizeof(uint32_t) * (size_t)(args->slices * words_of(call) + 1);
}

static exact_lines operand(const trine_tensor *t, int line, int along, int64_t count, uint32_t *digits,
                           int32_t *exponents) {
    return (exact_lines){ t->data, t->stride[0], t->stride[line], t->stride[along], count, digits, exponents };
}

static trine_status launch(const trine_call *call) {
    const trine_int_matmul_exact_args *args = call->args;
    const trine_tensor *d = &call->tensor[INT_MATMUL_EXACT_D];
    const int64_t m = call->dim[INT_MATMUL_EXACT_DIM_M], n = call->dim[INT_MATMUL_EXACT_DIM_N],
                  rows = lines_of(call, INT_MATMUL_EXACT_DIM_M), columns = lines_of(call, INT_MATMUL_EXACT_DIM_N),
                  size = args->slices * words_of(call);
    uint32_t *const digits = call->workspace;
    int32_t *const exponents = (int32_t *)(void *)(digits + (rows + columns) * size);
    const exact_params p = { .a = operand(&call->tensor[INT_MATMUL_EXACT_A], 1, 2, m, digits, exponents),
                             .b = operand(&call->tensor[INT_MATMUL_EXACT_B], 2, 1, n, digits + rows * size,
                                          exponents + rows),
                             .d = { d->data, d->stride[0], d->stride[1] },
                             .k = call->dim[INT_MATMUL_EXACT_DIM_K],
                             .words = words_of(call),
                             .down = simt_blocks(m, EXACT_SIDE),
                             .across = simt_blocks(n, EXACT_SIDE),
                             .rows = rows,
                             .slices = args->slices };
    const simt_function slice = { .step = "slice" }, product = { .step = "product" };
    const trine_status status = simt_launch(call, &slice, rows + columns, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &product, call->dim[INT_MATMUL_EXACT_DIM_G] * p.down * p.across, SIMT_THREADS, &p,
                       sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, INT_MATMUL_EXACT_DIM_M, EXACT_SIDE);
    trine_kernel_edge(edges, INT_MATMUL_EXACT_DIM_N, EXACT_SIDE);
    trine_kernel_edge(edges, INT_MATMUL_EXACT_DIM_K, 4 * EXACT_STEP);
    trine_kernel_edge(edges, INT_MATMUL_EXACT_DIM_K, SIMT_THREADS);
}

SIMT_KERNELS(int_matmul_exact) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                   { 0 } };
