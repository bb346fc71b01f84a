/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_weights on devices: the host side. */
#include "grouped_matmul_weights.h"
#include "backends/simt/core/host.h"
#include "spec/places/grouped_matmul_weights.h"

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_weights_args *args = call->args;
    const int64_t *dim = call->dim;
    if (dim[GROUPED_MATMUL_WEIGHTS_DIM_P] > INT32_MAX - WEIGHTS_DEPTH) return "more than 2^31 - 33 rows";
    if (dim[GROUPED_MATMUL_WEIGHTS_DIM_E] > INT32_MAX - 1) return "more than 2^31 - 2 groups";
    return simt_present(call, GROUPED_MATMUL_WEIGHTS_GATHER) &&
                   dim[GROUPED_MATMUL_WEIGHTS_DIM_R] > INT32_MAX / args->divide
               ? "more than 2^31 - 1 numbers to gather by"
               : NULL;
}

static void *data_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_grouped_matmul_weights_args *args = call->args;
    const trine_tensor *dw = &call->tensor[GROUPED_MATMUL_WEIGHTS_DW],
                       *dbias = &call->tensor[GROUPED_MATMUL_WEIGHTS_DBIAS];
    const int64_t n = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_N], k = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_K];
    const weights_params p = { .dy = simt_rows_of(call, GROUPED_MATMUL_WEIGHTS_DY),
                               .x = simt_rows_of(call, GROUPED_MATMUL_WEIGHTS_X),
                               .dw = { .data = dw->data, .batch = dw->stride[0], .row = dw->stride[1] },
                               .dbias = data_of(call, GROUPED_MATMUL_WEIGHTS_DBIAS),
                               .gather = data_of(call, GROUPED_MATMUL_WEIGHTS_GATHER),
                               .offsets = data_of(call, GROUPED_MATMUL_WEIGHTS_OFFSETS),
                               .dbias_group = dbias->stride[0],
                               .r = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_R],
                               .n = n,
                               .k = k,
                               .divide = args->divide,
                               .down = simt_blocks(n, WEIGHTS_ROWS),
                               .right = k > 0 ? simt_blocks(k, WEIGHTS_COLUMNS) : 1,
                               .e = (int32_t)call->dim[GROUPED_MATMUL_WEIGHTS_DIM_E],
                               .p = (int32_t)call->dim[GROUPED_MATMUL_WEIGHTS_DIM_P],
                               .dy_aligned = simt_aligned(call, GROUPED_MATMUL_WEIGHTS_DY),
                               .x_aligned = simt_aligned(call, GROUPED_MATMUL_WEIGHTS_X),
                               .dw_aligned = simt_aligned(call, GROUPED_MATMUL_WEIGHTS_DW),
                               .wide_bias = dbias->dtype == TRINE_F32 };
    const simt_function function = { .type = { call->type[GROUPED_MATMUL_WEIGHTS_TYPE_T],
                                               call->type[GROUPED_MATMUL_WEIGHTS_TYPE_O] } };
    return simt_launch(call, &function, p.e * p.down * p.right, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_N, WEIGHTS_ROWS);
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_K, WEIGHTS_COLUMNS);
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_P, WEIGHTS_DEPTH);
}

SIMT_KERNELS(grouped_matmul_weights) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges },
                                         { 0 } };
