/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that recurrences of matrices share. */
#ifndef TRINE_SIMT_STATE_HOST_H
#define TRINE_SIMT_STATE_HOST_H

#include "backends/simt/core/host.h"
#include "state.h"

static inline state_rows state_rows_of(const trine_tensor *t) {
    if (t == NULL) return (state_rows){ .data = NULL };
    return (state_rows){ .data = t->data,
                         .batch = t->stride[0],
                         .step = t->stride[1],
                         .head = t->stride[2],
                         .type = t->dtype == TRINE_F32    ? STATE_F32
                                 : t->dtype == TRINE_BF16 ? STATE_BF16
                                                          : STATE_F16 };
}

/* `turned`: the last dimension is of rows. */
static inline state_matrices state_matrices_of(const trine_tensor *t, bool turned) {
    if (t == NULL) return (state_matrices){ .data = NULL };
    return (state_matrices){ .data = t->data,
                             .sequence = t->stride[0],
                             .head = t->stride[1],
                             .row = turned ? 1 : t->stride[2],
                             .column = turned ? t->stride[2] : 1 };
}

static inline float *state_numbers_of(const trine_tensor *t) { return t ? t->data : NULL; }

/* Blocks of columns, at least one. */
static inline int64_t state_blocks(int64_t columns, int width) { return columns > 0 ? simt_blocks(columns, width) : 1; }

/* Blocks of all sequences, and of the room behind the last of packed ones. */
static inline int64_t state_launch_blocks(const state_shape *s, bool packed) {
    return (s->count + packed) * s->h * s->blocks;
}

/* The rows of a thread of the function that has enough: 4, 8 or 16. */
static inline int state_variant(int64_t d) { return d <= 4 * STATE_LANES ? 4 : d <= 8 * STATE_LANES ? 8 : 16; }

/* Edges of any of the ops, whose rows, columns and steps have these symbols. */
static inline void state_edges(trine_kernel_edges *edges, int rows, int columns, int steps, int width, int at_a_time) {
    trine_kernel_edge(edges, rows, 4 * STATE_LANES);
    trine_kernel_edge(edges, rows, 8 * STATE_LANES);
    trine_kernel_edge(edges, columns, STATE_COLUMNS);
    trine_kernel_edge(edges, columns, width);
    trine_kernel_edge(edges, steps, at_a_time);
}

static inline trine_status state_forward_launch(const trine_call *call, const state_params *p) {
    const simt_function function = { .variant = state_variant(p->shape.d) };
    return simt_launch(call, &function, state_launch_blocks(&p->shape, p->shape.cu != NULL), STATE_THREADS, p,
                       sizeof *p);
}

/* Floats of a block's states, and steps of a chunk, of the gradient step by step. */
static inline int64_t state_backward_tile(int64_t d) {
    return (int64_t)state_variant(d) * STATE_COLUMNS * STATE_BACK_THREADS;
}
static inline int64_t state_backward_chunk(int64_t t) {
    int64_t chunk = STATE_LEAST_CHUNK;
    while (chunk * chunk < t) chunk *= 2;
    return chunk;
}

/* The workspace of a gradient: how many floats it has, but for terms, or where its parts begin. */
static inline int64_t state_backward_plan(state_backward_params *p, bool packed, float *memory) {
    const state_shape *s = &p->shape;
    const int64_t tile = state_backward_tile(s->d);
    p->slots = s->blocks;
    p->chunk = state_backward_chunk(s->t);
    p->chunks = packed ? s->t / p->chunk + s->count + 1 : s->count * (s->t / p->chunk + 1);
    const int64_t kept = s->h * s->blocks * p->chunks * tile, states = s->count * s->h * s->blocks * p->chunk * tile,
                  parts = p->rows * s->h * s->blocks * 2 * s->d, sums = p->rows * s->h * s->blocks * STATE_SUMS;
    if (memory == NULL) return kept + states + parts + sums;
    p->kept = memory;
    p->states = p->kept + kept;
    p->parts = p->states + states;
    p->sums = p->parts + parts;
    p->terms = p->sums + sums;
    return 0;
}

/* Of ssd, the terms besides. */
static inline int64_t state_backward_terms(const state_backward_params *p) { return 3 * p->shape.h * p->rows; }

/* What sums over blocks, heads and steps, with `keys_too` dq and dk; and of ssd over all steps of a head. */
static inline trine_status state_backward_finish(const trine_call *call, const state_backward_params *p,
                                                 bool keys_too) {
    const state_shape *s = &p->shape;
    const simt_function steps = { .step = "steps" }, keys = { .step = "keys" }, heads = { .step = "heads" };
    trine_status status = TRINE_OK;
    if (keys_too)
        status = simt_launch(call, &keys, simt_blocks(p->rows * s->groups, SIMT_THREADS / STATE_KEY_THREADS),
                             SIMT_THREADS, p, sizeof *p);
    if (status == TRINE_OK)
        status = simt_launch(call, &steps, simt_blocks(p->rows * s->h, SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
    if (status == TRINE_OK && p->da) status = simt_launch(call, &heads, 3 * s->h, SIMT_THREADS, p, sizeof *p);
    return status;
}

static inline trine_status state_backward_launch(const trine_call *call, const state_backward_params *p) {
    const state_shape *s = &p->shape;
    const simt_function all = { .variant = state_variant(s->d) };
    const trine_status status =
        simt_launch(call, &all, state_launch_blocks(s, s->cu != NULL), STATE_BACK_THREADS, p, sizeof *p);
    return status == TRINE_OK ? state_backward_finish(call, p, true) : status;
}

#endif
