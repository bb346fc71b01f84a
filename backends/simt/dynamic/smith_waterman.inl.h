/* SPDX-License-Identifier: Apache-2.0 */
/* smith_waterman on devices: a block has a pair of sequences, and goes from one diagonal of the matrix to the next,
 * whose rows its threads share. The diagonals before lie in its workspace.
 *
 * NOTES. Floor: some ten integer operations for each element of the matrix; short diagonals leave threads without a
 * row. */
#include "dynamic.h"
#include "backends/simt/core/simt.h"
#include "spec/dynamic/smith_waterman.h"

enum { ALIGN_LOCAL, ALIGN_GLOBAL, ALIGN_WITHIN };

DEVICE int32_t plus(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
DEVICE int32_t larger_of(int32_t a, int32_t b) { return a > b ? a : b; }

DEVICE int64_t length_of(const int64_t *lengths, int64_t at, int64_t most) {
    if (!lengths) return most;
    const int64_t length = lengths[at];
    return length < 0 ? 0 : length > most ? most : length;
}

DEVICE int32_t gap_of(const smith_waterman_params &p, int64_t letters) {
    return letters == 0 ? 0 : plus(p.open, (int32_t)((uint32_t)(letters - 1) * (uint32_t)p.extend));
}

struct alignment_end {
    int32_t best;
    int64_t i, j;
};

/* Larger, or as large and sooner. */
DEVICE bool beats(const alignment_end &x, const alignment_end &y) {
    return x.best > y.best || (x.best == y.best && (x.j < y.j || (x.j == y.j && x.i < y.i)));
}

/* The diagonal t of one pair. `own`: the best of the thread's rows so far, of local alignments. */
DEVICE void align_diagonal(const smith_waterman_params &p, const uint8_t *query, const uint8_t *target, int64_t m,
                           int64_t n, int64_t t, int32_t *lines, alignment_end &own) {
    int32_t *const now = lines + (t + 1) % 3 * p.line, *const f = lines + (3 + t % 2) * p.line,
                   *const e = lines + 5 * p.line;
    const int32_t *const before = lines + t % 3 * p.line, *const before_that = lines + (t + 2) % 3 * p.line,
                         *const f_before = lines + (3 + (t + 1) % 2) * p.line;
    const int64_t first = t - n > 1 ? t - n : 1, last = t - 1 < m ? t - 1 : m;
    const bool local = p.alignment == ALIGN_LOCAL;
    for (int64_t i = first + thread_index(); i <= last; i += SIMT_THREADS) {
        const int letter = query[i - 1], other = target[t - i - 1];
        const int32_t score =
            letter < p.s && other < p.s ? p.scores[letter * p.scores_row + other] : (int32_t)SMITH_WATERMAN_WORST;
        const int32_t e_now = larger_of(plus(before[i], p.open), plus(e[i], p.extend)),
                      f_now = larger_of(plus(before[i - 1], p.open), plus(f_before[i - 1], p.extend));
        int32_t h = larger_of(larger_of(plus(before_that[i - 1], score), e_now), f_now);
        if (local) {
            h = larger_of(h, 0);
            const alignment_end here = { h, i, t - i };
            if (h > 0 && beats(here, own)) own = here;
        }
        now[i] = h;
        e[i] = e_now;
        f[i] = f_now;
    }
    if (thread_index() == 0) {
        if (t <= n) {
            now[0] = p.alignment == ALIGN_GLOBAL ? gap_of(p, t) : 0;
            f[0] = SMITH_WATERMAN_NONE;
        }
        if (t <= m) {
            now[t] = local ? 0 : gap_of(p, t);
            e[t] = SMITH_WATERMAN_NONE;
        }
    }
    sync_block();
    if (!local && t >= m) {
        const alignment_end end = { now[m], m, t - m };
        const bool better = p.alignment == ALIGN_GLOBAL ? t == m + n : end.best > own.best;
        own.best = better ? end.best : own.best;
        own.j = better ? end.j : own.j;
    }
}

ENTRY(smith_waterman, SIMT_THREADS, smith_waterman_params) {
    SHARED int32_t best[SIMT_THREADS];
    SHARED int64_t rows[SIMT_THREADS], columns[SIMT_THREADS];
    const int thread = thread_index();
    int32_t *const lines = p.lines + (int64_t)block_index() * SMITH_WATERMAN_LINES * p.line;
    for (int64_t b = block_index(); b < p.b; b += SMITH_WATERMAN_BLOCKS) {
        const int64_t m = length_of(p.queries, b * p.queries_step, p.m),
                      n = length_of(p.targets, b * p.targets_step, p.n);
        const uint8_t *const query = p.query + b * p.query_row, *const target = p.target + b * p.target_row;
        const bool local = p.alignment == ALIGN_LOCAL;
        alignment_end own = { local ? 0 : gap_of(p, m), local ? 0 : m, 0 };
        if (thread == 0) lines[p.line] = 0; /* h[0,0] */
        sync_block();
        for (int64_t t = 1; t <= m + n; t++) align_diagonal(p, query, target, m, n, t, lines, own);
        best[thread] = own.best;
        rows[thread] = own.i;
        columns[thread] = own.j;
        sync_block();
        if (thread == 0) {
            for (int other = 1; other < SIMT_THREADS; other++) {
                const alignment_end end = { best[other], rows[other], columns[other] };
                if (local && end.best > 0 && beats(end, own)) own = end;
            }
            p.best[b * p.best_step] = own.best;
            if (p.ends) {
                p.ends[b * p.ends_row] = own.i;
                p.ends[b * p.ends_row + p.ends_step] = own.j;
            }
        }
        sync_block();
    }
}
