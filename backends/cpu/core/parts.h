/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of several pieces. Each thread has as many whole rows as the others; those that are left are shared by all, a
 * piece being one thread's work.
 *
 * A row is gone through in passes. A pass does every piece by itself, and what comes of the pieces is put together in
 * their order, in float64: so bits follow from the length and the level, and it does not matter who does a piece. */
#ifndef TRINE_CPU_PARTS_H
#define TRINE_CPU_PARTS_H

#include "row.h"

enum {
    PARTS_LEAST = 4,       /* pieces of a row that is shared, */
    PARTS_SAVED = 1 << 19, /* and bytes that a thread is spared by it: less is not worth calling all of them */
    PARTS_ROWS = 8,        /* whole rows of a thread from which on it does not matter that some have one more */
    PARTS_RESULTS = 4,     /* numbers that come of a piece, at most */
    PARTS_NUMBERS = 8
};

/* What is known of a row between its passes. */
typedef struct parts_row {
    int64_t i, length; /* `length` of its elements are gone through: all, unless `begin` says less */
    int pass;          /* 0 at first */
    bool last; /* the pass has no results, and is the last: what was read last is taken first, as caches have it */
    bool done;
    double number[PARTS_NUMBERS]; /* 0 at first */
} parts_row;

typedef struct parts {
    const void *op;
    int64_t rows, n;
    int64_t bytes;        /* that the call touches */
    int64_t held;         /* floats that are kept of a row from pass to pass; 0: none, and `h` is room for a piece */
    bool in_turn, stream; /* rows are of different lengths; are stored past the caches */
    void (*begin)(const void *op, parts_row *row); /* may be NULL */
    void (*piece)(const void *op, const parts_row *row, int64_t at, int count, float *h, double *result);
    void (*add)(const void *op, parts_row *row, const double *result);
    bool (*end)(const void *op, parts_row *row); /* of a pass: is there another? */
} parts;

typedef struct parts_work {
    const parts *job;
    int64_t pieces, whole, shared; /* pieces of a row; rows */
    int team, few;                 /* threads; of whole rows */
    float *held;
    parts_row *row;
    double *result; /* of shared rows, for each piece */
} parts_work;

static inline parts_work parts_work_of(const trine_call *call, const parts *job) {
    parts_work w = { .job = job, .pieces = (job->n + ROW_PIECE - 1) / ROW_PIECE };
    w.team = cpu_team(call, job->rows * w.pieces, job->bytes);
    if (w.pieces >= PARTS_LEAST && job->rows < PARTS_ROWS * (int64_t)w.team) w.shared = job->rows % w.team;
    if (w.shared > 0 && job->bytes / job->rows * (w.team - w.shared) / w.team < PARTS_SAVED) w.shared = 0;
    w.whole = job->rows - w.shared;
    w.few = w.whole < w.team ? (int)w.whole : w.team;
    return w;
}
static inline int64_t parts_held(const parts_work *w) {
    return (w->few > w->shared ? w->few : w->shared) * w->job->held;
}

/* Bytes of workspace: the floats that are held are at its beginning. */
static inline size_t parts_workspace(const trine_call *call, const parts *job) {
    const parts_work w = parts_work_of(call, job);
    return (size_t)parts_held(&w) * sizeof(float) +
           (size_t)w.shared * (sizeof(parts_row) + (size_t)w.pieces * PARTS_RESULTS * sizeof(double));
}

static inline parts_row parts_begin(const parts *job, int64_t i) {
    parts_row row = { .i = i, .length = job->n };
    if (job->begin) job->begin(job->op, &row);
    return row;
}

static inline void parts_whole(const void *context, int64_t first, int64_t last, int thread) {
    const parts_work *w = context;
    const parts *job = w->job;
    row_piece piece;
    for (int64_t i = first; i < last; i++) {
        parts_row row = parts_begin(job, i);
        do {
            const int64_t pieces = (row.length + ROW_PIECE - 1) / ROW_PIECE;
            for (int64_t k = 0; k < pieces; k++) {
                const int64_t at = (row.last ? pieces - 1 - k : k) * ROW_PIECE;
                double result[PARTS_RESULTS];
                /* cppcheck-suppress legacyUninitvar ; its address alone */
                float *h = job->held > 0 ? w->held + thread * job->held + at : piece;
                job->piece(job->op, &row, at, row_count(row.length, at), h, result);
                if (!row.last) job->add(job->op, &row, result);
            }
        } while (job->end(job->op, &row));
    }
    if (job->stream) stream_fence();
}

static inline void parts_pieces(const void *context, int64_t first, int64_t last, int thread) {
    const parts_work *w = context;
    const parts *job = w->job;
    row_piece piece;
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const parts_row *row = &w->row[k / w->pieces];
        const int64_t at = k % w->pieces * ROW_PIECE;
        if (row->done || at >= row->length) continue;
        /* cppcheck-suppress legacyUninitvar ; its address alone */
        float *h = job->held > 0 ? w->held + k / w->pieces * job->held + at : piece;
        job->piece(job->op, row, at, row_count(row->length, at), h, w->result + k * PARTS_RESULTS);
    }
    if (job->stream) stream_fence();
}

/* Puts a pass's results together; false if no row has another. */
static inline bool parts_ended(const parts_work *w) {
    bool more = false;
    for (int64_t k = 0; k < w->shared; k++) {
        parts_row *row = &w->row[k];
        if (row->done) continue;
        for (int64_t at = 0; at < row->length && !row->last; at += ROW_PIECE)
            w->job->add(w->job->op, row, w->result + (k * w->pieces + at / ROW_PIECE) * PARTS_RESULTS);
        row->done = !w->job->end(w->job->op, row);
        more |= !row->done;
    }
    return !more;
}

static inline void parts_run(const trine_call *call, const parts *job, void *workspace) {
    parts_work w = parts_work_of(call, job);
    w.held = workspace;
    cpu_run(call, w.few, w.whole, job->in_turn, parts_whole, &w);
    if (w.shared == 0) return;
    w.result = (double *)(void *)((float *)workspace + parts_held(&w));
    w.row = (parts_row *)(void *)(w.result + w.shared * w.pieces * PARTS_RESULTS);
    for (int64_t k = 0; k < w.shared; k++) w.row[k] = parts_begin(job, w.whole + k);
    do cpu_shares(call, w.team, w.shared * w.pieces, parts_pieces, &w);
    while (!parts_ended(&w));
}

/* Where the second and the third thread share a row, if each of its elements stands for so many bytes. */
static inline void parts_edges(const trine_call *call, trine_kernel_edges *edges, int64_t bytes) {
    trine_kernel_edge(edges, row_along(call), (PARTS_LEAST - 1) * ROW_PIECE);
    trine_kernel_edge(edges, row_along(call), PARTS_SAVED / bytes / 2 * 3);
    trine_kernel_edge(edges, row_along(call), PARTS_SAVED / bytes * 2);
}

/* Of an op that touches the elements of its tensors once. */
static inline void parts_row_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t elements = call->dim[row_down(call)] * call->dim[row_along(call)];
    row_edges(call, edges);
    if (elements > 0 && row_bytes(call) >= elements) parts_edges(call, edges, row_bytes(call) / elements);
}

#endif
