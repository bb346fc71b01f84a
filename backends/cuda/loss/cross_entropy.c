/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on CUDA devices: the host side. */
#include "backends/cuda/core/shared.h"
#include "backends/simt/loss/cross_entropy_launch.h"
#include "spec/places/cross_entropy.h"

/* Up to that a warp has a row in registers. */
static int64_t least_of(const trine_call *call) {
    enum { BYTES = 2 << 10 };
    return BYTES / (int64_t)trine_dtype_size(call->type[CROSS_ENTROPY_TYPE_T]);
}

static const cuda_shape *shape_of(const trine_call *call, simt_part *part_out) {
    return cuda_shape_of(call, CROSS_ENTROPY_DIM_V, least_of(call), part_out);
}

static const char *refuse_parts(const trine_call *call) {
    const trine_cross_entropy_args *args = call->args;
    simt_part part;
    if (!simt_present(call, CROSS_ENTROPY_DLOGITS)) return "no gradient is asked for";
    if (simt_present(call, CROSS_ENTROPY_CLASS_WEIGHT) && args->label_smoothing > 0)
        return "classes are weighted and targets smooth";
    return shape_of(call, &part) == NULL ? "a warp holds a row, or a cluster's shared memory does not" : NULL;
}

static trine_status launch_parts(const trine_call *call) {
    cross_entropy_params p = cross_entropy_params_of(call);
    const cuda_shape *shape = shape_of(call, &p.part);
    return cuda_launch_parts(call, loss_narrow(&p) ? "narrow_parts" : "parts", TRINE_NONE, shape, CROSS_ENTROPY_DIM_V,
                             &p.part, p.rows, &p, sizeof p);
}

static void edges_parts(const trine_call *call, trine_kernel_edges *edges) {
    cuda_shape_edges(call, CROSS_ENTROPY_DIM_V, least_of(call), edges);
}

/* Registers take any row, and are a kernel of their own so that tests see them take those that shared memory is
 * preferred for. */
SIMT_KERNELS(cross_entropy) = {
    { .name = SIMT_NAME "_shared", .refuse = refuse_parts, .launch = launch_parts, .edges = edges_parts },
    { .name = SIMT_NAME, .launch = cross_entropy_launch, .edges = cross_entropy_edges },
    { 0 }
};
