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

static adamw_step step_of(const trine_call *call) {
    const trine_adamw_args *args = call->args;
    adamw_step step = {
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .eps = args->eps,
        .told = told(call) ? call->workspace : NULL,
        .grad_scale = data_of(call, ADAMW_GRAD_SCALE),
        .found_inf = data_of(call, ADAMW_FOUND_INF),
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
    static const int scalars[] = { ADAMW_LR_TENSOR, ADAMW_STEP_TENSOR, ADAMW_GRAD_SCALE, ADAMW_FOUND_INF };
    const trine_adamw_args *x = a->args, *y = b->args;
    bool same = x->step == y->step && x->lr == y->lr && x->weight_decay == y->weight_decay && x->beta1 == y->beta1 &&
                x->beta2 == y->beta2 && x->eps == y->eps;
    for (int i = 0; i < 4; i++) same = same && data_of(a, scalars[i]) == data_of(b, scalars[i]);
    return same;
}

static adamw_item item_of(const trine_call *call, int64_t first) {
    const trine_tensor *tensor = call->tensor;
    return (adamw_item){
        .param = tensor[ADAMW_PARAM].data,
        .m = tensor[ADAMW_M].data,
        .v = tensor[ADAMW_V].data,
        .copy = simt_present(call, ADAMW_COPY) ? tensor[ADAMW_COPY].data : NULL,
        .grad = tensor[ADAMW_GRAD].data,
        .n = call->dim[ADAMW_DIM_N],
        .first = (uint32_t)first,
        .param_type = simt_list_type_of(tensor[ADAMW_PARAM].dtype),
        .grad_type = simt_list_type_of(tensor[ADAMW_GRAD].dtype),
        .state_type = simt_list_type_of(tensor[ADAMW_M].dtype),
        .copy_type = simt_present(call, ADAMW_COPY) ? simt_list_type_of(tensor[ADAMW_COPY].dtype) : 0,
    };
}

/* The calls that have the step of calls[0], as many at a time as parameters have room for. */
static trine_status launch_alike(trine_call *const *calls, int64_t count) {
    const simt_function function = { .step = "list" };
    adamw_list_params p = { .step = step_of(calls[0]) };
    int64_t blocks = 0;
    trine_status status = told(calls[0]) ? find_scalars(calls[0]) : TRINE_OK;
    for (int64_t i = 0; i < count && status == TRINE_OK; i++) {
        if (!same_step(calls[i], calls[0])) continue;
        const int64_t own = simt_blocks(calls[i]->dim[ADAMW_DIM_N], ADAMW_LIST_BLOCK);
        if (p.count == ADAMW_LIST || (p.count > 0 && blocks + own > INT32_MAX)) {
            status = simt_launch(calls[0], &function, blocks, SIMT_THREADS, &p, sizeof p);
            p.count = 0;
            blocks = 0;
        }
        p.item[p.count++] = item_of(calls[i], blocks);
        blocks += own;
    }
    return status == TRINE_OK ? simt_launch(calls[0], &function, blocks, SIMT_THREADS, &p, sizeof p) : status;
}

static trine_status launch_list(trine_call *const *calls, int64_t count) {
    trine_status status = TRINE_OK;
    for (int64_t first = 0; first < count && status == TRINE_OK; first++) {
        int64_t before = 0;
        while (before < first && !same_step(calls[before], calls[first])) before++;
        if (before == first) status = launch_alike(calls + first, count - first);
    }
    return status;
}

SIMT_KERNELS(adamw) = { { .name = SIMT_NAME,
                          .workspace = workspace,
                          .launch = launch,
                          .edges = simt_walk_edges,
                          .launch_list = launch_list },
                        { 0 } };
