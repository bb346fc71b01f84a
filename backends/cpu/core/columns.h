/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of a matrix, the same for any number of threads: the rows fall into blocks by their number alone;
 * a block is one thread's work and has a vector of partial sums of its own in the workspace; the blocks are added in
 * order at the end. Within a block, runs of 64 rows are summed first: no term passes through more than 64 + r/8192 +
 * 128 additions. */
#ifndef TRINE_CPU_COLUMNS_H
#define TRINE_CPU_COLUMNS_H

#include "row.h"

enum { COLUMNS_RUN = 64, COLUMNS_BLOCKS = 128, COLUMNS_LEAST = 16, COLUMNS_SIDE = 16, COLUMNS_PIECE = 1024 };

/* Rows of a block, and blocks. */
INLINE int64_t columns_rows(int64_t r) {
    const int64_t rows = (r + COLUMNS_BLOCKS - 1) / COLUMNS_BLOCKS;
    return rows > COLUMNS_LEAST ? rows : COLUMNS_LEAST;
}
INLINE int64_t columns_blocks(int64_t r) { return (r + columns_rows(r) - 1) / columns_rows(r); }

/* Floats between two vectors of partial sums: whole cache lines. */
INLINE int64_t columns_pitch(int64_t n) { return cpu_round_up(n, COLUMNS_SIDE); }

/* Of a sum over one dimension for each element of another: blocks of one run, of several, of more rows than the least;
 * and the sums of blocks. */
static inline void columns_edges(trine_kernel_edges *edges, int over, int along) {
    trine_kernel_edge(edges, over, COLUMNS_LEAST);
    trine_kernel_edge(edges, over, (int64_t)COLUMNS_LEAST * COLUMNS_BLOCKS);
    trine_kernel_edge(edges, over, (int64_t)COLUMNS_RUN * COLUMNS_BLOCKS);
    trine_kernel_edge(edges, along, COLUMNS_SIDE);
    trine_kernel_edge(edges, along, COLUMNS_PIECE);
}

/* total += part, n floats. */
static inline void columns_add(float *restrict total, const float *restrict part, int64_t n) {
    for (int64_t j = 0; j < n; j++) total[j] += part[j];
}

/* Elements first .. last-1 of the sum of `count` vectors, rounded to the type of `out`. By short pieces, since vectors
 * a power of two apart share a cache set. */
static inline void columns_finish(const float *partial, int64_t count, int64_t pitch, int64_t first, int64_t last,
                                  const trine_tensor *out) {
    float sum[COLUMNS_PIECE] __attribute__((aligned(64)));
    for (int64_t j = first; j < last; j += COLUMNS_PIECE) {
        const int length = last - j < COLUMNS_PIECE ? (int)(last - j) : COLUMNS_PIECE;
        memset(sum, 0, sizeof sum);
        for (int64_t b = 0; b < count; b++) columns_add(sum, partial + b * pitch + j, length);
        row_store(sum, row_sink_at(out->data, out->dtype, j, false), length, out->dtype);
    }
}

#endif
