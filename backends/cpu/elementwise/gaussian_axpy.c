/* SPDX-License-Identifier: Apache-2.0 */
/* gaussian_axpy on the CPU. */
#include "elementwise.h"
#include "gaussian.h"
#include "spec/places/gaussian_axpy.h"

INLINE void step(const run *r, vf alpha, const float *z, trine_dtype T, span s) {
    const vf noise = vproduct(alpha, *(const vf_any *)(z + s.i));
    span_store(r, GAUSSIAN_AXPY_Y, T, s, span_load(r, GAUSSIAN_AXPY_X, T, s) + noise);
}

INLINE void body(const run *r, const dropout *d, float alpha, trine_dtype T) {
    float buffer[GAUSSIAN_BUFFER];
    for (int64_t base = 0; base < r->n; base += GAUSSIAN_RUN) {
        run part = *r;
        part.n = r->n - base < GAUSSIAN_RUN ? r->n - base : GAUSSIAN_RUN;
        part.at[GAUSSIAN_AXPY_X] += base * (int64_t)vsize(T);
        part.at[GAUSSIAN_AXPY_Y] += base * (int64_t)vsize(T);
        const float *z = gaussian_run(d, (uint64_t)(r->index + base), (int)part.n, buffer);
        EACH_SPAN(&part, GAUSSIAN_AXPY_Y, T, step, &part, vset(alpha), z, T);
    }
}

static void row(const run *r) {
    const trine_gaussian_axpy_args *args = r->call->args;
    const trine_tensor *tensor = r->call->tensor;
    dropout d = dropout_of(0, args->seed, args->offset);
    if (r->call->present >> GAUSSIAN_AXPY_PHILOX & 1) dropout_tell(&d, &tensor[GAUSSIAN_AXPY_PHILOX]);
    const bool told = r->call->present >> GAUSSIAN_AXPY_ALPHA_TENSOR & 1;
    const float alpha = told ? *(const float *)tensor[GAUSSIAN_AXPY_ALPHA_TENSOR].data : args->alpha;
    FOR_TYPE(tensor[GAUSSIAN_AXPY_Y].dtype, body, r, &d, alpha);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    walk_edges(call, edges);
    trine_kernel_edge(edges, GAUSSIAN_AXPY_DIM_N, 4 * VL);
    trine_kernel_edge(edges, GAUSSIAN_AXPY_DIM_N, GAUSSIAN_RUN);
}

WALK_KERNELS(gaussian_axpy, edges);
