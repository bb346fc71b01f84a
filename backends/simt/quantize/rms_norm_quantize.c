/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_quantize on devices: the host side. */
#include "rms_norm_quantize.h"
#include "rows_host.h"
#include "spec/places/rms_norm_quantize.h"

static trine_status launch(const trine_call *call) {
    const trine_rms_norm_quantize_args *args = call->args;
    const row_places at = { RMS_NORM_QUANTIZE_CODES,
                            RMS_NORM_QUANTIZE_SCALES,
                            RMS_NORM_QUANTIZE_Y,
                            call->dim[RMS_NORM_QUANTIZE_DIM_R],
                            call->dim[RMS_NORM_QUANTIZE_DIM_K],
                            call->dim[RMS_NORM_QUANTIZE_DIM_GROUPS],
                            args->powers == TRINE_POWERS_ALL,
                            args->upward };
    const rms_norm_quantize_params p = { .out = row_codes_of(call, &at),
                                         .x = simt_rows_of(call, RMS_NORM_QUANTIZE_X),
                                         .residual = simt_rows_of(call, RMS_NORM_QUANTIZE_RESIDUAL),
                                         .weight = simt_rows_of(call, RMS_NORM_QUANTIZE_WEIGHT),
                                         .residual_out = simt_rows_of(call, RMS_NORM_QUANTIZE_RESIDUAL_OUT),
                                         .residual_wide = call->type[RMS_NORM_QUANTIZE_TYPE_R] == TRINE_F32,
                                         .weight_wide = call->type[RMS_NORM_QUANTIZE_TYPE_W] == TRINE_F32,
                                         .eps = args->eps,
                                         .weight_offset = args->weight_offset };
    const simt_function function = { .type = { call->type[RMS_NORM_QUANTIZE_TYPE_T] }, .variant = row_team(p.out.n) };
    return simt_launch(call, &function, at.groups > 0 ? at.r : 0, SIMT_THREADS, &p, sizeof p);
}

/* A unit of codes, and what a team has, of one group. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, CODES_UNIT);
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, ROW_SMALL);
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, ROW_MIDDLE);
    trine_kernel_edge(edges, RMS_NORM_QUANTIZE_DIM_K, SIMT_THREADS * CODES_UNIT);
}

SIMT_KERNELS(rms_norm_quantize) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
