/* SPDX-License-Identifier: Apache-2.0 */
/* smith_waterman on devices: 32 threads go through a stripe of a pair's matrix from column to column, each with some
 * rows in registers and one column behind the thread before, from which it has the element above its rows. Stripe after
 * stripe goes to the next team, which is two lots of columns behind; what the last row of a stripe has lies in the
 * workspace.
 *
 * NOTES. Floor: some eight integer operations and a score from shared memory for each element of the matrix; sm_90 has
 * the sums and their maxima in one instruction each (VIADDMNMX). */
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

enum { ALIGN_LINE = ALIGN_LETTERS + 1 };

/* The scores, of letters that the table has not the worst. */
template <bool HELD> struct align_scores {
    const int32_t *table;
    int64_t row, letters;

    DEVICE int line_of(int letter) const {
        return HELD ? (letter < letters ? letter : (int)letters) * ALIGN_LINE : letter;
    }
    DEVICE int column_of(int letter) const { return HELD && letter >= letters ? (int)letters : letter; }
    DEVICE int32_t of(int line, int column) const {
        if (HELD) return table[line + column];
        return line < letters && column < letters ? table[line * row + column] : (int32_t)SMITH_WATERMAN_WORST;
    }
};
template <int THREADS> DEVICE void align_hold(int32_t *table, const smith_waterman_params &p) {
    for (int at = thread_index(); at < ALIGN_LINE * ALIGN_LINE; at += THREADS) {
        const int line = at / ALIGN_LINE, column = at % ALIGN_LINE;
        table[at] = line < p.s && column < p.s ? p.scores[line * p.scores_row + column] : (int32_t)SMITH_WATERMAN_WORST;
    }
}

/* A pair, and the columns of h and f in its workspace. */
struct align_pair {
    const uint8_t *query, *target;
    int64_t m, n;
    int32_t *h, *f;
};

/* A thread's rows of a stripe: h and e of the column before, and of the element above them; h and f of the last. */
template <int ROWS> struct align_rows {
    int64_t first; /* rows before them */
    int line[ROWS];
    uint32_t last[ROWS]; /* all bits of the row that is the pair's last, none of others */
    int32_t h[ROWS], e[ROWS], above, lowest_h, lowest_f;
    bool ends; /* is one of them the last? */

    template <bool HELD>
    DEVICE void begin(const smith_waterman_params &p, const align_pair &pair, const align_scores<HELD> &scores,
                      int64_t stripe) {
        first = (stripe * ALIGN_TEAM + thread_index() % ALIGN_TEAM) * ROWS;
        ends = first < pair.m && pair.m <= first + ROWS;
        const bool local = p.alignment == ALIGN_LOCAL;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t i = first + r + 1;
            line[r] = scores.line_of(i <= pair.m ? pair.query[i - 1] : INT32_MAX);
            last[r] = i == pair.m ? 0xffffffffu : 0;
            h[r] = local ? 0 : gap_of(p, i);
            e[r] = SMITH_WATERMAN_NONE;
        }
        above = local ? 0 : gap_of(p, first);
        lowest_h = lowest_f = 0;
    }
};

/* Column j of a thread's rows; h_above and f_above are of the element above them. Rows behind the last are no better
 * than one before them. */
