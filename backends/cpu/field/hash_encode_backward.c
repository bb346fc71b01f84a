/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode_backward on the CPU. Rows of the table have owners, each of which goes through all places in their order
 * and adds what is its own: whoever they are, a row's sum is the same. */
#include "grid.h"
#include "spec/places/hash_encode_backward.h"

INLINE void slope_level(const grids *g, const grid_level *v, int64_t level, int64_t i, int count, const vf *x, vf *dx,
                        int d, trine_dtype T) {
    const int f = (int)g->f;
    const grid_places p = grid_places_of(g, v, x, d);
    vf dy[GRID_FEATURES], sum[GRID_DIMS] = { 0 };
    for (int k = 0; k < f; k++) {
        float of_lane[VL];
        for (int lane = 0; lane < VL; lane++)
            of_lane[lane] = sload(g->y->data, T, grid_place(g->y, i + (lane < count ? lane : 0), level, k));
        dy[k] = vload(of_lane, TRINE_F32, 0);
    }
    for (int q = 0; q < 1 << d; q++) {
        const vu row = grid_rows(v, &p, q, d);
        vf inner = vzero();
        for (int k = 0; k < f; k++) inner = vfma(grid_gather(g->table, v, row, k, T), dy[k], inner);
        for (int axis = 0; axis < d; axis++) sum[axis] = vfma(grid_weight(&p, q, d, axis), inner, sum[axis]);
    }
    for (int axis = 0; axis < d; axis++) dx[axis] = vfma(p.slope[axis], sum[axis], dx[axis]);
}

INLINE void slopes(const grids *g, int64_t number, int d, trine_dtype T) {
    const int64_t first = number * GRID_BLOCK, end = first + GRID_BLOCK < g->n ? first + GRID_BLOCK : g->n;
    for (int64_t i = first; i < end; i += VL) {
        const int count = end - i < VL ? (int)(end - i) : VL;
        vf x[GRID_DIMS], dx[GRID_DIMS] = { 0 };
        vi astray = viset(0);
        grid_coordinates(g, i, count, d, x);
        for (int64_t level = 0; level < g->l; level++) {
            const grid_level v = grid_level_of(g, level);
            if (v.m > 0) slope_level(g, &v, level, i, count, x, dx, d, T);
        }
        for (int axis = 0; axis < d; axis++) astray |= x[axis] != x[axis];
        for (int axis = 0; axis < d; axis++) {
            const vi outside = (x[axis] < 0.0f) | (x[axis] > 1.0f);
            const vf y = vsel(astray, vset(NAN), vsel(outside, vzero(), dx[axis]));
            for (int lane = 0; lane < count; lane++)
                ((float *)g->dx->data)[(i + lane) * g->dx->stride[0] + axis] = y[lane];
        }
    }
}
static void slope_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const grids *g = context;
    (void)thread;
    for (int64_t number = first; number < last; number++) FOR_GRID(slopes, g, number);
}

static void clear(const void *context, int64_t first, int64_t last, int thread) {
    const grids *g = context;
    (void)thread;
    for (int64_t row = first; row < last; row++) memset(g->sum + row * g->row, 0, (size_t)g->f * sizeof *g->sum);
}

INLINE void add_places(const grids *g, const grid_level *v, int64_t level, int64_t i, int count, uint32_t low,
                       uint32_t high, int d, trine_dtype T) {
    const int f = (int)g->f, corners = 1 << d;
    vf x[GRID_DIMS], w[GRID_CORNERS];
    vu row[GRID_CORNERS];
    grid_coordinates(g, i, count, d, x);
    const grid_places p = grid_places_of(g, v, x, d);
    for (int q = 0; q < corners; q++) w[q] = grid_weight(&p, q, d, -1), row[q] = grid_rows(v, &p, q, d);
    for (int lane = 0; lane < count; lane++) {
        float dy[GRID_FEATURES];
        if (p.astray[lane]) continue;
        for (int k = 0; k < f; k++) dy[k] = sload(g->y->data, T, grid_place(g->y, i + lane, level, k));
        for (int q = 0; q < corners; q++) {
            if (row[q][lane] < low || row[q][lane] >= high) continue;
            float *to = g->sum + (v->first + row[q][lane]) * g->row;
            for (int k = 0; k < f; k++) to[k] += w[q][lane] * dy[k];
        }
    }
}

