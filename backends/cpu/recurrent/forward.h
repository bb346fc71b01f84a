/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a recurrent cell on the CPU. The file that includes this has the cell: CELL_INPUTS, CELL_PRODUCTS,
 * CELL_SAVED and CELL_KINDS, of states; cell_gates() and cell_next() of vectors; and CELL, its name in capitals. */
#include "cells.h"

/* r[q][j][k] of a head becomes row k of q width + j. */
static void turn(const void *context, int64_t first, int64_t last, int thread) {
    const cells *a = context;
    const int64_t columns = CELL_PRODUCTS * a->width;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const int64_t head = row / a->d, k = row % a->d;
        float *to = a->matrices + row * columns;
        memset(to, 0, (size_t)columns * sizeof *to);
        for (int q = 0; q < CELL_PRODUCTS; q++)
            for (int64_t j = 0; j < a->d; j++)
                to[q * a->width + j] =
                    sload(a->r.data, a->r.dtype, head * a->r.batch + q * a->r.gate + j * a->r.head + k);
    }
}

/* Floats of a task: products, and states. */
static int64_t scratch_of(int64_t d) { return (CELL_PRODUCTS + CELL_KINDS) * cell_width(d); }

INLINE void one_vector(const cells *a, int64_t i, int64_t head, int64_t k, const float *product, float *state,
                       int64_t j, int m, trine_dtype T) {

    vf wx[CELL_INPUTS], p[CELL_PRODUCTS], bias[CELL_SAVED], g[CELL_SAVED], s[CELL_KINDS];
    UNROLLED for (int q = 0; q < CELL_INPUTS; q++) wx[q] = cell_get(cell_row(a, &a->wx, i, k, q, head), T, j, m);
    UNROLLED for (int q = 0; q < CELL_PRODUCTS; q++) p[q] = vload(product + q * a->width, TRINE_F32, j);
    UNROLLED for (int q = 0; q < CELL_SAVED; q++) bias[q] = vzero();
    if (a->bias.data) {
        const char *from = a->bias.data + head * a->bias.head * (int64_t)vsize(T);
        UNROLLED for (int q = 0; q < CELL_SAVED; q++) bias[q] =
            cell_get(from + q * a->bias.gate * (int64_t)vsize(T), T, j, m);
    }
    UNROLLED for (int n = 0; n < CELL_KINDS; n++) s[n] = vload(state + n * a->width, TRINE_F32, j);
    cell_gates(wx, p, bias, g);
    cell_next(g, s);
    cell_put(cell_row(a, &a->y, i, k, 0, head), T, j, m, s[0]);
    if (a->gates.data) {
        UNROLLED for (int q = 0; q < CELL_SAVED; q++) cell_put(cell_row(a, &a->gates, i, k, q, head), T, j, m, g[q]);
    }
    UNROLLED for (int n = 0; n < CELL_KINDS; n++) {
        vstore(state + n * a->width, TRINE_F32, j, s[n]);
        if (n > 0 && a->state[n].data) cell_put(cell_row(a, &a->state[n], i, k, 0, head), TRINE_F32, j, m, s[n]);
    }
}

INLINE void one_step(const cells *a, int64_t i, int64_t head, int64_t k, const float *product, float *state,
                     trine_dtype T) {
    CELL_EACH(a->d, j, m, one_vector(a, i, head, k, product, state, j, m, T));
}

static float *product_of(const cells *a, int64_t i, int64_t head) {
    return a->scratch + (i * a->h + head) * scratch_of(a->d);
}
static float *state_of(const cells *a, int64_t i, int64_t head) {
    return product_of(a, i, head) + CELL_PRODUCTS * a->width;
}

static void begin(const cells *a, int64_t i, int64_t head) {
    memset(product_of(a, i, head), 0, (size_t)scratch_of(a->d) * sizeof(float));
    for (int n = 0; n < CELL_KINDS; n++) {
        const float *from = cell_state(&a->start[n], i, head);
        if (from) memcpy(state_of(a, i, head) + n * a->width, from, (size_t)a->d * sizeof *from);
    }
}
static void end(const cells *a, int64_t i, int64_t head) {
    for (int n = 0; n < CELL_KINDS; n++) {
        float *to = cell_state(&a->last[n], i, head);
        if (to) memcpy(to, state_of(a, i, head) + n * a->width, (size_t)a->d * sizeof *to);
    }
}

