/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric by matmul: the whole product, of which what is below the diagonal is then put across it. Twice the
 * operations, by kernels that split k between blocks where d has few tiles. */
#ifndef TRINE_SIMT_MATMUL_SYMMETRIC_PRODUCT_HOST_H
#define TRINE_SIMT_MATMUL_SYMMETRIC_PRODUCT_HOST_H

#include <trine/ops.h>

#include "matmul_symmetric_host.h"

/* a's transpose. */
static inline trine_tensor symmetric_across(const trine_call *call) {
    trine_tensor a = call->tensor[MATMUL_SYMMETRIC_A];
    const int64_t lanes = a.shape[1], lane = a.stride[1];
    a.shape[1] = a.shape[2], a.stride[1] = a.stride[2];
    a.shape[2] = lanes, a.stride[2] = lane;
    return a;
}

/* A factor that a program gives: 0 would stand for 1. */
static inline float symmetric_told(float factor) { return factor == 0 ? -0.0f : factor; }

static inline trine_matmul_args symmetric_matmul_of(const trine_call *call, const trine_tensor *across) {
    const trine_matmul_symmetric_args *args = call->args;
    return (trine_matmul_args){ .struct_size = sizeof(trine_matmul_args),
                                .a = &call->tensor[MATMUL_SYMMETRIC_A],
                                .b = across,
                                .c = trine_call_given(call, MATMUL_SYMMETRIC_C),
                                .d = &call->tensor[MATMUL_SYMMETRIC_D],
                                .alpha = symmetric_told(args->alpha),
                                .beta = symmetric_told(args->beta) };
}

static inline trine_status symmetric_product_needs(const trine_call *call, size_t *bytes_out) {
    const trine_tensor across = symmetric_across(call);
    const trine_matmul_args args = symmetric_matmul_of(call, &across);
    *bytes_out = 0;
    return call->host->nested_workspace(call, TRINE_OP_MATMUL, &args, bytes_out);
}

static inline const char *symmetric_product_refuse(const trine_call *call) {
    size_t bytes;
    return symmetric_product_needs(call, &bytes) == TRINE_OK ? NULL : "matmul has no kernel for it";
}

static inline size_t symmetric_product_workspace(const trine_call *call) {
    size_t bytes;
    return symmetric_product_needs(call, &bytes) == TRINE_OK ? bytes : 0;
}

/* What is below the diagonal, put across it. */
static inline trine_status symmetric_mirror_launch(const trine_call *call) {
    const symmetric_params p = symmetric_params_of(call, SYMMETRIC_MIRROR);
    const simt_function function = { .step = "mirror", .type = { call->type[MATMUL_SYMMETRIC_TYPE_O] } };
    return simt_launch(call, &function, call->dim[MATMUL_SYMMETRIC_DIM_G] * p.tiles, SIMT_THREADS, &p, sizeof p);
}

static inline trine_status symmetric_product_launch(const trine_call *call) {
    const trine_tensor across = symmetric_across(call);
    const trine_matmul_args args = symmetric_matmul_of(call, &across);
    const trine_status status =
        call->host->nested_run(call, TRINE_OP_MATMUL, &args, call->workspace, call->workspace_size);
    return status == TRINE_OK ? symmetric_mirror_launch(call) : status;
}

static inline void symmetric_product_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_M, SYMMETRIC_MIRROR);
}

#endif
