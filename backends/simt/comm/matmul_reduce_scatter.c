/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_reduce_scatter on devices: the host side. */
#include "backends/simt/comm/landed.h"
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

static landed_products landed_of(const trine_call *call) {
    const summed_products s = products_of(call);
    return landed_products_of(&s, s.parts, s.m);
}
static const char *refuse_landed(const trine_call *call) {
    const landed_products l = landed_of(call);
    return landed_products_refuse(&l, false);
}
static const char *refuse_slow(const trine_call *call) {
    const landed_products l = landed_of(call);
    return landed_products_refuse(&l, true);
}
static size_t workspace_landed(const trine_call *call) {
    const landed_products l = landed_of(call);
    return landed_products_workspace(&l);
}
static trine_status run_landed(const trine_call *call) {
    const landed_products l = landed_of(call);
    return landed_products_run(&l, false);
}
static trine_status launch_landed(const trine_call *call) { return simt_group_run(call, run_landed); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_REDUCE_SCATTER_DIM_N, PRODUCT_PACKET);
}

/* The first where it is faster; the last is for those who ask for it. */
SIMT_KERNELS(matmul_reduce_scatter) = {
    { .name = SIMT_NAME "_overlapped", .refuse = refuse_slow, .workspace = workspace_landed, .launch = launch_landed },
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges },
    { .name = SIMT_NAME "_in_pieces", .refuse = refuse_landed, .workspace = workspace_landed, .launch = launch_landed },
    { 0 }
};
