/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on devices: the host side. */
#include "dropout.h"
#include "host.h"

static trine_status launch(const trine_call *call) {
    const trine_dropout_args *args = call->args;
    const dropout_params p = { simt_walk_of(call, call->present, 1), simt_dropout_of(args->p, args->seed, args->offset) };
    const simt_function function = { .type = { call->tensor[1].dtype } };
    return simt_launch(call, &function, simt_blocks(p.walk.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(dropout) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
