/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_all_reduce on devices: the host side. */
#include "backends/simt/comm/landed.h"
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

/* In pieces: each rank adds up its part of the lines, and gives that to all. */
static landed_products landed_of(const trine_call *call) {
    const summed_products s = products_of(call);
    const int64_t ranks = call->dim[MATMUL_ALL_REDUCE_DIM_RANKS];
    return landed_products_of(&s, ranks, s.m / ranks);
}
static const char *refuse_pieces(const trine_call *call, bool slow) {
    const landed_products l = landed_of(call);
    if (l.s.m * l.s.parts != call->dim[MATMUL_ALL_REDUCE_DIM_M]) return "the ranks' parts differ in their lines";
    return landed_products_refuse(&l, slow);
}
static const char *refuse_landed(const trine_call *call) { return refuse_pieces(call, false); }
static const char *refuse_slow(const trine_call *call) { return refuse_pieces(call, true); }
static size_t workspace_landed(const trine_call *call) {
    const landed_products l = landed_of(call);
    return landed_products_workspace(&l);
}
static trine_status run_landed(const trine_call *call) {
    const landed_products l = landed_of(call);
    const trine_status status = landed_products_run(&l, true);
    if (status != TRINE_OK) return status;
    const trine_tensor d = l.s.d, x = some_lines(d, simt_group_rank(call), l.s.m, 0, l.s.m);
    const trine_tensor y = { .data = d.data,
                             .dtype = d.dtype,
                             .rank = 3,
                             .shape = { l.s.parts, l.s.m, l.s.n },
                             .stride = { l.s.m * d.stride[0], d.stride[0], d.stride[1] } };
    const int64_t width = (int64_t)trine_dtype_size(d.dtype), elements = EXCHANGE_PACKET / width;
    const simt_function function = { .step = "summed", .variant = (int)width };
    exchange_params p = lines_of(&x, &y, l.s.m, l.s.n, elements);
    return simt_exchange(call, &function, &p, line_packets(&p), 1);
}
static trine_status launch_landed(const trine_call *call) { return simt_group_run(call, run_landed); }

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

/* The first where it is faster; the last is for those who ask for it. */
SIMT_KERNELS(matmul_all_reduce) = {
    { .name = SIMT_NAME "_overlapped", .refuse = refuse_slow, .workspace = workspace_landed, .launch = launch_landed },
    { .name = SIMT_NAME, .refuse = refuse_one, .workspace = workspace, .launch = launch_one, .edges = edges },
    { .name = SIMT_NAME "_two_steps", .refuse = refuse, .workspace = workspace, .launch = launch_two, .edges = edges },
    { .name = SIMT_NAME "_in_pieces", .refuse = refuse_landed, .workspace = workspace_landed, .launch = launch_landed },
    { 0 }
};
