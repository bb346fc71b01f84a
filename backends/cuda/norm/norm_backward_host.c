/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of rms_norm and layer_norm on CUDA devices: rows through a ring in shared memory, and rows that fill
 * registers. */
#include "backends/cuda/core/shared.h"
#include "norm_host.h"

/* ----------------------------------------------------------------------------- rows through a ring in shared memory */

/* The smallest ring whose threads hold a row by two chunks of each, in a cluster if need be. Where an SM has several
 * blocks, rows come faster if one of so many is left out: with none left out 1600 columns of bf16 move 76 % of what a
 * copy does, with one of 24 97 (H200). Of nothing but the norm, longer rows are computed anew from four chunks. Random
 * lengths on an H100 are 1.00 of 63 rows that were tuned on named ones (geometric mean; docs/learned.md). */
enum { MOST = SIMT_RING_THREADS, IDLE = 24, IDLE_MORE = 12, REGISTERS = 8 << 10, NARROW = 1 };
static const cuda_ring_entry alone[] = {
    { .threads = MOST / 8, .chunks = 2, .least = 1 << 10, .most = 2 << 10, .idle = IDLE }, /* of 16 bits */
    { .threads = MOST / 4, .chunks = 2, .least = 2 << 10, .most = 4 << 10, .whole = true, .idle = IDLE },
    { .threads = MOST / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .idle = IDLE },
    { .threads = MOST, .chunks = 2, .least = 8 << 10, .most = 16 << 10 },
    { .threads = MOST, .chunks = 2, .least = 16 << 10, .most = 128 << 10, .whole = true },
    { .threads = MOST, .chunks = 4, .least = 16 << 10, .behind = SIMT_RING_BEHIND, .near = 20 << 10 },
};
static const cuda_ring_entry others[] = {
    { .threads = MOST / 4,
      .chunks = 2,
      .least = 2 << 10,
      .most = 4 << 10,
      .whole = true,
      .idle = IDLE_MORE,
      .full = true },
    { .threads = MOST / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .idle = IDLE, .full = true },
    { .threads = MOST, .chunks = 2, .least = 8 << 10, .most = 16 << 10, .full = true },
    { .threads = MOST, .chunks = 2, .least = 16 << 10, .full = true },
};
static const cuda_ring_entry mixed = { .threads = MOST, .chunks = 2, .least = 8 << 10, .items = 4, .full = true };
enum { ALONE = sizeof alone / sizeof alone[0], OTHERS = sizeof others / sizeof others[0] };
static const cuda_ring_entry *ring_of(const trine_call *call, simt_ring *ring_out) {
    const norm_backward_op *op = call->self;
    const trine_dtype type = call->type[NORM_TYPE_T];
    const int64_t n = call->dim[NORM_DIM_N];
    const bool narrow = trine_dtype_size(type) == 2, dropout = op->params(call).dropout.p > 0,
               read = norm_given(call, op->dresidual);
    const bool weighed = norm_given(call, op->weight) && call->type[NORM_TYPE_W] != type;
    if (call->type[NORM_TYPE_R] != type) return cuda_ring_of(call, NORM_DIM_N, 1, &mixed, ring_out);
    if (!dropout && !read && !norm_given(call, op->dh) && !weighed) {
        const int first = narrow ? 0 : NARROW;
        return cuda_ring_of(call, NORM_DIM_N, ALONE - first, &alone[first], ring_out);
    }
    /* Dropout's words bind: more warps than a ring has are worth more, unless a third tensor is read. */
    if (narrow && dropout && !read && n * 2 <= REGISTERS && n % NORM_FIT_ITEMS == 0) return NULL;
    return cuda_ring_of(call, NORM_DIM_N, OTHERS, others, ring_out);
}

void norm_backward_edges_ring(const trine_call *call, trine_kernel_edges *edges) {
    cuda_ring_edges(call, NORM_DIM_N, ALONE, alone, edges);
    cuda_ring_edges(call, NORM_DIM_N, OTHERS, others, edges);
    cuda_ring_edges(call, NORM_DIM_N, 1, &mixed, edges);
    trine_kernel_edge(edges, NORM_DIM_N, REGISTERS / 2);
    norm_backward_edges_finish(call, edges);
}

const char *norm_backward_refuse_ring(const trine_call *call) {
    simt_ring ring;
    return ring_of(call, &ring) == NULL ? "registers hold a row as fast, or no cluster's shared memory does" : NULL;
}

