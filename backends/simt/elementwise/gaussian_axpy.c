/* SPDX-License-Identifier: Apache-2.0 */
/* gaussian_axpy on devices: the host side. */
#include <assert.h>

#include "gaussian_axpy.h"
#include "backends/simt/core/host.h"
#include "spec/places/gaussian_axpy.h"

static_assert((int)GAUSSIAN_AXPY_Y < SIMT_WALK_TENSORS, "the walk has room for it");

static trine_status launch(const trine_call *call) {
    const trine_gaussian_axpy_args *args = call->args;
    const uint32_t walked = 1u << GAUSSIAN_AXPY_X | 1u << GAUSSIAN_AXPY_Y;
    const bool told = simt_present(call, GAUSSIAN_AXPY_PHILOX);
    const gaussian_axpy_params p = {
        .walk = simt_walk_of(call, walked, GAUSSIAN_AXPY_Y),
        .generator = simt_dropout_of(0, args->seed, args->offset),
        .philox = told ? call->tensor[GAUSSIAN_AXPY_PHILOX].data : NULL,
        .told = simt_present(call, GAUSSIAN_AXPY_ALPHA_TENSOR) ? call->tensor[GAUSSIAN_AXPY_ALPHA_TENSOR].data : NULL,
        .alpha = args->alpha,
    };
    const simt_function function = { .step = told ? "told" : NULL, .type = { call->tensor[GAUSSIAN_AXPY_Y].dtype } };
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(gaussian_axpy) = { { .name = SIMT_NAME, .launch = launch, .edges = simt_walk_edges }, { 0 } };
