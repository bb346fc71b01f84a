/* SPDX-License-Identifier: Apache-2.0 */
/* rope_backward on the CPU: the rotation by the opposite angle. */
#include "rope.h"

static trine_status launch(const trine_call *call) {
    return rope_launch(call, ((const trine_rope_backward_args *)call->args)->interleaved, -1);
}

CPU_KERNELS(rope_backward) = { { CPU_NAME, NULL, NULL, launch, .edges = rope_edges }, { 0 } };
