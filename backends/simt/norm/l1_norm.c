/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm on devices: the host side. */
#include "l1_norm.h"
#include "backends/simt/core/host.h"
#include "spec/places/l1_norm.h"

static void *data_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

static trine_status launch(const trine_call *call) {
    const l1_norm_params p = { .x = simt_rows_of(call, L1_NORM_X),
                               .y = simt_rows_of(call, L1_NORM_Y),
                               .weight = data_of(call, L1_NORM_WEIGHT),
                               .bias = data_of(call, L1_NORM_BIAS),
                               .mean = data_of(call, L1_NORM_MEAN),
                               .rmad = data_of(call, L1_NORM_RMAD),
                               .n = call->dim[L1_NORM_DIM_N],
                               .eps = ((const trine_l1_norm_args *)call->args)->eps + 0.0f,
                               .f32_weight = call->type[L1_NORM_TYPE_W] == TRINE_F32,
                               .aligned = simt_aligned(call, L1_NORM_X) && simt_aligned(call, L1_NORM_Y),
                               .weight_aligned =
                                   simt_aligned(call, L1_NORM_WEIGHT) && simt_aligned(call, L1_NORM_BIAS) };
    const simt_function function = { .type = { call->type[L1_NORM_TYPE_T] } };
    return simt_launch(call, &function, call->dim[L1_NORM_DIM_R], SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, L1_NORM_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, L1_NORM_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(l1_norm) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
