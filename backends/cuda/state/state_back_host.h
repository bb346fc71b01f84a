/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of gradients of recurrences of matrices by tensor cores. */
#ifndef TRINE_CUDA_STATE_BACK_HOST_H
#define TRINE_CUDA_STATE_BACK_HOST_H

#include "state_back_params.h"
#include "state_mma_host.h"

/* What a call has, besides its parameters. */
typedef struct state_back_call {
    const trine_call *call;
    bool packed, ruled, ssd; /* ruled: there is the delta rule */
    bool gates;              /* their gradient is asked for */
} state_back_call;

/* The next part of the workspace. */
static inline float *state_back_take(float *memory, int64_t *floats, int64_t count) {
    float *const part = memory ? memory + *floats : NULL;
    *floats += count;
    return part;
}

/* The workspace: how many words it has, and where its parts are. */
static inline int64_t state_back_plan(state_back_params *p, const state_back_call *c, float *memory) {
    const state_shape *s = &p->all.shape;
    const int64_t all = state_mma_all_chunks(s, c->packed) * s->h, square = all * STATE_BACK_SQUARE,
                  columns = all * s->blocks * STATE_MMA_WIDTH, states = columns * state_mma_variant(s->d),
                  steps = columns * STATE_MMA_STEPS;
    p->chunks = state_mma_chunks(s, c->packed);
    p->columns = s->blocks;
    p->all.slots = 1;
    p->all.chunk = state_backward_chunk(s->t);
    p->longest = s->t / p->all.chunk + 1;
    const int64_t alone = (p->longest + p->all.chunk) * state_backward_tile(s->d);
    int64_t floats = 0;
    /* when heads are taken step by step, nobody reads these any more */
    p->all.kept = p->all.states = state_back_take(memory, &floats, 2 * states > alone ? 2 * states : alone);
    p->alone = alone > 0 && floats > alone ? floats / alone : 1;
    p->states = p->all.kept;
    p->gradients = memory ? p->states + states : NULL;
    p->decays = state_back_take(memory, &floats, square);
    p->inverse = state_back_take(memory, &floats, c->ruled ? square : 0);
    p->turned = state_back_take(memory, &floats, c->ruled ? square : 0);
    p->left = state_back_take(memory, &floats, c->ruled ? steps : 0);
    p->of = state_back_take(memory, &floats, c->ruled ? steps : 0);
    p->numbers = state_back_take(memory, &floats, all * STATE_BACK_NUMBERS * STATE_MMA_STEPS);
    p->all.parts = state_back_take(memory, &floats, p->all.rows * s->h * 2 * s->d);
    p->all.sums = state_back_take(memory, &floats, p->all.rows * s->h * STATE_SUMS);
    p->all.terms = state_back_take(memory, &floats, c->ssd ? state_backward_terms(&p->all) : 0);
    p->unready = (int32_t *)state_back_take(memory, &floats, all);
    p->wild = (int32_t *)state_back_take(memory, &floats, all);
    return floats;
}

static inline const char *state_back_refuse(const state_back_call *c, const state_shape *s) {
    const trine_dtype type = c->call->type[SIMT_FIRST_TYPE];
    const int inputs = STATE_MMA_INPUTS(type == TRINE_F16), rows = state_mma_variant(s->d);
    if (trine_dtype_size(type) != 2) return "tensor cores have no products of this type that the error bound allows";
    if (s->d > 128) return "a state has more than 128 rows";
    if (s->e == 0) return "a state has no columns";
    /* the bound has as many roundings as a state has rows (spec/state/state_backward.h) */
    if ((c->gates || c->ruled) && s->d < STATE_MMA_STEPS)
        return "more terms may cancel in a chunk than a state has rows";
    if (s->t < STATE_MMA_LEAST * (c->packed ? s->count : 1)) return "sequences are short";
    return STATE_BACK_CHUNK_BYTES(rows, inputs, c->ruled) > ((const cuda_device *)c->call->device)->shared
               ? "a block cannot have as much shared memory"
               : NULL;
}

static inline size_t state_back_workspace(const state_back_call *c, const state_backward_params *params) {
    state_back_params p = { .all = *params };
    return c->call->empty ? 0 : (size_t)state_back_plan(&p, c, NULL) * sizeof(float);
}

/* `wide`: the rows of what has T are aligned. Parameters have blocks of 32 columns. */
static inline trine_status state_back_launch(const state_back_call *c, const state_backward_params *params, bool wide) {
    const trine_call *call = c->call;
    const trine_dtype type = call->type[SIMT_FIRST_TYPE];
    state_back_params p = { .all = *params, .wide = wide };
    const state_shape *s = &p.all.shape;
    const int inputs = STATE_MMA_INPUTS(type == TRINE_F16), rows = state_mma_variant(s->d);
    const int64_t all = state_mma_all_chunks(s, c->packed) * s->h;
    const int own = STATE_BACK_CHUNK_BYTES(rows, inputs, c->ruled), more = STATE_BACK_STAGED_BYTES(rows, c->ruled);
    p.staged = own + more <= ((const cuda_device *)call->device)->shared;
    state_back_plan(&p, c, call->workspace);
    const simt_function ready = { .step = c->ruled ? "ruled_ready" : "ready",
                                  .type = { type },
                                  .variant = rows,
                                  .shared = STATE_BACK_READY_BYTES(rows, inputs, c->ruled) },
                        pass = { .step = c->ruled ? "ruled_pass" : "pass",
                                 .type = { type },
                                 .variant = rows,
                                 .shared = STATE_BACK_PASS_BYTES(rows, inputs, c->ruled) },
                        chunk = { .step = c->ruled ? "ruled_chunk" : "chunk",
                                  .type = { type },
                                  .variant = rows,
                                  .shared = p.staged ? own + more : own },
                        alone = { .step = "alone", .variant = state_variant(s->d) };
    trine_status status = simt_launch(call, &ready, all, STATE_MMA_READY_THREADS, &p, sizeof p);
    if (status == TRINE_OK)
        status = simt_launch(call, &pass, 2 * state_launch_blocks(s, c->packed), STATE_MMA_THREADS, &p, sizeof p);
    if (status == TRINE_OK) status = simt_launch(call, &chunk, all, STATE_BACK_CHUNK_THREADS, &p, sizeof p);
    if (status != TRINE_OK) return status;
    const int64_t heads = s->count * s->h;
    p.all.shape.blocks = state_blocks(s->e, STATE_BACK_WIDTH);
    status = simt_launch(call, &alone, p.alone < heads ? p.alone : heads, STATE_BACK_THREADS, &p, sizeof p);
    return status == TRINE_OK ? state_backward_finish(call, &p.all, s->groups != s->h) : status;
}

#endif
