/* SPDX-License-Identifier: Apache-2.0 */
/* hadamard on devices: the host side. What a block cannot hold is transformed by a matrix of few rows first, into f32,
 * which leaves parts that it can. */
#include <assert.h>
#include <string.h>

#include "hadamard.h"
#include "backends/simt/core/host.h"
#include "spec/places/hadamard.h"
#include "spec/quantize/hadamard_signs.h"

static_assert((int)HADAMARD_ORDER == (int)HADAMARD_MOST, "room for all rows");

static bool in_parts(const trine_call *call) { return call->dim[HADAMARD_DIM_N] > HADAMARD_BLOCK; }

static size_t workspace(const trine_call *call) {
    return in_parts(call) ? (size_t)(call->dim[HADAMARD_DIM_R] * call->dim[HADAMARD_DIM_N]) * sizeof(float) : 0;
}

static bool aligned(const trine_tensor *t) {
    return (uintptr_t)t->data % 16 == 0 &&
           (t->shape[0] <= 1 || t->stride[0] * (int64_t)trine_dtype_size(t->dtype) % 16 == 0);
}

/* The matrix that stands beside Sylvester's: its order, and its signs. */
static void choose_matrix(const trine_call *call, hadamard_params *p) {
    const trine_hadamard_args *args = call->args;
    const int64_t n = call->dim[HADAMARD_DIM_N];
    p->order = hadamard_order(n);
    if (p->order > 1) {
        memcpy(p->signs, hadamard_signs(p->order, args->transposed), (size_t)p->order * sizeof *p->signs);
        return;
    }
    if (!in_parts(call)) return;
    p->order = (int32_t)(n / HADAMARD_BLOCK);
    for (int b = 0; b < p->order; b++)
        for (int c = 0; c < p->order; c++) p->signs[b] |= (uint32_t)(__builtin_popcount((unsigned)(b & c)) & 1) << c;
}

static void set_size(hadamard_params *p, int64_t n) {
    p->n = (int32_t)n;
    p->size = (int32_t)(n / p->order);
    p->stages = __builtin_ctz((unsigned)p->size);
    p->units = simt_divisor_of(n >= SIMT_VECTOR ? n / SIMT_VECTOR : 1);
    p->together = n < HADAMARD_SHARE ? (int32_t)(HADAMARD_SHARE / n) : 1;
}

static trine_status launch_blocks(const trine_call *call, const char *step, const hadamard_params *p) {
    const simt_function function = { .step = step, .type = { call->type[HADAMARD_TYPE_T] } };
    return simt_launch(call, &function, simt_blocks(p->items, p->together), SIMT_THREADS, p, sizeof *p);
}

static trine_status launch(const trine_call *call) {
    const trine_hadamard_args *args = call->args;
    const trine_tensor *x = &call->tensor[HADAMARD_X], *y = &call->tensor[HADAMARD_Y];
    const int64_t r = call->dim[HADAMARD_DIM_R], n = call->dim[HADAMARD_DIM_N];
    hadamard_params p = { .x = simt_rows_of(call, HADAMARD_X),
                          .y = simt_rows_of(call, HADAMARD_Y),
                          .items = r,
                          .parts = simt_divisor_of(1),
                          .scale = args->scale,
                          .x_aligned = aligned(x),
                          .y_aligned = aligned(y) };
    choose_matrix(call, &p);
    set_size(&p, n);
    if (!in_parts(call)) return launch_blocks(call, NULL, &p);

    hadamard_params outer = p;
    outer.y = (simt_rows){ .data = call->workspace, .row = n };
    outer.items = r * p.size;
    outer.parts = simt_divisor_of(p.size);
    outer.together = SIMT_THREADS;
    const trine_status status = launch_blocks(call, "outer", &outer);
    if (status != TRINE_OK) return status;
    p.x = outer.y;
    p.x_aligned = true;
    p.items = r * p.order;
    p.parts = simt_divisor_of(p.order);
    p.order = 1;
    set_size(&p, n / outer.order);
    return launch_blocks(call, "inner", &p);
}

/* Rows that share a block, and those that are in parts. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, HADAMARD_DIM_N, HADAMARD_SHARE);
    trine_kernel_edge(edges, HADAMARD_DIM_N, HADAMARD_BLOCK);
}

SIMT_KERNELS(hadamard) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
