/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_sparse on the CPU: a task has some columns of a few rows of y, whose sums stay in the first-level cache, and
 * meets the rows of w in their order: of a block of them, which stays there too, those that a row of h names. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/matvec_sparse.h"

enum {
    TILE = 256, /* columns of a task */
    ROWS = 16,  /* of y, */
    BLOCK = 32, /* and of w at a time */
    FOUR = 4    /* that are added to a sum between loading and storing it */
};

typedef float sums[TILE] __attribute__((aligned(64)));

/* Rows of a block that a row of h names. */
typedef struct named {
    const char *row[BLOCK];
    float factor[BLOCK];
    int count;
} named;

/* Adds `terms` of them, one after the other, from number `first` on. */
INLINE void add(float *sum, const named *a, int first, int terms, int64_t width, trine_dtype T) {
    for (int64_t l = 0; l < width; l += VL) {
        const int n = width - l < VL ? (int)(width - l) : VL;
        vf s = *(vf *)(sum + l);
        for (int i = 0; i < terms; i++) {
            const char *const row = a->row[first + i];
            s = vfma(vset(a->factor[first + i]), n < VL ? vloadn(row, T, l, n, 0) : vload(row, T, l), s);
        }
        *(vf *)(sum + l) = s;
    }
}

INLINE void add_all(float *sum, const named *a, int64_t width, trine_dtype T) {
    int i = 0;
    for (; i + FOUR <= a->count; i += FOUR) add(sum, a, i, FOUR, width, T);
    for (; i < a->count; i++) add(sum, a, i, 1, width, T);
}

INLINE void *row_of(const trine_tensor *t, int64_t i, int64_t at) {
    return (char *)t->data + (i * t->stride[0] + at) * (int64_t)vsize(t->dtype);
}

INLINE void tile(const trine_call *call, int64_t row, int64_t at, trine_dtype T) {
    const trine_tensor *h = &call->tensor[MATVEC_SPARSE_H], *w = &call->tensor[MATVEC_SPARSE_W],
                       *y = &call->tensor[MATVEC_SPARSE_Y];
    const int64_t n = call->dim[MATVEC_SPARSE_DIM_N], left = call->dim[MATVEC_SPARSE_DIM_K] - at,
                  below = call->dim[MATVEC_SPARSE_DIM_R] - row, width = left < TILE ? left : TILE,
                  rows = below < ROWS ? below : ROWS;
    sums sum[ROWS];
    memset(sum, 0, (size_t)rows * sizeof sum[0]);
    for (int64_t j = 0; j < n; j += BLOCK)
        for (int64_t i = 0; i < rows; i++) {
            named a = { .count = 0 };
            for (int64_t b = j; b < n && b < j + BLOCK; b++) {
                const float factor = sload(row_of(h, row + i, 0), T, b);
                if (factor != 0) a.row[a.count] = row_of(w, b, at), a.factor[a.count++] = factor;
            }
            add_all(sum[i], &a, width, T);
        }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t l = 0; l < width; l += VL) {
            void *const to = row_of(y, row + i, at);
            if (width - l < VL)
                vstoren(to, T, l, (int)(width - l), *(vf *)(sum[i] + l));
            else
                vstore(to, T, l, *(vf *)(sum[i] + l));
        }
}

INLINE int64_t tiles_of(const trine_call *call) { return (call->dim[MATVEC_SPARSE_DIM_K] + TILE - 1) / TILE; }

INLINE void tiles(const trine_call *call, int64_t first, int64_t last, trine_dtype T) {
    const int64_t across = tiles_of(call);
    for (int64_t task = first; task < last; task++) tile(call, task / across * ROWS, task % across * TILE, T);
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    (void)thread;
    FOR_TYPE(call->type[MATVEC_SPARSE_TYPE_T], tiles, call, first, last);
}

static int64_t column_bytes(const trine_call *call) {
    return call->dim[MATVEC_SPARSE_DIM_N] * (int64_t)vsize(call->type[MATVEC_SPARSE_TYPE_T]);
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[MATVEC_SPARSE_DIM_R], k = call->dim[MATVEC_SPARSE_DIM_K],
                  count = (r + ROWS - 1) / ROWS * tiles_of(call);
    cpu_tasks(call, cpu_team(call, count, r * k * column_bytes(call)), count, tasks, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_K, VL);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_K, TILE);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_R, ROWS);
    trine_kernel_edge(edges, MATVEC_SPARSE_DIM_N, BLOCK);
    cpu_team_edge(edges, MATVEC_SPARSE_DIM_K, column_bytes(call) * call->dim[MATVEC_SPARSE_DIM_R]);
}

CPU_KERNELS(matvec_sparse) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