/* Task: a level, and a part of its rows. */
INLINE void add_part(const grids *g, int64_t task, int d, trine_dtype T) {
    const int64_t level = task / g->parts, part = task % g->parts;
    const grid_level v = grid_level_of(g, level);
    const uint32_t low = (uint32_t)(v.m * part / g->parts), high = (uint32_t)(v.m * (part + 1) / g->parts);
    for (int64_t i = 0; low < high && i < g->n; i += VL)
        add_places(g, &v, level, i, g->n - i < VL ? (int)(g->n - i) : VL, low, high, d, T);
}
static void add_parts(const void *context, int64_t first, int64_t last, int thread) {
    const grids *g = context;
    (void)thread;
    for (int64_t task = first; task < last; task++) FOR_GRID(add_part, g, task);
}

static void round_rows(const void *context, int64_t first, int64_t last, int thread) {
    const grids *g = context;
    (void)thread;
    for (int64_t row = first; row < last; row++)
        for (int64_t k = 0; k < g->f; k++)
            sstore(g->dtable->data, g->dtable->dtype, row * g->dtable->stride[0] + k, g->sum[row * g->row + k]);
}

static void table(grids *g, int64_t bytes) {
    const trine_call *call = g->call;
    const bool direct = g->dtable->dtype == TRINE_F32;
    const int64_t threads = ((const cpu_queue *)call->queue)->threads;
    g->sum = direct ? g->dtable->data : call->workspace;
    g->row = direct ? g->dtable->stride[0] : g->f;
    g->parts = g->l > 0 && threads > g->l ? (int)((threads + g->l - 1) / g->l) : 1;
    const int sweep = cpu_team(call, g->e, g->e * g->f * 4);
    cpu_shares(call, sweep, g->e, clear, g);
    cpu_tasks(call, cpu_team(call, g->l * g->parts, bytes), g->l * g->parts, add_parts, g);
    if (!direct) cpu_shares(call, sweep, g->e, round_rows, g);
}

static size_t workspace(const trine_call *call) {
    const trine_tensor *dtable = trine_call_given(call, HASH_ENCODE_BACKWARD_DTABLE);
    if (dtable == NULL || dtable->dtype == TRINE_F32) return 0;
    return (size_t)(dtable->shape[0] * dtable->shape[1]) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const trine_hash_encode_backward_args *args = call->args;
    const trine_tensor *t = call->tensor;
    grids g =
        grids_of(call, &t[HASH_ENCODE_BACKWARD_X], &t[HASH_ENCODE_BACKWARD_TABLE], &t[HASH_ENCODE_BACKWARD_OFFSETS],
                 &t[HASH_ENCODE_BACKWARD_DY], args->per_level_scale, args->base_resolution);
    g.smooth = args->interpolation == TRINE_INTERPOLATION_SMOOTHSTEP;
    g.dx = trine_call_given(call, HASH_ENCODE_BACKWARD_DX);
    g.dtable = trine_call_given(call, HASH_ENCODE_BACKWARD_DTABLE);
    const trine_status status = grid_check(&g);
    if (status != TRINE_OK) return status;
    const int64_t tasks = (g.n + GRID_BLOCK - 1) / GRID_BLOCK, bytes = g.n * g.l * g.f * (4 << g.d);
    if (g.dx) cpu_tasks(call, cpu_team(call, tasks, bytes), tasks, slope_blocks, &g);
    if (g.dtable) table(&g, bytes);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, HASH_ENCODE_BACKWARD_DIM_N, VL);
    trine_kernel_edge(edges, HASH_ENCODE_BACKWARD_DIM_N, GRID_BLOCK);
}

CPU_KERNELS(hash_encode_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                      { 0 } };
