/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_sparse on the CPU: a task has some columns of a few rows of y, whose sums stay in the first-level cache, and
 * meets the rows of w in their order; each row of y takes those that it names by fours, which are then still near. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/matvec_sparse.h"

enum {
    SUMS = 4096, /* of a task, */
    TILE = 256,  /* columns of which it has at least, */
    ROWS = 16,   /* and rows of y at most */
    FOUR = 4     /* rows of w that are added to a sum between loading and storing it */
};

/* Rows of y and columns of a task: the order of a sum does not depend on them. Of few rows as many columns as leave
 * each thread one task, since w is read by longer pieces so. */
typedef struct tiling {
    int64_t rows, columns, across;
} tiling;

/* Rows of w that a row of y has yet to take. */
typedef struct named {
    const char *row[FOUR];
    float factor[FOUR];
    int count;
} named;

/* One after the other. */
INLINE void add(float *sum, const named *a, int terms, int64_t width, trine_dtype T) {
    for (int64_t l = 0; l < width; l += VL) {
        const int n = width - l < VL ? (int)(width - l) : VL;
        vf s = *(vf *)(sum + l);
        for (int t = 0; t < terms; t++)
            s = vfma(vset(a->factor[t]), n < VL ? vloadn(a->row[t], T, l, n, 0) : vload(a->row[t], T, l), s);
        *(vf *)(sum + l) = s;
    }
}

INLINE void *row_of(const trine_tensor *t, int64_t i, int64_t at) {
    return (char *)t->data + (i * t->stride[0] + at) * (int64_t)vsize(t->dtype);
}

INLINE void tile(const trine_call *call, int64_t row, int64_t rows, int64_t at, int64_t width, trine_dtype T) {
    const trine_tensor *h = &call->tensor[MATVEC_SPARSE_H], *w = &call->tensor[MATVEC_SPARSE_W],
                       *y = &call->tensor[MATVEC_SPARSE_Y];
    const int64_t n = call->dim[MATVEC_SPARSE_DIM_N], pitch = SUMS / rows / VL * VL;
    float sum[SUMS] __attribute__((aligned(64)));
    memset(sum, 0, sizeof sum);
    named next[ROWS] = { { .count = 0 } };
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < rows; i++) {
            const float factor = sload(row_of(h, row + i, 0), T, j);
            named *const a = &next[i];
            if (factor == 0) continue;
            a->row[a->count] = row_of(w, j, at), a->factor[a->count++] = factor;
            if (a->count < FOUR) continue;
            add(sum + i * pitch, a, FOUR, width, T);
            a->count = 0;
        }
    for (int64_t i = 0; i < rows; i++) add(sum + i * pitch, &next[i], next[i].count, width, T);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t l = 0; l < width; l += VL) {
            void *const to = row_of(y, row + i, at);
            const vf total = *(vf *)(sum + i * pitch + l);
            if (width - l < VL)
                vstoren(to, T, l, (int)(width - l), total);
            else
                vstore(to, T, l, total);
        }
}

static int64_t column_bytes(const trine_call *call) {
    return call->dim[MATVEC_SPARSE_DIM_N] * (int64_t)vsize(call->type[MATVEC_SPARSE_TYPE_T]);
}

static tiling tiling_of(const trine_call *call) {
    const int64_t r = call->dim[MATVEC_SPARSE_DIM_R], k = call->dim[MATVEC_SPARSE_DIM_K];
    const int64_t rows = r < ROWS ? r : ROWS, most = SUMS / rows / TILE * TILE,
                  team = cpu_team(call, (k + TILE - 1) / TILE, r * k * column_bytes(call)),
                  share = cpu_round_up((k + team - 1) / team, TILE), columns = share < most ? share : most;
    return (tiling){ rows, columns, (k + columns - 1) / columns };
}

INLINE void tiles(const trine_call *call, int64_t first, int64_t last, trine_dtype T) {
    const tiling t = tiling_of(call);
    for (int64_t task = first; task < last; task++) {
        const int64_t row = task / t.across * t.rows, below = call->dim[MATVEC_SPARSE_DIM_R] - row,
                      at = task % t.across * t.columns, left = call->dim[MATVEC_SPARSE_DIM_K] - at;
        tile(call, row, below < t.rows ? below : t.rows, at, left < t.columns ? left : t.columns, T);
    }
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    (void)thread;
    FOR_TYPE(call->type[MATVEC_SPARSE_TYPE_T], tiles, call, first, last);
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[MATVEC_SPARSE_DIM_R], k = call->dim[MATVEC_SPARSE_DIM_K];
    const tiling t = tiling_of(call);
    const int64_t count = (r + t.rows - 1) / t.rows * t.across;
    cpu_tasks(call, cpu_team(call, count, r * k * column_bytes(call)), count, tasks, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_K, VL);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_K, TILE);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_R, ROWS);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_N, FOUR);
    cpu_team_edge(edges, MATVEC_SPARSE_DIM_K, column_bytes(call) * call->dim[MATVEC_SPARSE_DIM_R]);
}

CPU_KERNELS(matvec_sparse) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
