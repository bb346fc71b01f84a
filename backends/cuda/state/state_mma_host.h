/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of recurrences of matrices by tensor cores. */
#ifndef TRINE_CUDA_STATE_MMA_HOST_H
#define TRINE_CUDA_STATE_MMA_HOST_H

#include "backends/cuda/driver/state.h"
#include "backends/simt/state/state_host.h"
#include "state_mma_params.h"

/* The rows of a state that a function has. */
static inline int state_mma_variant(int64_t d) { return d <= 64 ? 64 : 128; }

/* Chunks of a sequence, or of all that are packed; and of all. A call whose data is not looked at may have none. */
static inline int64_t state_mma_chunks(const state_shape *s, bool packed) {
    return packed ? s->t / STATE_MMA_STEPS + s->count : simt_blocks(s->t, STATE_MMA_STEPS);
}
static inline int64_t state_mma_all_chunks(const state_shape *s, bool packed) {
    return state_mma_chunks(s, packed) * (packed ? 1 : s->count);
}

/* With the delta rule, an inverse and a word of each chunk and head. */
static inline size_t state_mma_workspace(const trine_call *call, const state_params *p, bool packed, bool ruled) {
    if (call->empty || !ruled) return 0;
    return (size_t)(state_mma_all_chunks(&p->shape, packed) * p->shape.h) * (STATE_MMA_STEPS * STATE_MMA_STEPS + 1) * 4;
}

static inline const char *state_mma_refuse(const trine_call *call, const state_params *p, bool packed) {
    const trine_dtype type = call->type[SIMT_FIRST_TYPE];
    const int inputs = STATE_MMA_INPUTS(type == TRINE_F16);
    if (trine_dtype_size(type) != 2) return "tensor cores have no products of this type that the error bound allows";
    if (p->shape.d > 128) return "a state has more than 128 rows";
    if (p->shape.t < STATE_MMA_LEAST * (packed ? p->shape.count : 1)) return "sequences are short";
    return STATE_MMA_BYTES(state_mma_variant(p->shape.d), inputs) > ((const cuda_device *)call->device)->shared
               ? "a block cannot have as much shared memory"
               : NULL;
}

/* `wide`: the rows of q, k, v and the output are aligned; `ruled`: there is the delta rule. */
static inline trine_status state_mma_launch(const trine_call *call, const state_params *params, bool wide, bool ruled) {
    const state_shape *s = &params->shape;
    const trine_dtype type = call->type[SIMT_FIRST_TYPE];
    const int inputs = STATE_MMA_INPUTS(type == TRINE_F16), variant = state_mma_variant(s->d);
    state_mma_params p = { .all = *params, .chunks = state_mma_chunks(s, s->cu != NULL), .wide = wide };
    const int64_t all = state_mma_all_chunks(s, s->cu != NULL) * s->h;
    simt_function function = {
        .step = "mma", .type = { type }, .variant = variant, .shared = STATE_MMA_BYTES(variant, inputs)
    };
    if (ruled) {
        const simt_function ready = {
            .step = "ready", .type = { type }, .variant = variant, .shared = STATE_MMA_READY_BYTES(variant, inputs)
        };
        p.inverse = call->workspace;
        p.wild = (int32_t *)(p.inverse + all * STATE_MMA_STEPS * STATE_MMA_STEPS);
        function.step = "ruled";
        const trine_status status = simt_launch(call, &ready, all, STATE_MMA_READY_THREADS, &p, sizeof p);
        if (status != TRINE_OK) return status;
    }
    return simt_launch(call, &function, state_launch_blocks(s, s->cu != NULL), STATE_MMA_THREADS, &p, sizeof p);
}

static inline void state_mma_edges(trine_kernel_edges *edges, int rows, int columns, int steps) {
    trine_kernel_edge(edges, rows, 64);
    trine_kernel_edge(edges, rows, 128);
    trine_kernel_edge(edges, columns, STATE_MMA_WIDTH);
    trine_kernel_edge(edges, steps, STATE_MMA_LEAST);
    trine_kernel_edge(edges, steps, STATE_MMA_STEPS);
    trine_kernel_edge(edges, steps, 2 * STATE_MMA_STEPS);
}

#endif
