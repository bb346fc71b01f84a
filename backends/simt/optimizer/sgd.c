/* SPDX-License-Identifier: Apache-2.0 */
/* sgd on devices: the host side. */
#include "sgd.h"

#include <assert.h>

#include "optimizer_host.h"
#include "spec/places/sgd.h"

static_assert((int)SGD_COPY < SIMT_WALK_TENSORS, "the walk has room for it");

/* What the length of vectors is of: where there is no moment, its type is that of other numbers as wide. */
static int widest(const trine_call *call) {
    return simt_present(call, SGD_MOMENT) ? SGD_MOMENT : simt_present(call, SGD_PARAM) ? SGD_PARAM : SGD_GRAD;
}

static trine_status launch(const trine_call *call) {
    const trine_sgd_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const uint32_t walked = 1u << SGD_PARAM | 1u << SGD_GRAD | 1u << SGD_MOMENT | 1u << SGD_UPDATE | 1u << SGD_COPY;
    const sgd_params p = {
        .walk = simt_walk_of(call, call->present & walked, widest(call)),
        .momentum = args->momentum,
        .part = (float)(1.0 - (double)args->dampening),
        .lr = args->lr,
        .weight_decay = args->weight_decay,
        .scale = args->scale,
        .told_lr = optimizer_data(call, SGD_LR_TENSOR),
        .grad_scale = optimizer_data(call, SGD_GRAD_SCALE),
        .found_inf = optimizer_data(call, SGD_FOUND_INF),
        .chances = by_chance_of(call, SGD_PARAM, SGD_PHILOX, args->stochastic, args->seed, args->stream),
        .nesterov = args->nesterov,
        .copy_bf16 = simt_present(call, SGD_COPY) && tensor[SGD_COPY].dtype == TRINE_BF16,
    };
    const simt_function function = { .type = {
                                         simt_present(call, SGD_PARAM) ? tensor[SGD_PARAM].dtype : TRINE_F32,
                                         tensor[SGD_GRAD].dtype,
                                         trine_dtype_size(tensor[widest(call)].dtype) > 2 ? TRINE_F32 : TRINE_BF16,
                                     } };
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(sgd) = { { .name = SIMT_NAME, .launch = launch, .edges = simt_walk_edges }, { 0 } };
