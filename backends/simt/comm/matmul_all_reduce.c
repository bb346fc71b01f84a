/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_all_reduce on devices: the host side. */
#include "backends/simt/comm/products.h"
#include "spec/places/matmul_all_reduce.h"

static summed_products products_of(const trine_call *call) {
    return (summed_products){ .call = call,
                              .a = own_tensor(call, MATMUL_ALL_REDUCE_A),
                              .b = own_tensor(call, MATMUL_ALL_REDUCE_B),
                              .d = own_tensor(call, MATMUL_ALL_REDUCE_D),
                              .parts = 1,
                              .m = call->dim[MATMUL_ALL_REDUCE_DIM_M],
                              .n = call->dim[MATMUL_ALL_REDUCE_DIM_N] };
}

static size_t workspace(const trine_call *call) {
    const summed_products s = products_of(call);
    return summed_products_workspace(&s);
}

static trine_status launch_one(const trine_call *call) {
    const summed_products s = products_of(call);
    return summed_products_run(&s, NULL, 1);
}
static trine_status launch_two(const trine_call *call) {
    const summed_products s = products_of(call);
    return summed_products_run(&s, "parts", (int)call->dim[MATMUL_ALL_REDUCE_DIM_RANKS]);
}

/* Seconds of the exchange alone, as all_reduce of f32 predicts them: the product is the same for both. */
static double bytes_of(const trine_call *call) {
    return 4.0 * (double)(call->dim[MATMUL_ALL_REDUCE_DIM_RANKS] - 1) * (double)call->dim[MATMUL_ALL_REDUCE_DIM_M] *
           (double)call->dim[MATMUL_ALL_REDUCE_DIM_N];
}
static double exchange_one(const trine_call *call) { return 2e-6 + bytes_of(call) / 250e9; }
static double exchange_two(const trine_call *call) {
    return 3e-6 + 2 * bytes_of(call) / (double)call->dim[MATMUL_ALL_REDUCE_DIM_RANKS] / 300e9;
}

static const char *refuse(const trine_call *call) {
    const summed_products s = products_of(call);
    return summed_products_refuse(&s);
}
static const char *refuse_one(const trine_call *call) {
    if (exchange_one(call) > exchange_two(call)) return "of so many ranks or elements two steps are faster";
    return refuse(call);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_ALL_REDUCE_DIM_N, PRODUCT_PACKET);
}

SIMT_KERNELS(matmul_all_reduce) = {
    { .name = SIMT_NAME, .refuse = refuse_one, .workspace = workspace, .launch = launch_one, .edges = edges },
    { .name = SIMT_NAME "_two_steps", .refuse = refuse, .workspace = workspace, .launch = launch_two, .edges = edges },
    { 0 }
};
