/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce on devices: the host side. */
#include "exchanges.h"
#include "spec/places/all_reduce.h"

static trine_status run(const trine_call *call, const char *step, int parts) {
    const trine_all_reduce_args *args = call->args;
    return exchange_sums(call, step, &call->tensor[ALL_REDUCE_X], &call->tensor[ALL_REDUCE_Y],
                         call->dim[ALL_REDUCE_DIM_N], args->kind, parts);
}

static trine_status launch_one(const trine_call *call) { return run(call, NULL, 1); }
static trine_status launch_two(const trine_call *call) {
    return run(call, "parts", (int)call->dim[ALL_REDUCE_DIM_RANKS]);
}

/* What a rank sends: all to each of the others, or a part and then its own part to each. Of two H200s, by NVLink. */
static double bytes_of(const trine_call *call) {
    return (double)(call->dim[ALL_REDUCE_DIM_RANKS] - 1) * (double)call->dim[ALL_REDUCE_DIM_N] *
           (double)trine_dtype_size(call->type[ALL_REDUCE_TYPE_T]);
}
static double seconds_one(const trine_call *call) { return 3.5e-6 + bytes_of(call) / 315e9; }
static double seconds_two(const trine_call *call) {
    return 4e-6 + 2 * bytes_of(call) / (double)call->dim[ALL_REDUCE_DIM_RANKS] / 330e9;
}

static const char *refuse_one(const trine_call *call) {
    return seconds_one(call) <= seconds_two(call) ? NULL : "of so many ranks or elements two steps are faster";
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t elements = EXCHANGE_PACKET / (int64_t)trine_dtype_size(call->type[ALL_REDUCE_TYPE_T]);
    exchange_edges(call, edges, ALL_REDUCE_DIM_N, elements, 1);
    exchange_edges(call, edges, ALL_REDUCE_DIM_N, elements, (int)call->dim[ALL_REDUCE_DIM_RANKS]);
}

/* The first takes what one step is faster for; the last is for those who ask for it. */
SIMT_KERNELS(all_reduce) = {
    { .name = SIMT_NAME,
      .refuse = refuse_one,
      .launch = launch_one,
      .seconds = seconds_one,
      .edges = edges,
      .same = true },
    { .name = SIMT_NAME "_two_steps", .launch = launch_two, .seconds = seconds_two, .edges = edges, .same = true },
    { .name = SIMT_NAME "_one_step", .launch = launch_one, .seconds = seconds_one, .edges = edges, .same = true },
    { 0 }
};