template <bool LOCAL, int ROWS, bool HELD>
DEVICE void align_column(align_rows<ROWS> &x, const smith_waterman_params &p, const align_pair &pair,
                         const align_scores<HELD> &scores, int column, int64_t j, int32_t h_above, int32_t f_above,
                         alignment_end &own) {
    int32_t diagonal = x.above, above = h_above, f = f_above, most = 0;
    uint32_t end = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        x.e[r] = larger_of(plus(x.h[r], p.open), plus(x.e[r], p.extend));
        const int32_t along = larger_of(plus(diagonal, scores.of(x.line[r], column)), x.e[r]);
        f = larger_of(plus(above, p.open), plus(f, p.extend));
        int32_t h = larger_of(along, f);
        if (LOCAL) h = larger_of(h, 0), most = larger_of(most, h);
        if (!LOCAL) end |= (uint32_t)h & x.last[r];
        diagonal = x.h[r];
        x.h[r] = above = h;
    }
    x.above = h_above, x.lowest_h = above, x.lowest_f = f;
    if (LOCAL && most > own.best) {
        own.best = most, own.j = j;
#pragma unroll
        for (int r = ROWS - 1; r >= 0; r--)
            if (x.h[r] == most) own.i = x.first + r + 1;
    }
    if (!LOCAL && x.ends && (p.alignment == ALIGN_GLOBAL ? j == pair.n : (int32_t)end > own.best))
        own.best = (int32_t)end, own.j = j;
}

/* Columns 32 chunk + 1 and on of a stripe, of which each thread is one behind the thread before. */
template <bool LOCAL, int ROWS, bool HELD>
DEVICE void align_chunk(align_rows<ROWS> &x, const smith_waterman_params &p, const align_pair &pair,
                        const align_scores<HELD> &scores, int64_t chunk, int64_t stripe, bool more,
                        alignment_end &own) {
    const int lane = thread_index() % ALIGN_TEAM;
    const bool top = stripe == 0, global = p.alignment == ALIGN_GLOBAL;
    int64_t j = chunk * ALIGN_TEAM + 1 - lane;
    int letter = j >= 1 && j <= pair.n ? pair.target[j - 1] : 0;
    int32_t h_next = 0, f_next = SMITH_WATERMAN_NONE;
    if (lane == 0 && !top && j <= pair.n) h_next = pair.h[j - 1], f_next = pair.f[j - 1];
    for (int step = 0; step < ALIGN_TEAM; step++, j++) {
        int32_t h_above = (int32_t)shuffle_before((uint32_t)x.lowest_h, lane, ALIGN_TEAM),
                f_above = (int32_t)shuffle_before((uint32_t)x.lowest_f, lane, ALIGN_TEAM);
        if (lane == 0) {
            h_above = !top ? h_next : global ? gap_of(p, j) : 0;
            f_above = f_next;
        }
        const int column = scores.column_of(letter);
        letter = j >= 0 && j < pair.n ? pair.target[j] : 0;
        if (lane == 0 && !top && j < pair.n) h_next = pair.h[j], f_next = pair.f[j];
        if (j < 1 || j > pair.n) continue;
        align_column<LOCAL>(x, p, pair, scores, column, j, h_above, f_above, own);
        if (more && lane == ALIGN_TEAM - 1) pair.h[j - 1] = x.lowest_h, pair.f[j - 1] = x.lowest_f;
    }
}

DEVICE align_pair align_pair_of(const smith_waterman_params &p, int64_t b, int64_t room) {
    align_pair pair = { nullptr, nullptr, 0, 0, p.lines + 2 * room * p.n, p.lines + (2 * room + 1) * p.n };
    if (b >= p.b) return pair;
    pair.query = p.query + b * p.query_row, pair.target = p.target + b * p.target_row;
    pair.m = length_of(p.queries, b * p.queries_step, p.m), pair.n = length_of(p.targets, b * p.targets_step, p.n);
    return pair;
}

/* The best of a pair's threads, `count` of them from `ends` on, is written by one of them. */
DEVICE void align_put(const smith_waterman_params &p, int64_t b, const alignment_end *ends, int count) {
    alignment_end best = ends[0];
    for (int i = 1; i < count; i++)
        if (ends[i].best > 0 && beats(ends[i], best)) best = ends[i];
    p.best[b * p.best_step] = best.best;
    if (!p.ends) return;
    p.ends[b * p.ends_row] = best.i;
    p.ends[b * p.ends_row + p.ends_step] = best.j;
}

