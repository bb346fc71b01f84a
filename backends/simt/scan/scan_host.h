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
                         .reverse = reverse,
                         .chunk = t,
                         .chunks = 1 };
}

/* Cuts time into chunks where channels are few, as is good for packed sequences of one length. */
static inline void scan_cut(scan_shape *s) {
    const int64_t channels = s->count * s->n, chunks = channels > 0 ? SCAN_CHANNELS / channels : 0,
                  steps = s->cu ? simt_blocks(s->t, s->count) : s->t;
    if (chunks < 8 || steps <= SCAN_LEAST_CHUNK) return;
    s->chunk = simt_blocks(steps, chunks);
    if (s->chunk < SCAN_LEAST_CHUNK) s->chunk = SCAN_LEAST_CHUNK;
    if (s->chunk > SCAN_MOST_CHUNK) s->chunk = SCAN_MOST_CHUNK;
    s->chunks = simt_blocks(s->t, s->chunk);
}

/* Elements of each of the three arrays in the workspace; its parts begin at `memory`. */
static inline int64_t scan_carried(const scan_shape *s) { return s->chunks > 1 ? s->count * s->chunks * s->n : 0; }
static inline size_t scan_workspace(const scan_shape *s) { return (size_t)scan_carried(s) * 3 * sizeof(float); }
static inline void scan_place_carried(scan_shape *s, float *memory) {
    s->gain = memory;
    s->end = memory + scan_carried(s);
    s->power = (int32_t *)(s->end + scan_carried(s));
}

/* Launches a function over all chunks, after what they begin with is known. */
static inline trine_status scan_launch(const trine_call *call, const scan_shape *s, trine_dtype type,
                                       const void *params, size_t size) {
    const simt_function ends = { .step = "ends", .type = { type } }, starts = { .step = "starts", .type = { type } },
                        all = { .step = s->chunks > 1 ? "chunks" : NULL, .type = { type } };
    const int64_t tiles = s->count * s->tiles, room = s->cu ? s->tiles : 0;
    trine_status status = TRINE_OK;
    if (s->chunks > 1) status = simt_launch(call, &ends, tiles * s->chunks, SCAN_THREADS, params, size);
    if (s->chunks > 1 && status == TRINE_OK) status = simt_launch(call, &starts, tiles, SCAN_THREADS, params, size);
    if (status == TRINE_OK) status = simt_launch(call, &all, (tiles + room) * s->chunks, SCAN_THREADS, params, size);
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

#endif
