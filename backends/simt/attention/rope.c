/* SPDX-License-Identifier: Apache-2.0 */
/* rope on devices: the host side. */
#include <trine/attention.h>

#include "rope_launch.h"

static trine_status launch(const trine_call *call) {
    return rope_launch(call, ((const trine_rope_args *)call->args)->interleaved, 1);
}

SIMT_KERNELS(rope) = { { .name = SIMT_NAME, .launch = launch, .edges = rope_edges }, { 0 } };
