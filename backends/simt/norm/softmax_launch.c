/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that softmax and its gradient have on all devices. */
#include "softmax_launch.h"

#include <math.h>

#include "spec/same.h"

void softmax_scale_of(float scale, float *f_out, float *spread_out) {
    *f_out = scale > 0 ? 0.5f : scale < 0 ? -0.5f : 0;
    *spread_out = scale == 0 ? 1 : (float)(fabs(scale) * 0x1.71547652b82fep1);
}

softmax_params softmax_params_of(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    const simt_ahead none = { 0 };
    softmax_params p = {
        .x = simt_rows_of(call, SOFTMAX_X),
        .y = simt_rows_of(call, SOFTMAX_Y),
        .rows = call->dim[SOFTMAX_DIM_G] * call->dim[SOFTMAX_DIM_S],
        .s = call->dim[SOFTMAX_DIM_S],
        .n = call->dim[SOFTMAX_DIM_N],
        .scale = args->scale,
        .causal = args->causal,
        /* a mask hides much of what would be prefetched */
        .ahead = args->causal ? none : simt_ahead_of(call, SOFTMAX_X),
    };
    softmax_scale_of(args->scale, &p.f, &p.spread);
    return p;
}

bool softmax_one_matrix(const softmax_params *p) {
    return p->rows == p->s || (p->x.batch == p->s * p->x.row && p->y.batch == p->s * p->y.row);
}

trine_status softmax_launch_rows(const trine_call *call) {
    const softmax_params p = softmax_params_of(call);
    return simt_launch_rows(call, NULL, p.rows, SOFTMAX_DIM_N, SIMT_ONE_ROW, &p, sizeof p);
}

trine_status softmax_launch_same(const trine_call *call) {
    const softmax_params p = softmax_params_of(call);
    const simt_function function = { .step = "same", .type = { call->tensor[SOFTMAX_X].dtype } };
    return simt_launch(call, &function, p.rows, SAME_LANES, &p, sizeof p);
}

softmax_backward_params softmax_backward_params_of(const trine_call *call) {
    const trine_softmax_backward_args *args = call->args;
    const simt_ahead_two none = { { { 0 } } };
    return (softmax_backward_params){
        .y = simt_rows_of(call, SOFTMAX_BACKWARD_Y),
        .dy = simt_rows_of(call, SOFTMAX_BACKWARD_DY),
        .dx = simt_rows_of(call, SOFTMAX_BACKWARD_DX),
        .rows = call->dim[SOFTMAX_BACKWARD_DIM_G] * call->dim[SOFTMAX_BACKWARD_DIM_S],
        .s = call->dim[SOFTMAX_BACKWARD_DIM_S],
        .n = call->dim[SOFTMAX_BACKWARD_DIM_N],
        .scale = args->scale,
        .causal = args->causal,
        .ahead = args->causal ? none : simt_ahead_of_two(call, SOFTMAX_BACKWARD_Y, SOFTMAX_BACKWARD_DY),
    };
}

bool softmax_backward_one_matrix(const softmax_backward_params *p) {
    return p->rows == p->s ||
           (p->y.batch == p->s * p->y.row && p->dy.batch == p->s * p->dy.row && p->dx.batch == p->s * p->dx.row);
}

trine_status softmax_backward_launch_rows(const trine_call *call) {
    const softmax_backward_params p = softmax_backward_params_of(call);
    return simt_launch_rows(call, NULL, p.rows, SOFTMAX_BACKWARD_DIM_N, SIMT_TWO_ROWS, &p, sizeof p);
}

void softmax_edges_same(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SOFTMAX_DIM_N, SAME_LANES);
}

void softmax_edges_rows(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_row_edges(edges, SOFTMAX_DIM_S, SOFTMAX_DIM_N, SIMT_ONE_ROW);
}

void softmax_backward_edges_rows(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_row_edges(edges, SOFTMAX_BACKWARD_DIM_S, SOFTMAX_BACKWARD_DIM_N, SIMT_TWO_ROWS);
}
