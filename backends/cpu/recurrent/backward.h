/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a recurrent cell on the CPU: the steps of each sequence from the last to the first, which leave the
 * gates' gradients and the states before them in the workspace, and then sums over all steps, row by row of dr.
 * The file that includes this has the cell: CELL_INPUTS, CELL_PRODUCTS, CELL_SAVED, CELL_KINDS, of states, and
 * CELL_GRADIENTS, of states that have one outside; cell_back(), and CELL_PLACE(), of a name. */
#include "cells.h"

/* Rows of dr of a task, and rows and vectors that are summed at a time; steps of a part. */
enum { SUM_BLOCK = 4 * VL, SUM_ROWS = 4, SUM_VECTORS = 2, SUM_STEPS = 128 };

/* Rows of r in whole vectors. */
static void copy(const void *context, int64_t first, int64_t last, int thread) {
    const cells *a = context;
    const int64_t of_head = CELL_PRODUCTS * a->d;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const int64_t head = row / of_head, q = row % of_head / a->d, j = row % a->d;
        float *to = a->matrices + row * a->width;
        const int64_t from = head * a->r.batch + q * a->r.gate + j * a->r.head;
        for (int64_t k = 0; k < a->width; k += VL) {
            const int m = a->d - k < VL ? (int)(a->d - k) : VL;
            vstore(to, TRINE_F32, k, cell_get(a->r.data + from * (int64_t)vsize(a->r.dtype), a->r.dtype, k, m));
        }
    }
}

/* Floats of a task: gradients of states. */
static int64_t scratch_of(int64_t d) { return CELL_KINDS * cell_width(d); }

/* Rows of a step and a head in the workspace. */
static float *dg_row(const cells *a, int64_t step, int64_t head) {
    return a->dg + (step * a->h + head) * CELL_SAVED * a->width;
}
static float *before_row(const cells *a, int64_t step, int64_t head) {
    return a->before + (step * a->h + head) * a->width;
}

/* State n before step k, of type f32 or, h, of the type of y; NULL: 0. */
INLINE const void *state_before(const cells *a, int n, int64_t i, int64_t head, int64_t k, trine_dtype *type) {
    if (k > 0) {
        const cell_tensor *t = n == 0 ? &a->y : &a->state[n];
        *type = t->dtype;
        return cell_row(a, t, i, k - 1, 0, head);
    }
    *type = TRINE_F32;
    return cell_state(&a->start[n], i, head);
}

INLINE void one_vector(const cells *a, int64_t i, int64_t head, int64_t k, float *dstate, int64_t j, int m,
                       trine_dtype T) {
    float *dg = dg_row(a, cell_step(a, i, k), head), *h = before_row(a, cell_step(a, i, k), head);

    vf g[CELL_SAVED], before[CELL_KINDS], after[CELL_KINDS], ds[CELL_KINDS], d[CELL_SAVED];
    UNROLLED for (int q = 0; q < CELL_SAVED; q++) g[q] = cell_get(cell_row(a, &a->gates, i, k, q, head), T, j, m);
    UNROLLED for (int n = 0; n < CELL_KINDS; n++) {
        trine_dtype type;
        const void *from = state_before(a, n, i, head, k, &type);
        before[n] = from == NULL        ? vzero()
                    : type == TRINE_F32 ? cell_get(from, TRINE_F32, j, m)
                                        : cell_get(from, T, j, m);
        after[n] = n == 0 ? cell_get(cell_row(a, &a->y, i, k, 0, head), T, j, m)
                          : cell_get(cell_row(a, &a->state[n], i, k, 0, head), TRINE_F32, j, m);
        ds[n] = vload(dstate + n * a->width, TRINE_F32, j);
    }
    ds[0] += cell_get(cell_row(a, &a->dy, i, k, 0, head), T, j, m);
    cell_back(g, before, after, ds, d);
    UNROLLED for (int q = 0; q < CELL_SAVED; q++)
        vstore(dg + q * a->width, TRINE_F32, j, vsel(viota() < m, d[q], vzero()));
    UNROLLED for (int q = 0; q < CELL_INPUTS; q++) cell_put(cell_row(a, &a->dwx, i, k, q, head), T, j, m, d[q]);
    UNROLLED for (int n = 0; n < CELL_KINDS; n++) vstore(dstate + n * a->width, TRINE_F32, j, ds[n]);
    vstore(h, TRINE_F32, j, vsel(viota() < m, before[0], vzero()));
}

INLINE void one_step(const cells *a, int64_t i, int64_t head, int64_t k, float *dstate, trine_dtype T) {
    CELL_EACH(a->d, j, m, one_vector(a, i, head, k, dstate, j, m, T));
}

static float *dstate_of(const cells *a, int64_t i, int64_t head) {
    return a->scratch + (i * a->h + head) * scratch_of(a->d);
}