INLINE void task(const cells *a, cell_task all, trine_dtype T) {
    const int64_t columns = CELL_PRODUCTS * a->width;
    for (int s = 0; s < all.n; s++) begin(a, all.i + s, all.head);
    for (int64_t k = 0; k < all.steps; k++) {
        const float *state[CELL_TOGETHER];
        float *product[CELL_TOGETHER];
        int n = 0;
        for (int s = 0; s < all.n; s++)
            if (k < cell_steps(a, all.i + s))
                state[n] = state_of(a, all.i + s, all.head), product[n++] = product_of(a, all.i + s, all.head);
        if (k > 0 || a->start[0].data)
            cell_product(a->matrices + all.head * a->d * columns, state, n, a->d, columns, false, product);
        for (int s = 0; s < all.n; s++)
            if (k < cell_steps(a, all.i + s))
                one_step(a, all.i + s, all.head, k, product_of(a, all.i + s, all.head),
                         state_of(a, all.i + s, all.head), T);
    }
    for (int s = 0; s < all.n; s++) end(a, all.i + s, all.head);
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const cells *a = context;
    (void)thread;
    for (int64_t n = first; n < last; n++) FOR_TYPE(a->y.dtype, task, a, cell_task_of(a, n, a->together));
}

#define CELL_DIM(name) call->dim[CELL_PLACE(DIM_##name)]

static int64_t count_of(const trine_call *call) {
    return trine_call_given(call, CELL_PLACE(CU_SEQLENS)) ? CELL_DIM(NSEQ) : CELL_DIM(B);
}
static int64_t matrices_of(const trine_call *call) {
    return CELL_DIM(H) * CELL_DIM(D) * CELL_PRODUCTS * cell_width(CELL_DIM(D));
}

static size_t workspace(const trine_call *call) {
    return (size_t)(matrices_of(call) + count_of(call) * CELL_DIM(H) * scratch_of(CELL_DIM(D))) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    cells a = cells_of(call, CELL_DIM(B), CELL_DIM(T), CELL_DIM(H), CELL_DIM(D), CELL_DIM(NSEQ),
                       trine_call_given(call, CELL_PLACE(CU_SEQLENS)));
    a.products = CELL_PRODUCTS;
    a.wx = cell_tensor_of(call, CELL_PLACE(WX), CELL_INPUTS > 1);
    a.r = cell_tensor_of(call, CELL_PLACE(R), false);
    if (CELL_PRODUCTS > 1) a.r.gate = call->tensor[CELL_PLACE(R)].stride[1];
    a.bias = cell_tensor_of(call, CELL_PLACE(BIAS), false);
    if (CELL_SAVED > 1) a.bias.gate = a.bias.batch;
    a.y = cell_tensor_of(call, CELL_PLACE(Y), false);
    a.gates = cell_tensor_of(call, CELL_PLACE(GATES), CELL_SAVED > 1);
    cell_states(call, &a);
    a.matrices = call->workspace;
    a.scratch = a.matrices + matrices_of(call);
    const trine_status status = cell_check(&a);
    if (status != TRINE_OK) return status;
    cpu_shares(call, cell_team(&a, a.h * a.d), a.h * a.d, turn, &a);
    a.together = cell_together(&a);
    cpu_tasks(call, cell_team(&a, cell_tasks(&a, a.together)), cell_tasks(&a, a.together), tasks, &a);
    cell_clear(&a, &a.y, 1);
    cell_clear(&a, &a.gates, CELL_SAVED);
    for (int n = 1; n < CELL_KINDS; n++) cell_clear(&a, &a.state[n], 1);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), VL);
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), (int64_t)CELL_BLOCK * VL);
}
