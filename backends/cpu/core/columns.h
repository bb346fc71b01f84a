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

/* A pass over the rows of a matrix that sums some quantities of them by columns. */
enum { COLUMNS_SUMS = 2 };
typedef struct columns_job {
    const void *op;
    /* does row i, and adds its terms to those of the sums that are not NULL; these are readable and writable to the end
     * of a line */
    void (*row)(const void *op, int64_t i, float *const sum[COLUMNS_SUMS]);
    int64_t r, n;
    const trine_tensor *out[COLUMNS_SUMS]; /* NULL: not asked for */
    bool stream;                           /* rows store past the caches */
    /* in the workspace: the sums of every block, and of each thread's current run */
    float *partial[COLUMNS_SUMS], *runs[COLUMNS_SUMS];
} columns_job;

static inline int columns_team(const trine_call *call, int64_t r) {
    return cpu_team(call, columns_blocks(r), row_bytes(call));
}
/* Floats of workspace. */
static inline int64_t columns_workspace(const trine_call *call, int64_t r, int64_t n, int sums) {
    return columns_pitch(n) * sums * (columns_blocks(r) + columns_team(call, r));
}

static inline void columns_block(const columns_job *job, int64_t b, int thread) {
    const int64_t pitch = columns_pitch(job->n), first = b * columns_rows(job->r);
    const int64_t last = first + columns_rows(job->r) < job->r ? first + columns_rows(job->r) : job->r;
    float *run[COLUMNS_SUMS] = { 0 };
    for (int k = 0; k < COLUMNS_SUMS; k++) {
        if (!job->out[k]) continue;
        run[k] = job->runs[k] + thread * pitch;
        memset(job->partial[k] + b * pitch, 0, (size_t)job->n * sizeof(float));
    }
    for (int64_t i = first; i < last; i += COLUMNS_RUN) {
        for (int k = 0; k < COLUMNS_SUMS; k++)
            if (run[k]) memset(run[k], 0, (size_t)pitch * sizeof(float));
        for (int64_t row = i; row < last && row < i + COLUMNS_RUN; row++) job->row(job->op, row, run);
        for (int k = 0; k < COLUMNS_SUMS; k++)
            if (run[k]) columns_add(job->partial[k] + b * pitch, run[k], job->n);
    }
}

static inline void columns_all_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const columns_job *job = context;
    for (int64_t b = first; b < last; b++) columns_block(job, b, thread);
    if (job->stream) stream_fence();
}

/* Columns by COLUMNS_SIDE, from the sums of all blocks. */
static inline void columns_all_sides(const void *context, int64_t first, int64_t last, int thread) {
    const columns_job *job = context;
    (void)thread;
    last = last * COLUMNS_SIDE < job->n ? last * COLUMNS_SIDE : job->n;
    for (int k = 0; k < COLUMNS_SUMS; k++)
        if (job->out[k])
            columns_finish(job->partial[k], columns_blocks(job->r), columns_pitch(job->n), first * COLUMNS_SIDE, last,
                           job->out[k]);
}

static inline void columns_run(const trine_call *call, columns_job *job, float *workspace) {
    const int64_t pitch = columns_pitch(job->n), blocks = columns_blocks(job->r), sides = pitch / COLUMNS_SIDE;
    const int team = columns_team(call, job->r);
    bool any = false;
    for (int k = 0; k < COLUMNS_SUMS; k++) {
        if (!job->out[k]) continue;
        job->partial[k] = workspace;
        job->runs[k] = workspace + blocks * pitch;
        workspace = job->runs[k] + team * pitch;
        any = true;
    }
    cpu_shares(call, team, blocks, columns_all_blocks, job);
    if (any)
        cpu_shares(call, cpu_team(call, sides, blocks * pitch * (int64_t)sizeof(float)), sides, columns_all_sides, job);
}

#endif
