/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_quantized on devices: the host side. */
#include "adamw_quantized.h"

#include <assert.h>
#include <math.h>

#include "optimizer_host.h"
#include "spec/places/adamw_quantized.h"

/* A denominator beyond 2^126 has no reciprocal: eps, which alone may make it so, and all it is compared with are then
 * smaller. */
static float unit_of(const trine_adamw_quantized_args *args) { return args->eps > 0x1p100f ? 0x1p-8f : 1; }

static_assert(sizeof(adamw_quantized_begin_params) <= 4096, "what all drivers pass");

static size_t workspace(const trine_call *call) {
    (void)call;
    return sizeof(adamw_quantized_shared);
}

/* The table of codes and the scalars, for all blocks. */
static trine_status begin(const trine_call *call) {
    const trine_adamw_quantized_args *args = call->args;
    adamw_quantized_shared *shared = call->workspace;
    adamw_quantized_begin_params p = {
        .told = { .lr = optimizer_data(call, ADAMW_QUANTIZED_LR_TENSOR),
                  .step = optimizer_data(call, ADAMW_QUANTIZED_STEP_TENSOR),
                  .lr_here = args->lr,
                  .weight_decay = args->weight_decay,
                  .log1 = log(args->beta1),
                  .log2 = log(args->beta2),
                  .step_here = args->step,
                  .scalars = &shared->scalars },
        .shared = shared,
        .unit = unit_of(args),
    };
    dynamic_fill(&p.codes);
    dynamic_lines_fill(&p.m_lines, p.codes.positive, p.codes.positive_middle, 1, -0.5);
    dynamic_lines_fill(&p.v_lines, p.codes.value, p.codes.middle, 2, 256 + DYNAMIC_NEAR / 2 * (double)DYNAMIC_PART);
    return simt_launch(call, &(simt_function){ .step = "begin" }, 1, SIMT_THREADS, &p, sizeof p);
}

static trine_status launch(const trine_call *call) {
    const trine_adamw_quantized_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const bool copies = simt_present(call, ADAMW_QUANTIZED_COPY);
    const int units = simt_units(call);
    const int64_t most = units > 0 ? (int64_t)units * QUANTIZED_HELD : QUANTIZED_MOST,
                  needed = simt_blocks(call->dim[ADAMW_QUANTIZED_DIM_N], QUANTIZED_LINES * DYNAMIC_BLOCK),
                  blocks = needed < most ? needed : most;
    const adamw_quantized_params p = {
        .param = tensor[ADAMW_QUANTIZED_PARAM].data,
        .copy = copies ? tensor[ADAMW_QUANTIZED_COPY].data : NULL,
        .grad = tensor[ADAMW_QUANTIZED_GRAD].data,
        .m = tensor[ADAMW_QUANTIZED_M].data,
        .v = tensor[ADAMW_QUANTIZED_V].data,
        .m_most = tensor[ADAMW_QUANTIZED_M_MOST].data,
        .v_most = tensor[ADAMW_QUANTIZED_V_MOST].data,
        .shared = call->workspace,
        .grad_scale = optimizer_data(call, ADAMW_QUANTIZED_GRAD_SCALE),
        .found_inf = optimizer_data(call, ADAMW_QUANTIZED_FOUND_INF),
        .n = call->dim[ADAMW_QUANTIZED_DIM_N],
        .step = blocks * QUANTIZED_LINES,
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .eps = args->eps * unit_of(args),
        .chances = by_chance_of(call, ADAMW_QUANTIZED_PARAM, ADAMW_QUANTIZED_PHILOX, args->stochastic, args->seed,
                                args->stream),
        .aligned = simt_aligned(call, ADAMW_QUANTIZED_PARAM) && simt_aligned(call, ADAMW_QUANTIZED_GRAD) &&
                   simt_aligned(call, ADAMW_QUANTIZED_M) && simt_aligned(call, ADAMW_QUANTIZED_V) &&
                   simt_aligned(call, ADAMW_QUANTIZED_COPY),
        .copy_bf16 = copies && tensor[ADAMW_QUANTIZED_COPY].dtype == TRINE_BF16,
    };
    const simt_function function = { .type = { tensor[ADAMW_QUANTIZED_PARAM].dtype,
                                               tensor[ADAMW_QUANTIZED_GRAD].dtype } };
    const trine_status status = begin(call);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &function, blocks, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ADAMW_QUANTIZED_DIM_N, QUANTIZED_VECTOR);
    trine_kernel_edge(edges, ADAMW_QUANTIZED_DIM_N, DYNAMIC_BLOCK);
    trine_kernel_edge(edges, ADAMW_QUANTIZED_DIM_N, QUANTIZED_LINES * DYNAMIC_BLOCK);
}

SIMT_KERNELS(adamw_quantized) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                  { 0 } };
