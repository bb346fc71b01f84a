/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on CUDA devices: the host side. */
#include "backends/cuda/core/shared.h"
#include "backends/simt/norm/softmax_launch.h"

/* Of 16 bits also rows that fill half of the registers of their group. */
enum { RINGS = 2 };
static const cuda_ring_entry rings[RINGS] = {
    { .threads = SIMT_RING_THREADS, .chunks = 4, .least = 16 << 10, .near = 20 << 10 },
    { .threads = SIMT_RING_THREADS, .chunks = 4, .least = 8 << 10, .most = 12 << 10, .near = 20 << 10 },
};
static int rings_of(const trine_call *call) {
    return trine_dtype_size(call->type[SOFTMAX_BACKWARD_TYPE_T]) == 2 ? RINGS : RINGS - 1;
}
static const cuda_ring_entry *ring_of(const trine_call *call, simt_ring *ring_out) {
    return cuda_ring_of(call, SOFTMAX_BACKWARD_DIM_N, rings_of(call), rings, ring_out);
}

static const char *refuse_ring(const trine_call *call) {
    const softmax_backward_params p = softmax_backward_params_of(call);
    simt_ring ring;
    if (p.causal) return "a mask hides much of a row";
    if (!softmax_backward_one_matrix(&p)) return "matrices do not follow each other as rows do";
    return ring_of(call, &ring) == NULL ? "registers hold a row as fast, or no cluster's shared memory does" : NULL;
}

static trine_status launch_ring(const trine_call *call) {
    softmax_backward_params p = softmax_backward_params_of(call);
    const cuda_ring_entry *entry = ring_of(call, &p.ring);
    const trine_status status = cuda_ring_fill(call, entry, &p.ring, p.rows, p.rows);
    return status == TRINE_OK ? cuda_launch_ring(call, entry, &p.ring, &p, sizeof p) : status;
}

static void edges_ring(const trine_call *call, trine_kernel_edges *edges) {
    cuda_ring_edges(call, SOFTMAX_BACKWARD_DIM_N, rings_of(call), rings, edges);
}

SIMT_KERNELS(softmax_backward) = {
    { .name = SIMT_NAME "_ring", .refuse = refuse_ring, .launch = launch_ring, .edges = edges_ring },
    { .name = SIMT_NAME, .launch = softmax_backward_launch_rows, .edges = softmax_backward_edges_rows },
    { 0 }
};