/* Partial sums of a column, at most: a device may hold fewer clusters than it has SMs for. */
size_t norm_backward_workspace_ring(const trine_call *call) {
    simt_ring ring;
    const cuda_ring_entry *entry = ring_of(call, &ring);
    const int64_t held = (int64_t)simt_units(call) * SIMT_RING_HELD(entry->threads) / ring.blocks;
    return norm_backward_bytes(call, cuda_ring_clusters(call->dim[NORM_DIM_R], held, NORM_FUSED_TURNS));
}

trine_status norm_backward_launch_ring(const trine_call *call) {
    norm_backward_params p = norm_backward_params_of(call);
    const cuda_ring_entry *entry = ring_of(call, &p.ring);
    trine_status status = cuda_ring_fill(call, entry, &p.ring, p.rows, NORM_FUSED_TURNS);
    if (status != TRINE_OK) return status;
    p.blocks = p.ring.clusters;
    norm_backward_partials(call, &p);
    status = cuda_launch_ring(call, entry, &p.ring, &p, sizeof p);
    return status == TRINE_OK ? norm_backward_finish(call, &p, true) : status;
}

/* ------------------------------------------------------------------------------- rows that fill a group's registers */

/* One vector of each thread. Half as many threads with two are as fast but of 16 bits, and there of rms_norm with
 * residuals of f32. */
static const norm_fit fits[] = {
    { .least = 0, .size = 8, .vectors = 1 },      { .least = 128, .size = 32, .vectors = 1 },
    { .least = 512, .size = 96, .vectors = 1 },   { .least = 1024, .size = 160, .vectors = 1 },
    { .least = 1280, .size = 192, .vectors = 1 }, { .least = 2048, .size = NORM_FIT_MOST, .vectors = 1 }
};
enum { FITS = sizeof fits / sizeof fits[0] };
static const norm_fit *fit_of(const trine_call *call) {
    const norm_backward_op *op = call->self;
    if (call->type[NORM_TYPE_T] == TRINE_F32 || (op->mean < 0 && call->type[NORM_TYPE_R] == TRINE_F32)) return NULL;
    return norm_fit_among(call->dim[NORM_DIM_N], FITS, fits);
}

void norm_backward_edges_fit(const trine_call *call, trine_kernel_edges *edges) {
    norm_fit_edges(FITS, fits, edges);
    norm_backward_edges_finish(call, edges);
}

const char *norm_backward_refuse_fit(const trine_call *call) {
    return fit_of(call) == NULL ? "no group has just room for a row" : NULL;
}

static simt_group fit_group(const trine_call *call, int64_t *turns_out) {
    const norm_backward_op *op = call->self;
    const int size = fit_of(call)->size;
    simt_group group = simt_group_of(call->dim[NORM_DIM_R], call->dim[NORM_DIM_N], NORM_FIT_ITEMS, 1, &size);
    *turns_out = norm_backward_turns(&group, (int64_t)simt_units(call) * NORM_FIT_BLOCKS(op->mean >= 0, size));
    return group;
}

size_t norm_backward_workspace_fit(const trine_call *call) {
    int64_t turns;
    return norm_backward_bytes(call, fit_group(call, &turns).blocks);
}

/* Rows that begin anywhere go by groups of as many threads, or if those are several warps by one of the most: their
 * sums are the same, since it adds one warp after the other too. */
trine_status norm_backward_launch_fit(const trine_call *call) {
    enum { WARP = 32 };
    norm_backward_params p = norm_backward_params_of(call);
    const simt_group group = fit_group(call, &p.turns);
    const bool whole = simt_rows_whole(call, NORM_DIM_N), several = group.size > WARP, most = several && !whole;
    const int size = most ? NORM_FIT_MOST : group.size;
    const simt_function function = { .step = whole || several ? "fit" : NULL,
                                     .ragged = !whole,
                                     .type = { call->type[NORM_TYPE_T] },
                                     .variant = whole || several ? NORM_FIT_ITEMS * size : size };
    p.blocks = group.blocks;
    p.ask_dresidual = p.dresidual.data != NULL && !p.f32_residual;
    norm_backward_partials(call, &p);
    const trine_status status = simt_launch(call, &function, group.blocks, most ? size : group.threads, &p, sizeof p);
    return status == TRINE_OK ? norm_backward_finish(call, &p, false) : status;
}
