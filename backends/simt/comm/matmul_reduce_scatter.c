/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_reduce_scatter on devices: the host side. */
#include "backends/simt/comm/products.h"
#include "spec/places/matmul_reduce_scatter.h"

static summed_products products_of(const trine_call *call) {
    return (summed_products){ .call = call,
                              .a = own_tensor(call, MATMUL_REDUCE_SCATTER_A),
                              .b = own_tensor(call, MATMUL_REDUCE_SCATTER_B),
                              .d = own_tensor(call, MATMUL_REDUCE_SCATTER_D),
                              .parts = call->dim[MATMUL_REDUCE_SCATTER_DIM_RANKS],
                              .m = call->dim[MATMUL_REDUCE_SCATTER_DIM_M],
                              .n = call->dim[MATMUL_REDUCE_SCATTER_DIM_N] };
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
    return summed_products_run(&s, NULL, 1);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_REDUCE_SCATTER_DIM_N, PRODUCT_PACKET);
}

SIMT_KERNELS(matmul_reduce_scatter) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
