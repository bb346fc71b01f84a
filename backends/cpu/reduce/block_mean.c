/* SPDX-License-Identifier: Apache-2.0 */
/* block_mean on the CPU: the rows of a block are added up in their order, some columns at a time.
 *
 * The work is a list of pieces, a block by COLUMNS columns each, of which threads take shares; no sum is split. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/block_mean.h"

enum { COLUMNS = 512 };

typedef struct means {
    const trine_tensor *x, *y;
    int64_t s, n, blocks, size, pieces; /* of a block */
} means;

/* sum[i] += the columns of a row, and what is written of the sums. */
INLINE void add_columns(float *sum, const char *from, int n, trine_dtype T) {
    int i = 0;
    for (; i + VL <= n; i += VL) vstore(sum, TRINE_F32, i, vload(sum, TRINE_F32, i) + vload(from, T, i));
    if (i < n) vstoren(sum, TRINE_F32, i, n - i, vloadn(sum, TRINE_F32, i, n - i, 0) + vloadn(from, T, i, n - i, 0));
}
INLINE void write_columns(char *to, const float *sum, int n, float count, trine_dtype T) {
    int i = 0;
    for (; i + VL <= n; i += VL) vstore(to, T, i, vload(sum, TRINE_F32, i) / count);
    if (i < n) vstoren(to, T, i, n - i, vloadn(sum, TRINE_F32, i, n - i, 0) / count);
}

static char *place(const trine_tensor *t, int64_t batch, int64_t row, int64_t column) {
    const int64_t at = (t->rank == 3 ? batch * t->stride[0] : 0) + row * t->stride[t->rank - 2] + column;
    return (char *)t->data + at * (int64_t)vsize(t->dtype);
}

static void mean_pieces(const void *context, int64_t begin, int64_t end, int thread) {
    const means *m = context;
    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        const int64_t block = k / m->pieces % m->blocks, batch = k / m->pieces / m->blocks,
                      column = k % m->pieces * COLUMNS;
        const int n = m->n - column < COLUMNS ? (int)(m->n - column) : COLUMNS;
        const int64_t first = block <= m->s / m->size ? block * m->size : m->s,
                      last = m->size < m->s - first ? first + m->size : m->s;
        float sum[COLUMNS] = { 0 };
        for (int64_t row = first; row < last; row++)
            FOR_TYPE(m->x->dtype, add_columns, sum, place(m->x, batch, row, column), n);
        FOR_TYPE(m->y->dtype, write_columns, place(m->y, batch, block, column), sum, n,
                 last > first ? (float)(last - first) : 1);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_block_mean_args *args = call->args;
    means m = { .x = &call->tensor[BLOCK_MEAN_X],
                .y = &call->tensor[BLOCK_MEAN_Y],
                .s = call->dim[BLOCK_MEAN_DIM_S],
                .n = call->dim[BLOCK_MEAN_DIM_N],
                .blocks = call->dim[BLOCK_MEAN_DIM_BLOCKS],
                .size = args->size };
    m.pieces = (m.n + COLUMNS - 1) / COLUMNS;
    const int64_t b = call->dim[BLOCK_MEAN_DIM_B], count = b * m.blocks * m.pieces;
    const int64_t bytes = b * (m.s * (int64_t)vsize(m.x->dtype) + m.blocks * (int64_t)vsize(m.y->dtype)) * m.n;
    cpu_shares(call, cpu_team(call, count, bytes), count, mean_pieces, &m);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const trine_block_mean_args *args = call->args;
    trine_kernel_edge(edges, BLOCK_MEAN_DIM_N, VL);
    trine_kernel_edge(edges, BLOCK_MEAN_DIM_N, COLUMNS);
    trine_kernel_edge(edges, BLOCK_MEAN_DIM_S, args->size);
}

CPU_KERNELS(block_mean) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
