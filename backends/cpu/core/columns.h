/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of a matrix, the same for any number of threads: the rows fall into blocks by their number alone;
 * a block is one thread's work and has a vector of partial sums of its own in the workspace; the blocks are added in
 * order at the end. Within a block, runs of 64 rows are summed first: no term passes through more than 64 + r/8192 +
 * 128 additions. Where the blocks are too few for the threads and rows are long, a piece of a block's columns is one
 * thread's work: a column's terms are added in the same order. */
#ifndef TRINE_CPU_COLUMNS_H
#define TRINE_CPU_COLUMNS_H

#include "parts.h"

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
    trine_kernel_edge(edges, along, (PARTS_LEAST - 1) * ROW_PIECE);
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

/* A pass over the rows of a matrix that sums some quantities of them by columns: a sum that is not NULL is readable and
 * writable to the end of a line. */
enum { COLUMNS_SUMS = 2 };
typedef struct columns_job {
    const void *op;
    /* does row i of one piece, and adds its terms to the sums; NULL: `piece` does */
    void (*row)(const void *op, int64_t i, float *const sum[COLUMNS_SUMS]);
    /* of a row of several pieces, what `piece` must know of all of it: numbers that are added; NULL: nothing */
    void (*measure)(const void *op, int64_t i, int64_t at, int count, double *result);
    /* does a piece, the sums being those of its columns */
    void (*piece)(const void *op, int64_t i, int64_t at, int count, const double *total,
                  float *const sum[COLUMNS_SUMS]);
    int64_t r, n;
    const trine_tensor *out[COLUMNS_SUMS]; /* NULL: not asked for */
    bool stream;                           /* rows store past the caches */
    /* in the workspace: the sums of every block, and of each thread's current run; of pieces, what was measured */
    float *partial[COLUMNS_SUMS], *runs[COLUMNS_SUMS];
    double *measured, *total;
} columns_job;

static inline int64_t columns_pieces(int64_t n) { return (n + ROW_PIECE - 1) / ROW_PIECE; }
static inline int columns_team(const trine_call *call, int64_t r) {
    return cpu_team(call, columns_blocks(r), row_bytes(call));
}
/* The team for pieces of blocks; 1: rows are whole. */
static inline int columns_shared(const trine_call *call, int64_t r, int64_t n) {
    const int64_t blocks = columns_blocks(r), pieces = columns_pieces(n);
    const int team = cpu_team(call, blocks * pieces, row_bytes(call));
    return pieces < PARTS_LEAST || blocks % team == 0 || blocks > PARTS_ROWS / 2 * (int64_t)team ? 1 : team;
}
/* Bytes of workspace. */
static inline size_t columns_workspace(const trine_call *call, int64_t r, int64_t n, int sums) {
    const bool shared = columns_shared(call, r, n) > 1;
    const int64_t vectors = columns_blocks(r) + (shared ? 0 : columns_team(call, r)),
                  results = shared ? r * (columns_pieces(n) + 1) * PARTS_RESULTS : 0;
    return (size_t)(columns_pitch(n) * sums * vectors) * sizeof(float) + (size_t)results * sizeof(double);
}

/* ------------------------------------------------------------------------------------------------------ whole rows */

static inline void columns_long_row(const columns_job *job, int64_t i, float *const run[COLUMNS_SUMS]) {
    double total[PARTS_RESULTS] = { 0 }, result[PARTS_RESULTS] = { 0 };
    for (int64_t at = 0; job->measure && at < job->n; at += ROW_PIECE) {
        job->measure(job->op, i, at, row_count(job->n, at), result);
        for (int k = 0; k < PARTS_RESULTS; k++) total[k] += result[k];
    }
    for (int64_t piece = columns_pieces(job->n) - 1; piece >= 0; piece--) { /* what was read last is in the cache */
        const int64_t at = piece * ROW_PIECE;
        float *sum[COLUMNS_SUMS] = { 0 };
        for (int k = 0; k < COLUMNS_SUMS; k++) sum[k] = run[k] ? run[k] + at : NULL;
        job->piece(job->op, i, at, row_count(job->n, at), total, sum);
    }
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
        for (int64_t row = i; row < last && row < i + COLUMNS_RUN; row++) {
            if (job->n <= ROW_PIECE && job->row)
                job->row(job->op, row, run);
            else
                columns_long_row(job, row, run);
        }
        for (int k = 0; k < COLUMNS_SUMS; k++)
            if (run[k]) columns_add(job->partial[k] + b * pitch, run[k], job->n);
    }
}

