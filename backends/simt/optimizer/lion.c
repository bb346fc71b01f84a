/* SPDX-License-Identifier: Apache-2.0 */
/* lion on devices: the host side. */
#include "lion.h"

#include <assert.h>
#include <stddef.h>

#include "optimizer_host.h"
#include "spec/places/lion.h"

static_assert((int)LION_COPY < SIMT_WALK_TENSORS, "the walk has room for it");

static lion_step step_of(const trine_call *call) {
    const trine_lion_args *args = call->args;
    return (lion_step){
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .lr = args->lr,
        .weight_decay = args->weight_decay,
        .told_lr = optimizer_data(call, LION_LR_TENSOR),
        .grad_scale = optimizer_data(call, LION_GRAD_SCALE),
        .found_inf = optimizer_data(call, LION_FOUND_INF),
        .chances = by_chance_of(call, LION_PARAM, LION_PHILOX, args->stochastic, args->seed, args->stream),
        .stochastic = args->stochastic,
    };
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *tensor = call->tensor;
    const uint32_t walked = 1u << LION_PARAM | 1u << LION_GRAD | 1u << LION_M | 1u << LION_COPY;
    const lion_params p = {
        .walk = simt_walk_of(call, call->present & walked, LION_M),
        .step = step_of(call),
        .copy_bf16 = simt_present(call, LION_COPY) && tensor[LION_COPY].dtype == TRINE_BF16,
    };
    const simt_function function = { .type = { tensor[LION_PARAM].dtype, tensor[LION_GRAD].dtype,
                                               tensor[LION_M].dtype } };
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static bool same_step(const trine_call *a, const trine_call *b) {
    static const int scalars[] = { LION_LR_TENSOR, LION_GRAD_SCALE, LION_FOUND_INF, LION_PHILOX };
    const trine_lion_args *x = a->args, *y = b->args;
    bool same = x->lr == y->lr && x->stochastic == y->stochastic && x->seed == y->seed &&
                x->weight_decay == y->weight_decay && x->beta1 == y->beta1 && x->beta2 == y->beta2;
    for (int i = 0; i < 4; i++) same = same && optimizer_data(a, scalars[i]) == optimizer_data(b, scalars[i]);
    return same;
}

static trine_status launch_alike(trine_call *const *calls, int64_t count) {
    static const optimizer_places at = {
        LION_PARAM, LION_GRAD, LION_M, -1, LION_COPY, offsetof(trine_lion_args, stream)
    };
    lion_list_params p = { .step = step_of(calls[0]) };
    return optimizer_launch_alike(calls, count, &at, same_step, &p.list, &p, sizeof p);
}

static trine_status launch_list(trine_call *const *calls, int64_t count) {
    return optimizer_launch_list(calls, count, same_step, launch_alike);
}

SIMT_KERNELS(lion) = { { .name = SIMT_NAME, .launch = launch, .edges = simt_walk_edges, .launch_list = launch_list },
                       { 0 } };
