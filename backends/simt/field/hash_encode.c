/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode on devices: the host side. */
#include "grid_host.h"
#include "spec/places/hash_encode.h"

static trine_status launch(const trine_call *call) {
    const trine_hash_encode_args *args = call->args;
    grid_params p = grid_params_of(call, HASH_ENCODE_X, HASH_ENCODE_TABLE, HASH_ENCODE_OFFSETS, HASH_ENCODE_Y,
                                   args->per_level_scale, args->base_resolution);
    p.smooth = args->interpolation == TRINE_INTERPOLATION_SMOOTHSTEP;
    const simt_function function = { .type = { call->type[HASH_ENCODE_TYPE_T] },
                                     .variant = (int)call->dim[HASH_ENCODE_DIM_D] };
    return simt_launch(call, &function, simt_blocks(p.n * p.l, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, HASH_ENCODE_DIM_N, SIMT_THREADS);
}

SIMT_KERNELS(hash_encode) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
