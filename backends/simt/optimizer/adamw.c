/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on devices: the host side. */
#include "adamw.h"

#include <assert.h>
#include <math.h>

#include "backends/simt/core/host.h"
#include "spec/places/adamw.h"

static_assert((int)ADAMW_COPY < SIMT_WALK_TENSORS, "the walk has room for it");

static trine_status launch(const trine_call *call) {
    const trine_adamw_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const double steps = (double)args->step;
    const adamw_params p = {
        .walk = simt_walk_of(call, call->present & ~(1u << ADAMW_GRAD_SCALE), ADAMW_M),
        .decay = (float)((double)args->lr * args->weight_decay),
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .rate = (float)(args->lr / -expm1(steps * log(args->beta1))), /* 1 - beta^t without cancellation */
        .inverse_root = (float)(1 / sqrt(-expm1(steps * log(args->beta2)))),
        .eps = args->eps,
        .grad_scale = simt_present(call, ADAMW_GRAD_SCALE) ? tensor[ADAMW_GRAD_SCALE].data : NULL,
        .copy_bf16 = simt_present(call, ADAMW_COPY) && tensor[ADAMW_COPY].dtype == TRINE_BF16,
    };
    const simt_function function = { .type = { tensor[ADAMW_PARAM].dtype, tensor[ADAMW_GRAD].dtype,
                                               tensor[ADAMW_M].dtype } };
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(adamw) = { { .name = SIMT_NAME, .launch = launch, .edges = simt_walk_edges }, { 0 } };
