/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that ops along time share. */
#ifndef TRINE_SIMT_SCAN_HOST_H
#define TRINE_SIMT_SCAN_HOST_H

#include "backends/simt/core/host.h"
#include "scan.h"

static inline scan_shape scan_shape_of(const trine_call *call, int cu, int64_t b, int64_t t, int64_t n,
                                       int64_t sequences, bool reverse) {
    const trine_tensor *offsets = trine_call_given(call, cu);
    return (scan_shape){ .cu = offsets ? offsets->data : NULL,
                         .t = t,
                         .n = n,
                         .count = offsets ? sequences : b,
                         .tiles = simt_blocks(n, SCAN_THREADS),
                         .reverse = reverse };
}

/* The steps of a chunk, more than there are if time is not cut: it is where channels are few, and in chunks that would
 * be good if packed sequences were of one length. */
static inline int64_t scan_chunk(const scan_shape *s) {
    const int64_t channels = s->count * s->n, chunks = channels > 0 ? SCAN_CHANNELS / channels : 0,
                  steps = s->cu ? simt_blocks(s->t, s->count) : s->t;
    if (chunks < 8 || steps <= SCAN_LEAST_CHUNK) return s->t + 1;
    const int64_t chunk = simt_blocks(steps, chunks);
    return chunk < SCAN_LEAST_CHUNK ? SCAN_LEAST_CHUNK : chunk > SCAN_MOST_CHUNK ? SCAN_MOST_CHUNK : chunk;
}
static inline bool scan_is_cut(const scan_shape *s) { return s->chunk <= s->t; }
static inline void scan_cut(scan_shape *s) {
    s->chunk = scan_chunk(s);
    s->chunks = scan_is_cut(s) ? simt_blocks(s->t, s->chunk) : 1;
    s->parts = s->cu ? s->t / s->chunk + s->count + 1 : s->count * s->chunks;
}

/* Elements of each of the three arrays in the workspace; its parts begin at `memory`. */
static inline int64_t scan_carried(const scan_shape *s) { return scan_is_cut(s) ? s->parts * s->n : 0; }
static inline size_t scan_workspace(const scan_shape *s) { return (size_t)scan_carried(s) * 3 * sizeof(float); }
static inline void scan_place_carried(scan_shape *s, float *memory) {
    s->gain = memory;
    s->end = memory + scan_carried(s);
    s->power = (int32_t *)(s->end + scan_carried(s));
}

/* Launches a function over all chunks, after what they begin with is known. */
static inline trine_status scan_launch(const trine_call *call, const scan_shape *s, trine_dtype type,
                                       const void *params, size_t size) {
    const bool cut = scan_is_cut(s);
    const simt_function ends = { .step = "ends", .type = { type } }, starts = { .step = "starts", .type = { type } },
                        all = { .step = cut ? "chunks" : NULL, .type = { type } };
    trine_status status = TRINE_OK;
    if (cut) status = simt_launch(call, &ends, s->parts * s->tiles, SCAN_THREADS, params, size);
    if (cut && status == TRINE_OK) status = simt_launch(call, &starts, s->count * s->tiles, SCAN_THREADS, params, size);
    if (status == TRINE_OK) status = simt_launch(call, &all, s->parts * s->tiles, SCAN_THREADS, params, size);
    return status;
}

static inline void scan_edges(trine_kernel_edges *edges, int channels, int steps) {
    trine_kernel_edge(edges, channels, SCAN_THREADS);
    trine_kernel_edge(edges, steps, SCAN_SHORT);
    trine_kernel_edge(edges, steps, SCAN_AHEAD);
    trine_kernel_edge(edges, steps, 2 * SCAN_AHEAD);
    trine_kernel_edge(edges, steps, SCAN_LEAST_CHUNK);
    trine_kernel_edge(edges, steps, 2 * SCAN_LEAST_CHUNK);
}

/* The kernel of an op, by its name in small and in capitals, whose parameters are <op>_params, of a call by
 * params_of(). */
#define SCAN_KERNEL(op, OP) \
    static size_t workspace(const trine_call *call) { \
        const op##_params p = params_of(call); \
        return scan_workspace(&p.shape); \
    } \
    static trine_status launch(const trine_call *call) { \
        op##_params p = params_of(call); \
        scan_place_carried(&p.shape, call->workspace); \
        return scan_launch(call, &p.shape, call->type[OP##_TYPE_T], &p, sizeof p); \
    } \
    static void edges(const trine_call *call, trine_kernel_edges *edges) { \
        (void)call; \
        scan_edges(edges, OP##_DIM_N, OP##_DIM_T); \
    } \
    SIMT_KERNELS(op) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } }

#endif
