/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on CUDA devices: the host side. */
#include <stdio.h>

#include "cross_entropy_host.h"

/* A kilobyte of a processor's memory belongs to each block, and another is its function's own. */
int cross_entropy_room(const trine_call *call, int held) {
    enum { OWN = 1 << 10 };
    return (simt_room_of(call).shared + OWN) / held - 2 * OWN;
}

int64_t cross_entropy_bytes(const trine_call *call) { return call->dim[1] * (int64_t)trine_dtype_size(call->type[0]); }

trine_status cross_entropy_launch_parts(const trine_call *call, const char *step, int held, int blocks) {
    const cross_entropy_parts_params p = { cross_entropy_params_of(call), (int)(blocks > 1 ? simt_blocks(call->dim[1], 8 * blocks) * 8 : call->dim[1]) };
    cuda_launch launch = {
        .part = blocks > 1 ? CUDA_HOPPER : CUDA_COMMON,
        .blocks = p.rows.rows * blocks,
        .threads = CROSS_ENTROPY_THREADS,
        .cluster = blocks > 1 ? blocks : 0,
        .shared = cross_entropy_room(call, held),
        .params = &p,
    };
    snprintf(launch.name, sizeof launch.name, "cross_entropy_%s%s_%s_%d", step, simt_rows_whole(call, 1) ? "" : "_ragged", trine_dtype_name(call->type[0]),
             held);
    return cuda_launch_function(call, &launch);
}

/* The most blocks of a processor that have room for a row each, up to 3; less than 2 leave it waiting. */
static int held_of(const trine_call *call) { return cross_entropy_bytes(call) <= cross_entropy_room(call, 3) ? 3 : 2; }

static const char *refuse_shared(const trine_call *call) {
    enum { LEAST = 16 << 10 }; /* bytes of a row: up to that three blocks of a processor hold theirs in registers */
    if (!simt_present(call, CROSS_ENTROPY_DLOGITS)) return "no gradient is asked for";
    if (cross_entropy_bytes(call) <= LEAST) return "registers hold a row";
    return cross_entropy_bytes(call) > cross_entropy_room(call, 2) ? "a row is longer than half of a processor's shared memory" : NULL;
}

static trine_status launch_shared(const trine_call *call) { return cross_entropy_launch_parts(call, "shared", held_of(call), 1); }

SIMT_KERNELS(cross_entropy) = { { .name = SIMT_NAME "_shared", .refuse = refuse_shared, .launch = launch_shared },
                                { .name = SIMT_NAME "_sm90", .refuse = cross_entropy_sm90_refuse, .launch = cross_entropy_sm90_launch },
                                { .name = SIMT_NAME, .launch = cross_entropy_launch },
                                { 0 } };
