/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal on devices: the host side. */
#include "conv1d.h"
#include "scan_host.h"
#include "spec/places/conv1d_causal.h"

/* Are rows at multiples of 4 bytes? */
static bool is_wide(const trine_tensor *t) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    bool wide = (uintptr_t)t->data % 4 == 0;
    for (int d = 0; d < t->rank - 1; d++) wide = wide && t->stride[d] * size % 4 == 0;
    return wide && t->shape[t->rank - 1] * size % 4 == 0;
}

static trine_status launch(const trine_call *call) {
    const trine_conv1d_causal_args *args = call->args;
    const int64_t *dim = call->dim, b = dim[CONV1D_CAUSAL_DIM_B], t = dim[CONV1D_CAUSAL_DIM_T];
    const trine_tensor *x = &call->tensor[CONV1D_CAUSAL_X], *y = &call->tensor[CONV1D_CAUSAL_Y],
                       *bias = trine_call_given(call, CONV1D_CAUSAL_BIAS);
    const trine_dtype type = call->type[CONV1D_CAUSAL_TYPE_T];
    const conv_params p = {
        .shape = scan_shape_of(call, CONV1D_CAUSAL_CU_SEQLENS, b, t, dim[CONV1D_CAUSAL_DIM_N],
                               dim[CONV1D_CAUSAL_DIM_NSEQ], false),
        .x = simt_rows_of(call, CONV1D_CAUSAL_X),
        .x0 = simt_rows_of(call, CONV1D_CAUSAL_X0),
        .weight = simt_rows_of(call, CONV1D_CAUSAL_WEIGHT),
        .y = simt_rows_of(call, CONV1D_CAUSAL_Y),
        .last = simt_rows_of(call, CONV1D_CAUSAL_LAST),
        .bias = bias ? bias->data : NULL,
        .rows = b * t,
        .wide_tiles = simt_blocks(dim[CONV1D_CAUSAL_DIM_N], SCAN_THREADS * (4 / (int64_t)trine_dtype_size(type))),
        .k = (int32_t)dim[CONV1D_CAUSAL_DIM_K],
        .silu = args->silu,
    };
    const bool few = p.k <= CONV_FEW && t >= CONV_ROWS && is_wide(x) && is_wide(y);
    const simt_function function = { .step = few ? "few" : NULL, .type = { type, call->type[CONV1D_CAUSAL_TYPE_W] } },
                        last = { .step = "last", .type = { type } };
    const int64_t tiles = few ? p.wide_tiles : p.shape.tiles;
    const trine_status status =
        simt_launch(call, &function, simt_blocks(p.rows, CONV_ROWS) * tiles, SCAN_THREADS, &p, sizeof p);
    if (status != TRINE_OK || p.last.data == NULL) return status;
    return simt_launch(call, &last, p.shape.count * p.shape.tiles, SCAN_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV1D_CAUSAL_DIM_N, SCAN_THREADS);
    trine_kernel_edge(edges, CONV1D_CAUSAL_DIM_N, 2 * SCAN_THREADS);
    trine_kernel_edge(edges, CONV1D_CAUSAL_DIM_K, CONV_FEW);
    trine_kernel_edge(edges, CONV1D_CAUSAL_DIM_T, CONV_ROWS);
}

SIMT_KERNELS(conv1d_causal) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
