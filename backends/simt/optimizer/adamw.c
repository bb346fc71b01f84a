/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on devices: the host side. */
#include "adamw.h"

#include <assert.h>
#include <math.h>

#include "backends/simt/core/host.h"
#include "spec/places/adamw.h"

static_assert((int)ADAMW_COPY < SIMT_WALK_TENSORS, "the walk has room for it");

static bool told(const trine_call *call) {
    return simt_present(call, ADAMW_LR_TENSOR) || simt_present(call, ADAMW_STEP_TENSOR);
}

static size_t workspace(const trine_call *call) { return told(call) ? sizeof(adamw_scalars) : 0; }

static const void *data_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

static trine_status find_scalars(const trine_call *call) {
    const trine_adamw_args *args = call->args;
    const adamw_told_params p = { .lr = data_of(call, ADAMW_LR_TENSOR),
                                  .step = data_of(call, ADAMW_STEP_TENSOR),
                                  .lr_here = args->lr,
                                  .weight_decay = args->weight_decay,
                                  .log1 = log(args->beta1),
                                  .log2 = log(args->beta2),
                                  .step_here = args->step,
                                  .scalars = call->workspace };
    return simt_launch(call, &(simt_function){ .step = "told" }, 1, ADAMW_TOLD_THREADS, &p, sizeof p);
}

static adamw_scalars scalars_of(const trine_adamw_args *args) {
    const double steps = (double)args->step;
    return (adamw_scalars){
        .decay = (float)((double)args->lr * args->weight_decay),
        .rate = (float)(args->lr / -expm1(steps * log(args->beta1))), /* 1 - beta^t without cancellation */
        .inverse_root = (float)(1 / sqrt(-expm1(steps * log(args->beta2)))),
    };
}

static trine_status launch(const trine_call *call) {
    const trine_adamw_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const uint32_t walked = 1u << ADAMW_PARAM | 1u << ADAMW_GRAD | 1u << ADAMW_M | 1u << ADAMW_V | 1u << ADAMW_COPY;
    adamw_params p = {
        .walk = simt_walk_of(call, call->present & walked, ADAMW_M),
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .eps = args->eps,
        .told = told(call) ? call->workspace : NULL,
        .grad_scale = data_of(call, ADAMW_GRAD_SCALE),
        .found_inf = data_of(call, ADAMW_FOUND_INF),
        .copy_bf16 = simt_present(call, ADAMW_COPY) && tensor[ADAMW_COPY].dtype == TRINE_BF16,
    };
    if (!told(call)) p.scalars = scalars_of(args);
    const simt_function function = { .type = { tensor[ADAMW_PARAM].dtype, tensor[ADAMW_GRAD].dtype,
                                               tensor[ADAMW_M].dtype } };
    const trine_status status = told(call) ? find_scalars(call) : TRINE_OK;
    if (status != TRINE_OK) return status;
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(adamw) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = simt_walk_edges },
                        { 0 } };
