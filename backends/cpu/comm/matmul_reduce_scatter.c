/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_reduce_scatter on the CPU, in pieces of every rank's rows: each rank adds up what all have for it. */
#include "products.h"
#include "spec/places/matmul_reduce_scatter.h"

static summed_products products_of(const trine_call *call) {
    summed_products s = { .call = call,
                          .a = own_tensor(call, MATMUL_REDUCE_SCATTER_A),
                          .b = own_tensor(call, MATMUL_REDUCE_SCATTER_B),
                          .d = own_tensor(call, MATMUL_REDUCE_SCATTER_D),
                          .parts = call->dim[MATMUL_REDUCE_SCATTER_DIM_RANKS],
                          .m = call->dim[MATMUL_REDUCE_SCATTER_DIM_M],
                          .n = call->dim[MATMUL_REDUCE_SCATTER_DIM_N] };
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
    return summed_products_run(&s, trine_cpu_group_rank(call));
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const summed_products s = products_of(call);
    trine_kernel_edge(edges, MATMUL_REDUCE_SCATTER_DIM_M, s.rows);
    trine_kernel_edge(edges, MATMUL_REDUCE_SCATTER_DIM_N, s.columns);
    trine_kernel_edge(edges, MATMUL_REDUCE_SCATTER_DIM_N, VL);
}

CPU_KERNELS(matmul_reduce_scatter) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
