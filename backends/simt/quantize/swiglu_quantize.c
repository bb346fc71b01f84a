/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_quantize on devices: the host side. */
#include "swiglu_quantize.h"
#include "rows_host.h"
#include "spec/places/swiglu_quantize.h"

static trine_status launch(const trine_call *call) {
    const trine_swiglu_quantize_args *args = call->args;
    const row_places at = { SWIGLU_QUANTIZE_CODES,
                            SWIGLU_QUANTIZE_SCALES,
                            SWIGLU_QUANTIZE_Y,
                            call->dim[SWIGLU_QUANTIZE_DIM_R],
                            call->dim[SWIGLU_QUANTIZE_DIM_K],
                            call->dim[SWIGLU_QUANTIZE_DIM_GROUPS],
                            args->powers == TRINE_POWERS_ALL,
                            args->upward };
    const swiglu_quantize_params p = { .out = row_codes_of(call, &at),
                                       .gate = simt_rows_of(call, SWIGLU_QUANTIZE_GATE),
                                       .up = simt_rows_of(call, SWIGLU_QUANTIZE_UP),
                                       .factor = simt_rows_of(call, SWIGLU_QUANTIZE_FACTOR),
                                       .items = at.r * at.groups,
                                       .gelu = args->activation == TRINE_GATE_GELU };
    const int team = row_team(p.out.n);
    const simt_function function = { .type = { call->type[SWIGLU_QUANTIZE_TYPE_T] }, .variant = team };
    return simt_launch(call, &function, simt_blocks(p.items, SIMT_THREADS / team), SIMT_THREADS, &p, sizeof p);
}

/* A unit of codes, and what a team has, of one group. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SWIGLU_QUANTIZE_DIM_K, CODES_UNIT);
    trine_kernel_edge(edges, SWIGLU_QUANTIZE_DIM_K, ROW_SMALL);
    trine_kernel_edge(edges, SWIGLU_QUANTIZE_DIM_K, ROW_MIDDLE);
    trine_kernel_edge(edges, SWIGLU_QUANTIZE_DIM_K, SIMT_THREADS * CODES_UNIT);
}

SIMT_KERNELS(swiglu_quantize) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
