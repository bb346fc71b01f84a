/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_all_reduce on the CPU, in pieces of which every rank reads all, and adds them up for itself. */
#include "products.h"
#include "spec/places/matmul_all_reduce.h"

static summed_products products_of(const trine_call *call) {
    summed_products s = { .call = call,
                          .a = own_tensor(call, MATMUL_ALL_REDUCE_A),
                          .b = own_tensor(call, MATMUL_ALL_REDUCE_B),
                          .d = own_tensor(call, MATMUL_ALL_REDUCE_D),
                          .parts = 1,
                          .m = call->dim[MATMUL_ALL_REDUCE_DIM_M],
                          .n = call->dim[MATMUL_ALL_REDUCE_DIM_N] };
    cut_pieces(&s);
    return s;
}

static const char *refuse(const trine_call *call) {
    const summed_products s = products_of(call);
    return summed_products_refuse(&s);
}

static size_t workspace(const trine_call *call) {
    const summed_products s = products_of(call);
    return summed_products_workspace(&s);
}

static trine_status launch(const trine_call *call) {
    const summed_products s = products_of(call);
    return summed_products_run(&s, 0);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const summed_products s = products_of(call);
    trine_kernel_edge(edges, MATMUL_ALL_REDUCE_DIM_M, s.rows);
    trine_kernel_edge(edges, MATMUL_ALL_REDUCE_DIM_N, s.columns);
    trine_kernel_edge(edges, MATMUL_ALL_REDUCE_DIM_N, VL);
}

CPU_KERNELS(matmul_all_reduce) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
