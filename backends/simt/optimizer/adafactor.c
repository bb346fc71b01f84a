/* SPDX-License-Identifier: Apache-2.0 */
/* adafactor on devices: the host side. */
#include "adafactor.h"
#include "optimizer_host.h"
#include "spec/places/adafactor.h"

/* The shape of its tiles, and what the workspace has, which begins at `base`. */
static adafactor_params shape_of(const trine_call *call, char *base, size_t *bytes_out) {
    adafactor_params p = { .r = call->dim[ADAFACTOR_DIM_R], .c = call->dim[ADAFACTOR_DIM_C] };
    p.down = simt_blocks(p.r, ADAFACTOR_ROWS);
    p.across = simt_blocks(p.c, ADAFACTOR_COLUMNS);
    p.tiles = p.down * p.across;
    p.means_count = simt_present(call, ADAFACTOR_ROW_VAR) ? simt_blocks(p.r, ADAFACTOR_SUMS) : 0;
    const size_t columns = (size_t)(p.r * p.across), params = columns + (size_t)(p.c * p.down),
                 updates = params + (size_t)p.tiles, means = updates + (size_t)p.tiles,
                 scalars = (means + (size_t)p.means_count) * sizeof(double);
    const size_t row = scalars + sizeof(adafactor_scalars), col = row + (size_t)p.r * sizeof(float);
    *bytes_out = col + (size_t)p.c * sizeof(float);
    if (base == NULL) return p;
    p.rows = (double *)base;
    p.columns = p.rows + columns;
    p.params = p.rows + params;
    p.updates = p.rows + updates;
    p.means = p.rows + means;
    p.scalars = (adafactor_scalars *)(base + scalars);
    p.row = (float *)(base + row);
    p.col = (float *)(base + col);
    return p;
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    shape_of(call, NULL, &bytes);
    return bytes;
}

static adafactor_params params_of(const trine_call *call) {
    const trine_adafactor_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const trine_dtype type = tensor[ADAFACTOR_PARAM].dtype;
    const bool copies = simt_present(call, ADAFACTOR_COPY);
    size_t bytes;
    adafactor_params p = shape_of(call, call->workspace, &bytes);
    p.param = simt_rows_of(call, ADAFACTOR_PARAM);
    p.grad = simt_rows_of(call, ADAFACTOR_GRAD);
    p.copy = simt_rows_of(call, ADAFACTOR_COPY);
    p.row_var = simt_present(call, ADAFACTOR_ROW_VAR) ? tensor[ADAFACTOR_ROW_VAR].data : NULL;
    p.col_var = tensor[ADAFACTOR_COL_VAR].data;
    p.lr = optimizer_data(call, ADAFACTOR_LR_TENSOR);
    p.step = optimizer_data(call, ADAFACTOR_STEP_TENSOR);
    p.grad_scale = optimizer_data(call, ADAFACTOR_GRAD_SCALE);
    p.found_inf = optimizer_data(call, ADAFACTOR_FOUND_INF);
    p.lr_here = args->lr;
    p.weight_decay = args->weight_decay;
    p.beta2_decay = args->beta2_decay;
    p.eps1 = args->eps1 != 0 ? args->eps1 : type == TRINE_F32 ? 0x1p-23 : type == TRINE_F16 ? 0x1p-10 : 0x1p-7;
    p.eps2 = args->eps2;
    p.clip = args->clip;
    p.step_here = args->step;
    p.limit = (float)(1 / p.eps1);
    p.chances = by_chance_of(call, ADAFACTOR_PARAM, ADAFACTOR_PHILOX, args->stochastic, args->seed, args->stream);
    p.aligned =
        simt_aligned(call, ADAFACTOR_PARAM) && simt_aligned(call, ADAFACTOR_GRAD) && simt_aligned(call, ADAFACTOR_COPY);
    p.copy_bf16 = copies && tensor[ADAFACTOR_COPY].dtype == TRINE_BF16;
    return p;
}

static trine_status launch(const trine_call *call) {
    const adafactor_params p = params_of(call);
    const trine_dtype type = call->tensor[ADAFACTOR_PARAM].dtype, grad = call->tensor[ADAFACTOR_GRAD].dtype;
    const struct {
        simt_function function;
        int64_t blocks;
    } steps[] = {
        { { .step = "squares", .type = { type, grad } }, p.tiles },
        { { .step = "variances" }, p.means_count + simt_blocks(p.c, ADAFACTOR_SUMS) },
        { { .step = "norms", .type = { grad } }, p.tiles },
        { { .step = "factor" }, 1 },
        { { .step = "update", .type = { type, grad } }, p.tiles },
    };
    trine_status status = TRINE_OK;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == TRINE_OK; i++)
        status = simt_launch(call, &steps[i].function, steps[i].blocks, SIMT_THREADS, &p, sizeof p);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ADAFACTOR_DIM_C, ADAFACTOR_LANE);
    trine_kernel_edge(edges, ADAFACTOR_DIM_C, ADAFACTOR_SUMS);
    trine_kernel_edge(edges, ADAFACTOR_DIM_C, ADAFACTOR_COLUMNS);
    trine_kernel_edge(edges, ADAFACTOR_DIM_R, ADAFACTOR_ROWS);
    trine_kernel_edge(edges, ADAFACTOR_DIM_R, ADAFACTOR_ROWS * ADAFACTOR_PARTS);
}

SIMT_KERNELS(adafactor) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
