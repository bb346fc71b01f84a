/* SPDX-License-Identifier: Apache-2.0 */
/* rope on the CPU. */
#include "rope.h"

static trine_status launch(const trine_call *call) {
    return rope_launch(call, ((const trine_rope_args *)call->args)->interleaved, 1);
}

CPU_KERNELS(rope) = { { CPU_NAME, NULL, NULL, launch, .edges = rope_edges }, { 0 } };
