/* SPDX-License-Identifier: Apache-2.0 */
/* max_plus_matmul on devices: the host side. */
#include "backends/simt/core/host.h"
#include "dynamic.h"
#include "spec/places/max_plus_matmul.h"

static simt_rows rows_of(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t == NULL ? (simt_rows){ NULL, 0, 0 } : (simt_rows){ t->data, t->stride[0], t->stride[1] };
}

static trine_status launch(const trine_call *call) {
    const trine_max_plus_matmul_args *args = call->args;
    const trine_tensor *a = &call->tensor[MAX_PLUS_MATMUL_A], *b = &call->tensor[MAX_PLUS_MATMUL_B];
    const int64_t m = call->dim[MAX_PLUS_MATMUL_DIM_M], n = call->dim[MAX_PLUS_MATMUL_DIM_N];
    const max_plus_params p = { .a = a->data,
                                .b = b->data,
                                .c = rows_of(call, MAX_PLUS_MATMUL_C),
                                .d = rows_of(call, MAX_PLUS_MATMUL_D),
                                .indices = rows_of(call, MAX_PLUS_MATMUL_INDICES),
                                .a_batch = a->stride[0],
                                .a_row = a->stride[1],
                                .a_along = a->stride[2],
                                .b_batch = b->stride[0],
                                .b_along = b->stride[1],
                                .b_column = b->stride[2],
                                .m = m,
                                .n = n,
                                .k = call->dim[MAX_PLUS_MATMUL_DIM_K],
                                .down = simt_blocks(m, MAX_PLUS_SIDE),
                                .across = simt_blocks(n, MAX_PLUS_SIDE),
                                .minimum = args->minimum };
    const simt_function function = { .type = { call->type[MAX_PLUS_MATMUL_TYPE_T] },
                                     .variant = 1 + (args->minimum ? 1 : 0) + (p.indices.data != NULL ? 2 : 0) };
    return simt_launch(call, &function, call->dim[MAX_PLUS_MATMUL_DIM_G] * p.down * p.across, SIMT_THREADS, &p,
                       sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MAX_PLUS_MATMUL_DIM_M, MAX_PLUS_SIDE);
    trine_kernel_edge(edges, MAX_PLUS_MATMUL_DIM_N, MAX_PLUS_SIDE);
    trine_kernel_edge(edges, MAX_PLUS_MATMUL_DIM_K, MAX_PLUS_STEP);
}

SIMT_KERNELS(max_plus_matmul) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
