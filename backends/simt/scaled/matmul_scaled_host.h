/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of matmul_scaled on any device. */
#ifndef TRINE_SIMT_MATMUL_SCALED_HOST_H
#define TRINE_SIMT_MATMUL_SCALED_HOST_H

#include "sides_host.h"
#include "spec/places/matmul_scaled.h"

static inline const char *scaled_refuse(const trine_call *call) {
    const trine_dtype b = call->type[MATMUL_SCALED_TYPE_B];
    if ((b == TRINE_E4M3 || b == TRINE_E5M2) && call->dim[MATMUL_SCALED_DIM_P] != call->dim[MATMUL_SCALED_DIM_Q])
        return "b of two elements in a byte that take 8 bits";
    return call->dim[MATMUL_SCALED_DIM_P] > INT32_MAX / 4 ? "rows of more than 2^29 bytes" : NULL;
}

static inline scaled_params scaled_params_of(const trine_call *call) {
    const trine_matmul_scaled_args *args = call->args;
    const trine_tensor *d = &call->tensor[MATMUL_SCALED_D];
    const bool both = args->format == TRINE_SCALED_E2M1_BOTH, e2m1 = args->format >= TRINE_SCALED_E2M1;
    const int64_t k = call->dim[MATMUL_SCALED_DIM_P] * (both ? 2 : 1);
    const trine_dtype *type = call->type;
    return (scaled_params){
        .a = scaled_side_of(&call->tensor[MATMUL_SCALED_A], trine_call_given(call, MATMUL_SCALED_A_SCALE), 2, k,
                            scaled_kind_of(type[MATMUL_SCALED_TYPE_A], both, true), 0),
        .b = scaled_side_of(&call->tensor[MATMUL_SCALED_B], trine_call_given(call, MATMUL_SCALED_B_SCALE), 2, k,
                            scaled_kind_of(type[MATMUL_SCALED_TYPE_B], call->dim[MATMUL_SCALED_DIM_Q] < k, e2m1),
                            args->offset),
        .d = d->data,
        .bias = simt_present(call, MATMUL_SCALED_BIAS) ? call->tensor[MATMUL_SCALED_BIAS].data : NULL,
        .d_row = d->stride[0],
        .k = (int32_t)k,
        .activation = args->activation,
        .alpha = args->alpha,
        .out_type = scaled_type_of(d->dtype),
        .bias_type = scaled_type_of(type[MATMUL_SCALED_TYPE_V])
    };
}

/* Does a run of elements that begins at a multiple of its length have one scale? */
static inline bool scaled_has_runs(const scaled_side *s, int32_t k) {
    return s->block.by >= k || s->block.by % SCALED_RUN == 0;
}

static inline trine_status scaled_launch(const trine_call *call) {
    scaled_params p = scaled_params_of(call);
    const int64_t m = p.a.rows, n = p.b.rows, teams = SIMT_THREADS / SCALED_TEAM;
    if (m <= SCALED_FEW && scaled_has_runs(&p.a, p.k) && scaled_has_runs(&p.b, p.k)) {
        const int side = m == 1 ? 1 : SCALED_SIDE;
        p.down = simt_blocks(m, side);
        return simt_launch(call, &(simt_function){ .step = "few", .variant = side }, p.down * simt_blocks(n, teams),
                           SIMT_THREADS, &p, sizeof p);
    }
    p.down = simt_blocks(m, SCALED_ROWS);
    return simt_launch(call, &(simt_function){ 0 }, p.down * simt_blocks(n, SCALED_COLUMNS), SIMT_THREADS, &p,
                       sizeof p);
}

static inline void scaled_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, 1);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SCALED_SIDE);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SCALED_FEW);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SCALED_ROWS);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, SCALED_COLUMNS);
}

#endif
