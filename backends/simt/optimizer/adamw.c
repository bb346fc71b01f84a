/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on devices: the host side. */
#include "adamw.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "optimizer_host.h"
#include "spec/places/adamw.h"

static_assert((int)ADAMW_COPY < SIMT_WALK_TENSORS, "the walk has room for it");

static bool told(const trine_call *call) {
    return simt_present(call, ADAMW_LR_TENSOR) || simt_present(call, ADAMW_STEP_TENSOR);
}

static size_t workspace(const trine_call *call) { return told(call) ? sizeof(adamw_scalars) : 0; }

static trine_status find_scalars(const trine_call *call) {
    const trine_adamw_args *args = call->args;
    const adamw_told_params p = { .lr = optimizer_data(call, ADAMW_LR_TENSOR),
                                  .step = optimizer_data(call, ADAMW_STEP_TENSOR),
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

static adamw_step step_of(const trine_call *call) {
    const trine_adamw_args *args = call->args;
    adamw_step step = {
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .eps = args->eps,
        .told = told(call) ? call->workspace : NULL,
        .grad_scale = optimizer_data(call, ADAMW_GRAD_SCALE),
        .found_inf = optimizer_data(call, ADAMW_FOUND_INF),
        .chances = by_chance_of(call, ADAMW_PARAM, ADAMW_PHILOX, args->stochastic, args->seed, args->stream),
        .stochastic = args->stochastic,
    };
    if (!told(call)) step.scalars = scalars_of(args);
    return step;
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *tensor = call->tensor;
    const uint32_t walked = 1u << ADAMW_PARAM | 1u << ADAMW_GRAD | 1u << ADAMW_M | 1u << ADAMW_V | 1u << ADAMW_COPY;
    const adamw_params p = {
        .walk = simt_walk_of(call, call->present & walked, ADAMW_M),
        .step = step_of(call),
        .copy_bf16 = simt_present(call, ADAMW_COPY) && tensor[ADAMW_COPY].dtype == TRINE_BF16,
    };
    const simt_function function = { .type = { tensor[ADAMW_PARAM].dtype, tensor[ADAMW_GRAD].dtype,
                                               tensor[ADAMW_M].dtype } };
    const trine_status status = told(call) ? find_scalars(call) : TRINE_OK;
    if (status != TRINE_OK) return status;
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

/* ----------------------------------------------------------------------------------------------------------- a list */

/* Do all elements of two calls have the same step? */
static bool same_step(const trine_call *a, const trine_call *b) {
    static const int scalars[] = { ADAMW_LR_TENSOR, ADAMW_STEP_TENSOR, ADAMW_GRAD_SCALE, ADAMW_FOUND_INF,
                                   ADAMW_PHILOX };
    const trine_adamw_args *x = a->args, *y = b->args;
    bool same = x->step == y->step && x->lr == y->lr && x->stochastic == y->stochastic && x->seed == y->seed &&
                x->weight_decay == y->weight_decay && x->beta1 == y->beta1 && x->beta2 == y->beta2 && x->eps == y->eps;
    for (int i = 0; i < 5; i++) same = same && optimizer_data(a, scalars[i]) == optimizer_data(b, scalars[i]);
    return same;
}

static trine_status launch_alike(trine_call *const *calls, int64_t count) {
    static const optimizer_places at = { ADAMW_PARAM, ADAMW_GRAD, ADAMW_M,
                                         ADAMW_V,     ADAMW_COPY, offsetof(trine_adamw_args, stream) };
    adamw_list_params p = { .step = step_of(calls[0]) };
    const trine_status status = told(calls[0]) ? find_scalars(calls[0]) : TRINE_OK;
    return status == TRINE_OK ? optimizer_launch_alike(calls, count, &at, same_step, &p.list, &p, sizeof p) : status;
}

static trine_status launch_list(trine_call *const *calls, int64_t count) {
    return optimizer_launch_list(calls, count, same_step, launch_alike);
}

SIMT_KERNELS(adamw) = { { .name = SIMT_NAME,
                          .workspace = workspace,
                          .launch = launch,
                          .edges = simt_walk_edges,
                          .launch_list = launch_list },
                        { 0 } };
