/* SPDX-License-Identifier: Apache-2.0 */
/* gated_threshold on devices: the host side. */
#include "gated_threshold.h"
#include "backends/simt/core/host.h"
#include "spec/places/gated_threshold.h"

static const char *refuse(const trine_call *call) {
    return call->dim[GATED_THRESHOLD_DIM_N] > INT32_MAX ? "more than 2^31 - 1 columns" : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_gated_threshold_args *args = call->args;
    const trine_tensor *thresholds = trine_call_given(call, GATED_THRESHOLD_THRESHOLDS),
                       *counts = trine_call_given(call, GATED_THRESHOLD_COUNTS);
    const int64_t r = call->dim[GATED_THRESHOLD_DIM_R], n = call->dim[GATED_THRESHOLD_DIM_N],
                  row_units = simt_blocks(n, SIMT_VECTOR);
    const gated_params p = { .x = simt_rows_of(call, GATED_THRESHOLD_X),
                             .y = simt_rows_of(call, GATED_THRESHOLD_Y),
                             .mask = simt_rows_of(call, GATED_THRESHOLD_MASK),
                             .columns = simt_rows_of(call, GATED_THRESHOLD_COLUMNS),
                             .thresholds = thresholds ? thresholds->data : NULL,
                             .counts = counts ? counts->data : NULL,
                             .row_units = simt_divisor_of(row_units > 0 ? row_units : 1),
                             .units = r * row_units,
                             .n = n,
                             .step = thresholds ? thresholds->stride[0] : 0,
                             .activation = args->activation,
                             .threshold = args->threshold,
                             .aligned =
                                 simt_aligned(call, GATED_THRESHOLD_X) && simt_aligned(call, GATED_THRESHOLD_Y) };
    const bool listed = p.columns.data || p.counts;
    const simt_function function = { .step = listed ? "listed" : NULL, .type = { call->type[GATED_THRESHOLD_TYPE_T] } };
    return simt_launch(call, &function, listed ? r : simt_blocks(p.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, GATED_THRESHOLD_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, GATED_THRESHOLD_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(gated_threshold) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
