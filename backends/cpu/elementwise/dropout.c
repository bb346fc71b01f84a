/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on the CPU. */
#include "elementwise.h"
#include "backends/cpu/core/philox.h"
#include "spec/places/dropout.h"

INLINE void step(const run *r, const dropout *d, const int32_t *keep, trine_dtype T, span s) {
    span_store(r, DROPOUT_Y, T, s, dropout_apply(d, span_load(r, DROPOUT_X, T, s), keep + s.i));
}

INLINE void body(const run *r, const dropout *d, trine_dtype T) {
    static const int32_t none[DROPOUT_BUFFER]; /* kept where p = 1 */
    int32_t buffer[DROPOUT_BUFFER];
    for (int64_t base = 0; base < r->n; base += DROPOUT_RUN) {
        run part = *r;
        part.n = r->n - base < DROPOUT_RUN ? r->n - base : DROPOUT_RUN;
        part.at[DROPOUT_X] += base * (int64_t)vsize(T);
        part.at[DROPOUT_Y] += base * (int64_t)vsize(T);
        const int32_t *keep = d->scale == 0 ? none : dropout_run(d, (uint64_t)(r->index + base), (int)part.n, buffer);
        EACH_SPAN(&part, DROPOUT_Y, T, step, &part, d, keep, T);
        uint8_t *mask = (uint8_t *)r->at[DROPOUT_MASK];
        for (int64_t i = 0; mask && i < part.n; i++) mask[base + i] = (uint8_t)(keep[i] & 1);
    }
}

static void row(const run *r) {
    const trine_dropout_args *args = r->call->args;
    dropout d = dropout_of(args->p, args->seed, args->offset);
    if (r->call->present >> DROPOUT_PHILOX & 1) dropout_tell(&d, &r->call->tensor[DROPOUT_PHILOX]);
    FOR_TYPE(r->call->tensor[DROPOUT_Y].dtype, body, r, &d);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    walk_edges(call, edges);
    dropout_edges(edges, DROPOUT_DIM_N);
}

WALK_KERNELS(dropout, edges);
