/* SPDX-License-Identifier: Apache-2.0 */
/* matmul with the same bits on every device: the launch, on all of them. */
#include "matmul_same_host.h"

#include "backends/simt/core/host.h"
#include "matmul_same.h"
#include "spec/places/matmul.h"
#include "spec/same.h"

const char *matmul_same_refuse(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    if (type != TRINE_F32 && type != TRINE_F64 && type != TRINE_BF16 && type != TRINE_F16)
        return "what is the same everywhere has no products of this type";
    if (simt_present(call, MATMUL_A_SCALE) || simt_present(call, MATMUL_B_SCALE))
        return "what is the same everywhere has no scales";
    return args->activation > TRINE_ACTIVATION_RELU ? "what is the same everywhere has no activation but relu" : NULL;
}

/* A broadcast dimension has stride 0, but in a and b the batch. */
static matmul_same_matrix matrix_of(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    if (t == NULL) return (matmul_same_matrix){ 0 };
    return (matmul_same_matrix){ t->data, t->shape[0] > 1 ? t->stride[0] : 0, t->stride[1], t->stride[2] };
}

trine_status matmul_same_launch(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    const int64_t m = call->dim[MATMUL_DIM_M], n = call->dim[MATMUL_DIM_N];
    const matmul_same_params p = {
        .a = matrix_of(call, MATMUL_A),
        .b = matrix_of(call, MATMUL_B),
        .c = matrix_of(call, MATMUL_C),
        .d = matrix_of(call, MATMUL_D),
        .bias = simt_present(call, MATMUL_BIAS) ? call->tensor[MATMUL_BIAS].data : NULL,
        .m = m,
        .n = n,
        .k = call->dim[MATMUL_DIM_K],
        .down = simt_blocks(m, MATMUL_SAME_SIDE),
        .right = simt_blocks(n, MATMUL_SAME_SIDE),
        .alpha = args->alpha + 0.0f, /* -0 stands for 0 */
        .beta = args->beta + 0.0f,
        .relu = args->activation == TRINE_ACTIVATION_RELU,
        .wide_out = call->tensor[MATMUL_D].dtype == TRINE_F32,
        .wide_bias = simt_present(call, MATMUL_BIAS) && call->tensor[MATMUL_BIAS].dtype == TRINE_F32,
    };
    const simt_function function = { .step = "same", .type = { call->tensor[MATMUL_A].dtype } };
    return simt_launch(call, &function, call->dim[MATMUL_DIM_G] * p.down * p.right, MATMUL_SAME_THREADS, &p, sizeof p);
}

void matmul_same_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_DIM_M, MATMUL_SAME_SIDE);
    trine_kernel_edge(edges, MATMUL_DIM_N, MATMUL_SAME_SIDE);
    trine_kernel_edge(edges, MATMUL_DIM_K, MATMUL_SAME_STEP);
    trine_kernel_edge(edges, MATMUL_DIM_K, SAME_CHAIN);
}
