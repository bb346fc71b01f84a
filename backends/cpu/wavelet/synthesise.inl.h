/* SPDX-License-Identifier: Apache-2.0 */
/* idwt's rows of numbers of the type REAL; NAME() makes names of its own. */
#include "lines.inl.h"

/* A thread's room: the columns' sums of both bands, these with what lies beyond their ends, places of even and of odd
 * number, and the row. */
typedef struct NAME(room) {
    REAL *line[2], *band[2], *place[2], *row;
} NAME(room);

static NAME(room) NAME(room_of)(const wavelet *a, int thread) {
    REAL *at = (REAL *)(void *)(a->room + thread * a->slice);
    const int64_t q = a->q, places = a->w / 2 + 2, band = places + a->filters.taps / 2;
    return (NAME(room)){ { at, at + q },
                         { at + 2 * q, at + 2 * q + band },
                         { at + 2 * q + 2 * band, at + 2 * q + 2 * band + places },
                         at + 2 * q + 2 * band + 2 * places };
}

/* Coefficient `at` of a line, which may lie beyond its ends. */
static REAL NAME(beyond)(const wavelet *a, const REAL *line, int64_t step, int64_t at) {
    if (a->edge != TRINE_WAVELET_PERIODIZATION || a->q == 0) return 0;
    return line[(at - wavelet_turns(at, a->q) * a->q) * step];
}

/* Coefficients first, first + 1, ... of a line; first is not above 0. */
static void NAME(extend)(const wavelet *a, REAL *to, const REAL *line, int64_t step, int64_t first, int64_t n) {
    const int64_t start = -first < n ? -first : n, end = a->q - first < n ? a->q - first : n;
    for (int64_t i = 0; i < start; i++) to[i] = NAME(beyond)(a, line, step, first + i);
    if (step == 1 && end > start)
        memcpy(to + start, line, (size_t)(end - start) * sizeof *to);
    else
        for (int64_t i = start; i < end; i++) to[i] = line[(first + i) * step];
    for (int64_t i = end > start ? end : start; i < n; i++) to[i] = NAME(beyond)(a, line, step, first + i);
}

/* Places of even and of odd number by turns, from the first on or the one after. */
static void NAME(interleave)(REAL *to, const REAL *even, const REAL *odd, int64_t n, int64_t skipped) {
    if (skipped) *to = *odd;
    to += skipped, even += skipped, odd += skipped, n -= skipped;
    for (int64_t i = 0; i < n / 2; i++) to[2 * i] = even[i], to[2 * i + 1] = odd[i];
    if (n % 2) to[n - 1] = even[n / 2];
}

/* Of HALF pairs of taps. */
INLINE void NAME(filter)(const wavelet *a, const NAME(room) * r, int64_t n, const int HALF) {
    REAL tap[2][WAVELET_TAPS];
    const REAL *const low = r->band[0], *const high = r->band[1];
    REAL *const even = r->place[0], *const odd = r->place[1];
    for (int band = 0; band < 2; band++)
        for (int j = 0; j < 2 * HALF; j++) tap[band][j] = (REAL)a->filters.tap[band][j];
    for (int64_t i = 0; i < n; i++) {
        REAL e = 0, o = 0;
        for (int m = 0; m < HALF; m++) {
            const REAL l = low[i + HALF - 1 - m], h = high[i + HALF - 1 - m];
            e += tap[0][2 * m] * l + tap[1][2 * m] * h;
            o += tap[0][2 * m + 1] * l + tap[1][2 * m + 1] * h;
        }
        even[i] = e;
        odd[i] = o;
    }
}

/* A row of both bands' lines. */
static void NAME(synthesise)(const wavelet *a, const NAME(room) * r, const REAL *const line[2], int64_t step,
                             char *to) {
    const int half = a->filters.taps / 2;
    /* place t takes coefficients from (t - back)/2, rounded down, on */
    const int64_t back = a->edge == TRINE_WAVELET_PERIODIZATION ? half - 1 : 0, first = -((back + 1) / 2),
                  n = (a->w - 1 - back - 2 * first) / 2 + 1;
    for (int band = 0; band < 2; band++) NAME(extend)(a, r->band[band], line[band], step, first, n + half - 1);
    switch (half) {
    case 1: NAME(filter)(a, r, n, 1); break;
    case 2: NAME(filter)(a, r, n, 2); break;
    case 3: NAME(filter)(a, r, n, 3); break;
    case 4: NAME(filter)(a, r, n, 4); break;
    case 5: NAME(filter)(a, r, n, 5); break;
    case 6: NAME(filter)(a, r, n, 6); break;
    case 7: NAME(filter)(a, r, n, 7); break;
    default: NAME(filter)(a, r, n, 8); break;
    }
    NAME(interleave)(r->row, r->place[0], r->place[1], a->w, -back - 2 * first);
    NAME(put)(to, r->row, a->w, a->x_step[2] / a->size);
}

/* The rows of bands `band` and band + 1 that row t of their columns is of, with their weights. */
static void NAME(rows_of)(const wavelet *a, const char *y, int band, int64_t t, wavelet_rows *rows) {
    const int taps = a->filters.taps;
    const bool round = a->edge == TRINE_WAVELET_PERIODIZATION;
    rows->count = 0;
    for (int j = 0; j < taps && a->p > 0; j++) {
        const int64_t twice = t + (round ? taps / 2 - 1 : taps - 2) - j;
        if (twice % 2 != 0) continue;
        int64_t at = twice / 2;
        if (round) at -= wavelet_turns(at, a->p) * a->p;
        if (at < 0 || at >= a->p) continue;
        for (int high = 0; high < 2; high++, rows->count++) {
            rows->row[rows->count] = y + (band + high) * a->y_step[1] + at * a->y_step[2];
            rows->weight[0][rows->count] = a->filters.tap[high][j];
        }
    }
}

static void NAME(row)(const wavelet *a, int64_t number, int thread) {
    const NAME(room) r = NAME(room_of)(a, thread);
    const int64_t image = number / a->h, row = number % a->h, step = a->y_step[3] / a->size;
    const char *y = a->y + image * a->y_step[0];
    char *x = a->x + image * a->x_step[0] + row * a->x_step[1];
    const REAL *line[2] = { r.line[0], r.line[1] };
    for (int high = 0; high < 2; high++) {
        wavelet_rows rows;
        if (a->k == 2) {
            line[high] = (const REAL *)(const void *)(y + high * a->y_step[1] + row * a->y_step[2]);
            continue;
        }
        NAME(rows_of)(a, y, 2 * high, row, &rows);
        NAME(combine)(r.line[high], &rows, rows.weight[0], a->q, step);
    }
    NAME(synthesise)(a, &r, line, a->k == 2 ? step : 1, x);
}
