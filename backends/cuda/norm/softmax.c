/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on CUDA devices: the host side. */
#include "backends/cuda/core/shared.h"
#include "backends/simt/norm/softmax_launch.h"

enum { LEAST = 1024 }; /* elements of a row: registers hold so many as fast */

static const char *refuse_shared(const trine_call *call) {
    const softmax_params p = softmax_params_of(call);
    simt_part part;
    if (p.causal) return "a mask hides much of a row";
    if (!softmax_one_matrix(&p)) return "matrices do not follow each other as rows do";
    return cuda_shape_of(call, SOFTMAX_DIM_N, LEAST, &part) == NULL
               ? "registers hold a row as fast, or a cluster's shared memory does not"
               : NULL;
}

static trine_status launch_shared(const trine_call *call) {
    softmax_params p = softmax_params_of(call);
    const cuda_shape *shape = cuda_shape_of(call, SOFTMAX_DIM_N, LEAST, &p.part);
    p.ahead = cuda_ahead_of_parts(call, SOFTMAX_X, shape);
    return cuda_launch_parts(call, "parts", TRINE_NONE, shape, SOFTMAX_DIM_N, &p.part, p.rows, &p, sizeof p);
}

static void edges_shared(const trine_call *call, trine_kernel_edges *edges) {
    cuda_shape_edges(call, SOFTMAX_DIM_N, LEAST, edges);
}

SIMT_KERNELS(softmax) = {
    { .name = SIMT_NAME "_shared", .refuse = refuse_shared, .launch = launch_shared, .edges = edges_shared },
    { .name = SIMT_NAME, .launch = softmax_launch_rows, .edges = softmax_edges_rows },
    SOFTMAX_SAME_KERNEL,
    { 0 }
};
