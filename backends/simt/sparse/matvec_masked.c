/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_masked on devices: the host side. */
#include "dots.h"
#include "backends/simt/core/host.h"
#include "spec/places/matvec_masked.h"

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[MATVEC_MASKED_DIM_R], n = call->dim[MATVEC_MASKED_DIM_N],
                  blocks = simt_blocks(n, DOTS_TEAMS);
    const dots_params p = { .x = simt_rows_of(call, MATVEC_MASKED_X),
                            .w = simt_rows_of(call, MATVEC_MASKED_W),
                            .y = simt_rows_of(call, MATVEC_MASKED_Y),
                            .other = simt_rows_of(call, MATVEC_MASKED_GATE),
                            .t = r,
                            .k = call->dim[MATVEC_MASKED_DIM_K],
                            .outputs = n,
                            .blocks = simt_divisor_of(blocks),
                            .whole = simt_aligned(call, MATVEC_MASKED_X) && simt_aligned(call, MATVEC_MASKED_W) &&
                                     call->dim[MATVEC_MASKED_DIM_K] % SIMT_VECTOR == 0 };
    const int few = r == 1 ? 1 : DOTS_FEW;
    const simt_function function = { .type = { call->type[MATVEC_MASKED_TYPE_T] }, .variant = few };
    return simt_launch(call, &function, blocks * simt_blocks(r, few), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATVEC_MASKED_DIM_K, SIMT_VECTOR);
    trine_kernel_edge(edges, MATVEC_MASKED_DIM_K, SIMT_VECTOR * DOTS_TEAM);
    trine_kernel_edge(edges, MATVEC_MASKED_DIM_R, DOTS_FEW);
    trine_kernel_edge(edges, MATVEC_MASKED_DIM_N, DOTS_TEAMS);
}

SIMT_KERNELS(matvec_masked) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