template <bool LOCAL, bool HELD, int ROWS, int TEAMS> DEVICE void align(const smith_waterman_params &p) {
    SHARED int32_t table[HELD ? ALIGN_LINE * ALIGN_LINE : 1];
    SHARED int64_t rows[TEAMS], columns[TEAMS]; /* of the pair of each team */
    SHARED alignment_end ends[TEAMS * ALIGN_TEAM];
    const int thread = thread_index(), team = thread / ALIGN_TEAM, number = team / p.teams, turn = team % p.teams,
              pairs = TEAMS / p.teams;
    const align_scores<HELD> scores = { HELD ? table : p.scores, p.scores_row, p.s };
    if (HELD) align_hold<TEAMS * ALIGN_TEAM>(table, p);
    for (int64_t base = block_index() * pairs; base < p.b; base += (int64_t)ALIGN_BLOCKS * pairs) {
        const int64_t b = base + number;
        const align_pair pair = align_pair_of(p, b, block_index() * pairs + number);
        sync_block();
        rows[team] = pair.m, columns[team] = pair.n;
        sync_block();
        int64_t m = 0, n = 0;
        for (int i = 0; i < TEAMS; i++) m = rows[i] > m ? rows[i] : m, n = columns[i] > n ? columns[i] : n;
        const int64_t tall = ALIGN_TEAM * ROWS, stripes = (m + tall - 1) / tall,
                      chunks = (n + 2 * ALIGN_TEAM - 2) / ALIGN_TEAM;
        alignment_end own = { LOCAL ? 0 : gap_of(p, pair.m), LOCAL ? 0 : pair.m, 0 };
        if (p.alignment == ALIGN_GLOBAL && pair.m == 0) own = { gap_of(p, pair.n), 0, pair.n };
        bool ended = false;
        for (int64_t first = 0; first < stripes; first += p.teams) {
            const int64_t stripe = first + turn;
            const bool alive = stripe * tall < pair.m;
            alignment_end found = own;
            if (LOCAL) found.best = 0;
            align_rows<ROWS> x;
            x.begin(p, pair, scores, stripe);
            for (int64_t phase = 0; phase < chunks + 2 * (p.teams - 1); phase++) {
                const int64_t chunk = phase - 2 * turn;
                if (alive && chunk >= 0 && chunk * ALIGN_TEAM < pair.n + ALIGN_TEAM - 1)
                    align_chunk<LOCAL>(x, p, pair, scores, chunk, stripe, (stripe + 1) * tall < pair.m, found);
                sync_block();
            }
            const bool mine = LOCAL ? found.best > 0 && beats(found, own) : alive && x.ends;
            if (mine) own = found;
            ended |= alive && x.ends;
        }
        const int count = ALIGN_TEAM * p.teams, place = thread % count;
        if (LOCAL) ends[thread] = own;
        if (!LOCAL && (ended || (pair.m == 0 && place == 0))) ends[thread - place] = own;
        sync_block();
        if (place == 0 && b < p.b) align_put(p, b, ends + thread, LOCAL ? count : 1);
    }
}

#define ALIGN(name, LOCAL, HELD, ROWS, TEAMS) \
    ENTRY(name##_##ROWS, TEAMS *ALIGN_TEAM, smith_waterman_params) { align<LOCAL, HELD, ROWS, TEAMS>(p); }
#define ALIGN_ROWS(ROWS) \
    ALIGN(smith_waterman, false, true, ROWS, ALIGN_FEW) ALIGN(smith_waterman_local, true, true, ROWS, ALIGN_FEW)
ALIGN_ROWS(2)
ALIGN_ROWS(4)
ALIGN_ROWS(6)
ALIGN_ROWS(8)
ALIGN_ROWS(12)
ALIGN_ROWS(16)
ALIGN(smith_waterman_several, false, true, 16, ALIGN_TEAMS)
ALIGN(smith_waterman_several_local, true, true, 16, ALIGN_TEAMS)
ALIGN(smith_waterman_letters, false, false, 16, ALIGN_TEAMS)
ALIGN(smith_waterman_letters_local, true, false, 16, ALIGN_TEAMS)
