/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on sm_90a: the host side. */
#include "cross_entropy_host.h"

enum { HELD = 3, MOST = 8 }; /* blocks of a processor; of a cluster */

/* The fewest blocks that have room for a row together. */
static int blocks_of(const trine_call *call) {
    const int64_t size = (int64_t)trine_dtype_size(call->type[0]);
    int blocks = 2;
    while (blocks <= MOST && simt_blocks(call->dim[1], 8 * blocks) * 8 * size > cross_entropy_room(call, HELD)) blocks++;
    return blocks;
}

const char *cross_entropy_sm90_refuse(const trine_call *call) {
    const cuda_device *d = call->device;
    if (cuda_ops[call->plan->op].code[CUDA_HOPPER] == NULL) return "no code for sm_90a was built";
    if (d->major != 9 || d->minor != 0) return "the device is not of compute capability 9.0";
    if (!d->cluster_launch) return "the device launches no clusters";
    if (!simt_present(call, CROSS_ENTROPY_DLOGITS)) return "no gradient is asked for";
    if (cross_entropy_bytes(call) <= cross_entropy_room(call, 2)) return "one block has room for a row";
    return blocks_of(call) > MOST ? "a row is longer than the shared memory of eight blocks" : NULL;
}

trine_status cross_entropy_sm90_launch(const trine_call *call) { return cross_entropy_launch_parts(call, "parts", HELD, blocks_of(call)); }
