/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm_backward on devices: the host side. */
#include "l1_norm.h"
#include "backends/simt/core/host.h"
#include "spec/places/l1_norm_backward.h"

static const int sums[] = { L1_NORM_BACKWARD_DWEIGHT, L1_NORM_BACKWARD_DBIAS };

static columns_params columns_of(const trine_call *call) {
    const int64_t r = call->dim[L1_NORM_BACKWARD_DIM_R], rows = columns_block_rows(r);
    return (columns_params){ .rows = r,
                             .n = call->dim[L1_NORM_BACKWARD_DIM_N],
                             .block_rows = rows,
                             .blocks = simt_blocks(r, rows),
                             .wide =
                                 simt_aligned(call, L1_NORM_BACKWARD_DY) && simt_aligned(call, L1_NORM_BACKWARD_X) };
}

/* Partial sums of those that are asked for. */
static size_t workspace(const trine_call *call) {
    const columns_params p = columns_of(call);
    return (size_t)(p.blocks * p.n * (simt_present(call, sums[0]) + simt_present(call, sums[1]))) * sizeof(float);
}

static l1_norm_backward_params params_of(const trine_call *call) {
    l1_norm_backward_params p = { .columns = columns_of(call),
                                  .dy = simt_rows_of(call, L1_NORM_BACKWARD_DY),
                                  .x = simt_rows_of(call, L1_NORM_BACKWARD_X),
                                  .dx = simt_rows_of(call, L1_NORM_BACKWARD_DX),
                                  .mean = call->tensor[L1_NORM_BACKWARD_MEAN].data,
                                  .rmad = call->tensor[L1_NORM_BACKWARD_RMAD].data,
                                  .n = call->dim[L1_NORM_BACKWARD_DIM_N],
                                  .f32_weight = call->type[L1_NORM_BACKWARD_TYPE_W] == TRINE_F32,
                                  .weight_aligned = simt_aligned(call, L1_NORM_BACKWARD_WEIGHT) };
    const trine_tensor *weight = trine_call_given(call, L1_NORM_BACKWARD_WEIGHT);
    float *partial = call->workspace;
    p.weight = weight ? weight->data : NULL;
    p.aligned = p.columns.wide && simt_aligned(call, L1_NORM_BACKWARD_DX);
    if (simt_present(call, sums[0])) p.dweight = partial, partial += p.columns.blocks * p.n;
    if (simt_present(call, sums[1])) p.dbias = partial;
    return p;
}

/* Columns go first: dx may be dy. */
static trine_status launch(const trine_call *call) {
    const l1_norm_backward_params p = params_of(call);
    const trine_dtype type = call->type[L1_NORM_BACKWARD_TYPE_T], of_weight = call->type[L1_NORM_BACKWARD_TYPE_W];
    trine_status status = TRINE_OK;
    if (p.dweight || p.dbias)
        status = simt_launch(call, &(simt_function){ .step = "columns", .type = { type } },
                             p.columns.blocks * simt_blocks(p.n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    for (int i = 0; i < 2 && status == TRINE_OK; i++) {
        if (!simt_present(call, sums[i])) continue;
        columns_params finish = p.columns;
        finish.partial = i == 0 ? p.dweight : p.dbias;
        finish.out = simt_rows_of(call, sums[i]);
        status = simt_launch(call, &(simt_function){ .step = "finish", .type = { of_weight } },
                             simt_blocks(p.n, COLUMNS_FINISH), SIMT_THREADS, &finish, sizeof finish);
    }
    if (status != TRINE_OK || p.n == 0) return status;
    return simt_launch(call, &(simt_function){ .type = { type } }, p.columns.rows, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_columns_edges(edges, L1_NORM_BACKWARD_DIM_R, L1_NORM_BACKWARD_DIM_N);
    trine_kernel_edge(edges, L1_NORM_BACKWARD_DIM_N, COLUMNS_FINISH);
    trine_kernel_edge(edges, L1_NORM_BACKWARD_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(l1_norm_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                   { 0 } };