static void begin(const cells *a, int64_t i, int64_t head) {
    float *dstate = dstate_of(a, i, head);
    memset(dstate, 0, (size_t)scratch_of(a->d) * sizeof *dstate);
    for (int n = 0; n < CELL_GRADIENTS; n++) {
        const float *from = cell_state(&a->dlast[n], i, head);
        if (from) memcpy(dstate + n * a->width, from, (size_t)a->d * sizeof *from);
    }
}
static void end(const cells *a, int64_t i, int64_t head) {
    for (int n = 0; n < CELL_GRADIENTS; n++) {
        float *to = cell_state(&a->dstart[n], i, head);
        if (to) memcpy(to, dstate_of(a, i, head) + n * a->width, (size_t)a->d * sizeof *to);
    }
}

INLINE void task(const cells *a, cell_task all, trine_dtype T) {
    for (int s = 0; s < all.n; s++) begin(a, all.i + s, all.head);
    for (int64_t k = all.steps - 1; k >= 0; k--) {
        const float *dg[CELL_TOGETHER];
        float *dstate[CELL_TOGETHER];
        int n = 0;
        for (int s = 0; s < all.n; s++) {
            const int64_t i = all.i + s;
            if (k >= cell_steps(a, i)) continue;
            one_step(a, i, all.head, k, dstate_of(a, i, all.head), T);
            dg[n] = dg_row(a, cell_step(a, i, k), all.head), dstate[n++] = dstate_of(a, i, all.head);
        }
        for (int q = 0; q < CELL_PRODUCTS && (k > 0 || a->start[0].data); q++) {
            const float *row[CELL_TOGETHER];
            for (int s = 0; s < n; s++) row[s] = dg[s] + cell_product_row[q] * a->width;
            cell_product(a->matrices + (all.head * CELL_PRODUCTS + q) * a->d * a->width, row, n, a->d, a->width, true,
                         dstate);
        }
    }
    for (int s = 0; s < all.n; s++) end(a, all.i + s, all.head);
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const cells *a = context;
    (void)thread;
    for (int64_t n = first; n < last; n++) FOR_TYPE(a->y.dtype, task, a, cell_task_of(a, n, a->together));
}

/* Steps of the sequences, behind which there is nothing to sum. */
static int64_t steps_of(const cells *a) { return a->cu ? a->cu[a->count] : a->b * a->t; }

/* Adds steps first .. last-1 to rows j .. j+n-1 of product q of a head, two vectors of them, which stand where the
 * matrices stood. */
INLINE void row_sums(const cells *a, int64_t head, int q, int64_t j, int n, int64_t k, int vectors, int64_t first,
                     int64_t last) {
    const int64_t pitch = a->h * a->width;
    const float *dg = dg_row(a, 0, head) + cell_product_row[q] * a->width + j, *h = before_row(a, 0, head) + k;
    float *to = a->matrices + ((head * CELL_PRODUCTS + q) * a->d + j) * a->width + k;
    vf sum[SUM_ROWS][SUM_VECTORS] = { 0 };
    if (first > 0) {
        UNROLLED for (int i = 0; i < n; i++) {
            UNROLLED for (int v = 0; v < vectors; v++) sum[i][v] = vload(to + i * a->width, TRINE_F32, (int64_t)v * VL);
        }
    }
    for (int64_t step = first; step < last; step++) {
        UNROLLED for (int v = 0; v < vectors; v++) {
            const vf x = vload(h + step * pitch, TRINE_F32, (int64_t)v * VL);
            UNROLLED for (int i = 0; i < n; i++) sum[i][v] =
                vfma(vset(dg[step * pitch * CELL_SAVED + i]), x, sum[i][v]);
        }
    }
    UNROLLED for (int i = 0; i < n; i++) {
        UNROLLED for (int v = 0; v < vectors; v++) vstore(to + i * a->width, TRINE_F32, (int64_t)v * VL, sum[i][v]);
    }
}

static void block_sums(const cells *a, int64_t head, int q, int64_t j, int n, int64_t first, int64_t last) {
    int64_t k = 0;
    if (n == SUM_ROWS)
        for (; k + SUM_VECTORS * VL <= a->width; k += SUM_VECTORS * VL)
            row_sums(a, head, q, j, SUM_ROWS, k, SUM_VECTORS, first, last);
    for (; k < a->width; k += VL) row_sums(a, head, q, j, n, k, 1, first, last);
}

/* Of a task: rows j .. of a head and a product, over all steps by parts that stay in the cache, and then in dr. */
INLINE void product_sums(const cells *a, int64_t head, int q, int64_t j, int64_t end, trine_dtype T) {
    const int64_t steps = steps_of(a);
    int64_t first = 0;
    do {
        const int64_t last = steps - first < SUM_STEPS ? steps : first + SUM_STEPS;
        for (int64_t row = j; row < end; row += SUM_ROWS)
            block_sums(a, head, q, row, end - row < SUM_ROWS ? (int)(end - row) : SUM_ROWS, first, last);
        first = last;
    } while (first < steps);
    for (int64_t row = j; row < end; row++) {
        const float *from = a->matrices + ((head * CELL_PRODUCTS + q) * a->d + row) * a->width;
        char *to = a->dr.data + (head * a->dr.batch + q * a->dr.gate + row * a->dr.head) * (int64_t)vsize(T);
        CELL_EACH(a->d, k, m, { cell_put(to, T, k, m, vload(from, TRINE_F32, k)); });
    }
}