static inline void columns_all_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const columns_job *job = context;
    for (int64_t b = first; b < last; b++) columns_block(job, b, thread);
    if (job->stream) stream_fence();
}

/* ------------------------------------------------------------------------------------------------ pieces of blocks */

static inline void columns_all_measures(const void *context, int64_t first, int64_t last, int thread) {
    const columns_job *job = context;
    const int64_t pieces = columns_pieces(job->n);
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        double *result = job->measured + k * PARTS_RESULTS;
        for (int j = 0; j < PARTS_RESULTS; j++) result[j] = 0;
        job->measure(job->op, k / pieces, k % pieces * ROW_PIECE, row_count(job->n, k % pieces * ROW_PIECE), result);
    }
}

static inline void columns_total(const columns_job *job) {
    const int64_t pieces = columns_pieces(job->n);
    for (int64_t i = 0; i < job->r; i++) {
        double *total = job->total + i * PARTS_RESULTS;
        for (int j = 0; j < PARTS_RESULTS; j++) total[j] = 0;
        for (int64_t k = 0; k < pieces; k++)
            for (int j = 0; j < PARTS_RESULTS; j++) total[j] += job->measured[(i * pieces + k) * PARTS_RESULTS + j];
    }
}

static inline void columns_all_pieces(const void *context, int64_t first, int64_t last, int thread) {
    const columns_job *job = context;
    const int64_t pitch = columns_pitch(job->n), pieces = columns_pieces(job->n), rows = columns_rows(job->r);
    row_piece room[COLUMNS_SUMS];
    (void)thread;
    for (int64_t item = first; item < last; item++) {
        const int64_t b = item / pieces, at = item % pieces * ROW_PIECE, end = (b + 1) * rows;
        const int count = row_count(job->n, at);
        float *run[COLUMNS_SUMS] = { 0 };
        for (int k = 0; k < COLUMNS_SUMS; k++) {
            if (!job->out[k]) continue;
            run[k] = room[k];
            memset(job->partial[k] + b * pitch + at, 0, (size_t)count * sizeof(float));
        }
        for (int64_t i = b * rows; i < end && i < job->r; i += COLUMNS_RUN) {
            for (int k = 0; k < COLUMNS_SUMS; k++)
                if (run[k]) memset(run[k], 0, sizeof room[k]);
            for (int64_t row = i; row < end && row < job->r && row < i + COLUMNS_RUN; row++)
                job->piece(job->op, row, at, count, job->total + row * PARTS_RESULTS, run);
            for (int k = 0; k < COLUMNS_SUMS; k++)
                if (run[k]) columns_add(job->partial[k] + b * pitch + at, run[k], count);
        }
    }
    if (job->stream) stream_fence();
}

/* ------------------------------------------------------------------------------------------------------------ both */

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

static inline void columns_run(const trine_call *call, columns_job *job, void *workspace) {
    const int64_t pitch = columns_pitch(job->n), blocks = columns_blocks(job->r), sides = pitch / COLUMNS_SIDE,
                  pieces = columns_pieces(job->n);
    const int team = columns_team(call, job->r), shared = columns_shared(call, job->r, job->n);
    float *memory = workspace;
    bool any = false;
    for (int k = 0; k < COLUMNS_SUMS; k++) {
        if (!job->out[k]) continue;
        job->partial[k] = memory;
        memory += blocks * pitch;
        any = true;
        if (shared > 1) continue;
        job->runs[k] = memory;
        memory += team * pitch;
    }
    if (shared > 1) {
        job->total = (double *)(void *)memory;
        job->measured = job->total + job->r * PARTS_RESULTS;
        if (job->measure) cpu_shares(call, shared, job->r * pieces, columns_all_measures, job);
        if (job->measure) columns_total(job);
        cpu_shares(call, shared, blocks * pieces, columns_all_pieces, job);
    } else {
        cpu_shares(call, team, blocks, columns_all_blocks, job);
    }
    if (any)
        cpu_shares(call, cpu_team(call, sides, blocks * pitch * (int64_t)sizeof(float)), sides, columns_all_sides, job);
}

#endif
