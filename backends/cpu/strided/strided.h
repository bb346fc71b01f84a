/* SPDX-License-Identifier: Apache-2.0 */
/* What pack_strided and unpack_strided share on the CPU: runs of bytes, one after the other. */
#ifndef TRINE_CPU_STRIDED_H
#define TRINE_CPU_STRIDED_H

#include <stdlib.h>
#include <string.h>

#include <trine/strided.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/strided/layout.h"

enum {
    STRIDED_ROW = 64,       /* bytes that a run costs besides its own */
    STRIDED_PIECE = 1 << 18 /* bytes of a long run that a task has */
};

typedef struct strided_job {
    layout l;
    int64_t pieces; /* of a run */
    bool pack;
} strided_job;

static inline const char *strided_refuse(const layout *l) { return l->far ? "places beyond 2^61 bytes" : NULL; }

/* A run, or a piece of one, of which a part may be beyond x. */
static inline void strided_part(const layout *l, bool pack, int64_t x, char *packed, int64_t run) {
    const int64_t skip = x < 0 ? (-x < run ? -x : run) : 0, end = l->n - x < run ? l->n - x : run,
                  count = end > skip ? end - skip : 0;
    if (pack) {
        if (skip > 0) memset(packed, 0, (size_t)skip);
        if (count > 0) memcpy(packed + skip, l->x + x + skip, (size_t)count);
        if (run > skip + count) memset(packed + skip + count, 0, (size_t)(run - skip - count));
    } else if (count > 0) {
        memcpy(l->x + x + skip, packed + skip, (size_t)count);
    }
}

/* Runs of a constant length, all within x, along the innermost level. */
INLINE void strided_fixed(char *to, const char *from, int64_t count, int64_t to_step, int64_t from_step, size_t run) {
    for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, run);
}

static inline void strided_line(const strided_job *job, int64_t x, char *packed, int64_t count) {
    const layout *l = &job->l;
    const int64_t step = l->levels > 0 ? l->level[0].x : 0, packed_step = l->levels > 0 ? l->level[0].packed : 0;
    if (!l->inside) {
        for (int64_t i = 0; i < count; i++) strided_part(l, job->pack, x + i * step, packed + i * packed_step, l->run);
        return;
    }
    char *to = job->pack ? packed : l->x + x;
    const char *from = job->pack ? l->x + x : packed;
    const int64_t to_step = job->pack ? packed_step : step, from_step = job->pack ? step : packed_step;
    switch (l->run) {
    case 1: strided_fixed(to, from, count, to_step, from_step, 1); break;
    case 2: strided_fixed(to, from, count, to_step, from_step, 2); break;
    case 4: strided_fixed(to, from, count, to_step, from_step, 4); break;
    case 8: strided_fixed(to, from, count, to_step, from_step, 8); break;
    case 16: strided_fixed(to, from, count, to_step, from_step, 16); break;
    case 32: strided_fixed(to, from, count, to_step, from_step, 32); break;
    default: strided_fixed(to, from, count, to_step, from_step, (size_t)l->run);
    }
}

/* Runs first .. last-1, by lines of the innermost level. */
static inline void strided_rows(const strided_job *job, int64_t first, int64_t last) {
    const layout *l = &job->l;
    const int64_t line = l->levels > 0 ? l->level[0].count : 1;
    while (first < last) {
        int64_t x = l->start, rest = first;
        char *packed = l->packed;
        for (int d = 0; d < l->levels; d++) {
            x += rest % l->level[d].count * l->level[d].x;
            packed += rest % l->level[d].count * l->level[d].packed;
            rest /= l->level[d].count;
        }
        const int64_t left = line - first % line, count = left < last - first ? left : last - first;
        strided_line(job, x, packed, count);
        first += count;
    }
}

static inline void strided_rows_task(const void *context, int64_t first, int64_t last, int thread) {
    (void)thread;
    strided_rows(context, first, last);
}

/* Pieces of runs, where there are few long ones. */
static inline void strided_pieces_task(const void *context, int64_t first, int64_t last, int thread) {
    const strided_job *job = context;
    const layout *l = &job->l;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        int64_t x = l->start, rest = i / job->pieces;
        char *packed = l->packed;
        for (int d = 0; d < l->levels; d++) {
            x += rest % l->level[d].count * l->level[d].x;
            packed += rest % l->level[d].count * l->level[d].packed;
            rest /= l->level[d].count;
        }
        const int64_t at = i % job->pieces * STRIDED_PIECE,
                      run = l->run - at < STRIDED_PIECE ? l->run - at : STRIDED_PIECE;
        strided_part(l, job->pack, x + at, packed + at, run);
    }
}

/* In the order of packed where runs may lie over each other. */
static inline trine_status strided_run(const trine_call *call, const layout *l, bool pack) {
    strided_job job = { .l = *l, .pieces = (l->run + STRIDED_PIECE - 1) / STRIDED_PIECE, .pack = pack };
    if (l->rows == 0 || l->run == 0) return TRINE_OK;
    if (!pack && !l->apart) {
        strided_rows(&job, 0, l->rows);
    } else if (job.pieces > 1) {
        const int64_t tasks = l->rows * job.pieces;
        cpu_shares(call, cpu_team(call, tasks, l->rows * l->run), tasks, strided_pieces_task, &job);
    } else {
        cpu_shares(call, cpu_team(call, l->rows, l->rows * (l->run + STRIDED_ROW)), l->rows, strided_rows_task, &job);
    }
    return TRINE_OK;
}

#endif