INLINE void bias_sums(const cells *a, int64_t head, int q, int64_t j, int64_t end, trine_dtype T) {
    const int64_t steps = steps_of(a), pitch = a->h * a->width * CELL_SAVED;
    const float *dg = dg_row(a, 0, head) + q * a->width;
    for (; j < end; j += VL) {
        vf sum = vzero();
        for (int64_t step = 0; step < steps; step++) sum += vload(dg + step * pitch, TRINE_F32, j);
        cell_put(a->dbias.data + (q * a->dbias.gate + head * a->dbias.head) * (int64_t)vsize(T), T, j,
                 end - j < VL ? (int)(end - j) : VL, sum);
    }
}

static int64_t blocks_of(const cells *a) { return (a->d + SUM_BLOCK - 1) / SUM_BLOCK; }

INLINE void sums_of(const cells *a, int64_t number, trine_dtype T) {
    const int64_t blocks = blocks_of(a), head = number / (CELL_SAVED * blocks), j = number % blocks * SUM_BLOCK,
                  end = a->d - j < SUM_BLOCK ? a->d : j + SUM_BLOCK;
    const int q = (int)(number / blocks % CELL_SAVED);
    if (q < CELL_PRODUCTS) product_sums(a, head, q, j, end, T);
    if (a->dbias.data) bias_sums(a, head, q, j, end, T);
}

static void sums(const void *context, int64_t first, int64_t last, int thread) {
    const cells *a = context;
    (void)thread;
    for (int64_t n = first; n < last; n++) FOR_TYPE(a->y.dtype, sums_of, a, n);
}

#define CELL_DIM(name) call->dim[CELL_PLACE(DIM_##name)]

static int64_t matrices_of(const trine_call *call) {
    return CELL_DIM(H) * CELL_DIM(D) * CELL_PRODUCTS * cell_width(CELL_DIM(D));
}
static int64_t scratches_of(const trine_call *call) {
    const int64_t count = trine_call_given(call, CELL_PLACE(CU_SEQLENS)) ? CELL_DIM(NSEQ) : CELL_DIM(B);
    return count * CELL_DIM(H) * scratch_of(CELL_DIM(D));
}
static int64_t rows_of(const trine_call *call) {
    return CELL_DIM(B) * CELL_DIM(T) * CELL_DIM(H) * cell_width(CELL_DIM(D));
}

static size_t workspace(const trine_call *call) {
    return (size_t)(matrices_of(call) + scratches_of(call) + rows_of(call) * (CELL_SAVED + 1)) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    cells a = cells_of(call, CELL_DIM(B), CELL_DIM(T), CELL_DIM(H), CELL_DIM(D), CELL_DIM(NSEQ),
                       trine_call_given(call, CELL_PLACE(CU_SEQLENS)));
    a.products = 2 * CELL_PRODUCTS;
    a.dy = cell_tensor_of(call, CELL_PLACE(DY), false);
    a.y = cell_tensor_of(call, CELL_PLACE(Y), false);
    a.gates = cell_tensor_of(call, CELL_PLACE(GATES), CELL_SAVED > 1);
    a.dwx = cell_tensor_of(call, CELL_PLACE(DWX), CELL_INPUTS > 1);
    a.r = cell_tensor_of(call, CELL_PLACE(R), false);
    a.dr = cell_tensor_of(call, CELL_PLACE(DR), false);
    if (CELL_PRODUCTS > 1) {
        a.r.gate = call->tensor[CELL_PLACE(R)].stride[1];
        a.dr.gate = call->tensor[CELL_PLACE(DR)].stride[1];
    }
    a.dbias = cell_tensor_of(call, CELL_PLACE(DBIAS), false);
    if (CELL_SAVED > 1) a.dbias.gate = a.dbias.batch;
    cell_states(call, &a);
    a.matrices = call->workspace;
    a.scratch = a.matrices + matrices_of(call);
    a.dg = a.scratch + scratches_of(call);
    a.before = a.dg + rows_of(call) * CELL_SAVED;
    const trine_status status = cell_check(&a);
    if (status != TRINE_OK) return status;
    cpu_shares(call, cell_team(&a, a.h * a.d), a.h * CELL_PRODUCTS * a.d, copy, &a);
    a.together = cell_together(&a);
    cpu_tasks(call, cell_team(&a, cell_tasks(&a, a.together)), cell_tasks(&a, a.together), tasks, &a);
    cpu_shares(call, cell_team(&a, a.h * CELL_SAVED * blocks_of(&a)), a.h * CELL_SAVED * blocks_of(&a), sums, &a);
    cell_clear(&a, &a.dwx, CELL_INPUTS);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), VL);
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), SUM_BLOCK);
    trine_kernel_edge(edges, CELL_PLACE(DIM_T), SUM_STEPS);
}
