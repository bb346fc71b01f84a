/* SPDX-License-Identifier: Apache-2.0 */
/* dwt's rows of numbers of the type REAL; NAME() makes names of its own. */
#include "lines.inl.h"

/* A thread's room: the columns' sums, places of even and of odd number, and both bands of a row. */
typedef struct NAME(room) {
    REAL *line[2], *place[2], *band[2];
} NAME(room);

static NAME(room) NAME(room_of)(const wavelet *a, int thread) {
    REAL *at = (REAL *)(void *)(a->room + thread * a->slice);
    const int64_t w = a->w, places = a->q + a->filters.taps / 2;
    return (NAME(room)){ { at, at + w },
                         { at + 2 * w, at + 2 * w + places },
                         { at + 2 * w + 2 * places, at + 2 * w + 2 * places + a->q } };
}

/* Value t of a line that ends. */
static REAL NAME(beyond)(const wavelet *a, const REAL *line, int64_t t) {
    const wavelet_value v = wavelet_value_at(a->edge, a->w, t);
    REAL sum = 0;
    for (int i = 0; i < WAVELET_TERMS; i++)
        if (v.weight[i] != 0) sum += (REAL)v.weight[i] * line[v.at[i]];
    return sum;
}

/* Values first, first + 2, ... of a line. */
static void NAME(spread)(const wavelet *a, REAL *to, const REAL *line, int64_t first, int64_t n) {
    const int64_t w = a->w;
    int64_t start = first < 0 ? (1 - first) / 2 : 0, end = w > first ? (w - first + 1) / 2 : 0;
    if (start > n) start = n;
    if (end > n) end = n;
    if (end < start) end = start;
    for (int64_t i = 0; i < start; i++) to[i] = NAME(beyond)(a, line, first + 2 * i);
    for (int64_t i = start; i < end; i++) to[i] = line[first + 2 * i];
    for (int64_t i = end; i < n; i++) to[i] = NAME(beyond)(a, line, first + 2 * i);
}

/* Of HALF pairs of taps. */
INLINE void NAME(filter)(const wavelet *a, const NAME(room) * r, const int HALF) {
    REAL low[WAVELET_TAPS], high[WAVELET_TAPS];
    const REAL *const even = r->place[0], *const odd = r->place[1];
    REAL *const low_to = r->band[0], *const high_to = r->band[1];
    for (int m = 0; m < 2 * HALF; m++) {
        low[m] = (REAL)a->filters.tap[0][2 * HALF - 1 - m];
        high[m] = (REAL)a->filters.tap[1][2 * HALF - 1 - m];
    }
    for (int64_t i = 0; i < a->q; i++) {
        REAL l = 0, h = 0;
        for (int m = 0; m < HALF; m++) {
            l += low[2 * m] * even[i + m] + low[2 * m + 1] * odd[i + m];
            h += high[2 * m] * even[i + m] + high[2 * m + 1] * odd[i + m];
        }
        low_to[i] = l;
        high_to[i] = h;
    }
}

/* Both bands of a line, which are stored `apart` bytes from each other. */
static void NAME(analyse)(const wavelet *a, const NAME(room) * r, const REAL *line, char *to, int64_t apart) {
    const int half = a->filters.taps / 2;
    const int64_t first = (a->edge == TRINE_WAVELET_PERIODIZATION ? half : 1) - 2 * half + 1, places = a->q + half - 1;
    for (int odd = 0; odd < 2; odd++) NAME(spread)(a, r->place[odd], line, first + odd, places);
    switch (half) {
    case 1: NAME(filter)(a, r, 1); break;
    case 2: NAME(filter)(a, r, 2); break;
    case 3: NAME(filter)(a, r, 3); break;
    case 4: NAME(filter)(a, r, 4); break;
    case 5: NAME(filter)(a, r, 5); break;
    case 6: NAME(filter)(a, r, 6); break;
    case 7: NAME(filter)(a, r, 7); break;
    default: NAME(filter)(a, r, 8); break;
    }
    for (int band = 0; band < 2; band++) NAME(put)(to + band * apart, r->band[band], a->q, a->y_step[3] / a->size);
}

static void NAME(row)(const wavelet *a, int64_t number, int thread) {
    const NAME(room) r = NAME(room_of)(a, thread);
    const int64_t image = number / a->p, row = number % a->p, step = a->x_step[2] / a->size;
    const char *x = a->x + image * a->x_step[0];
    char *y = a->y + image * a->y_step[0] + row * a->y_step[2];
    wavelet_rows rows = { .count = 0 };
    if (a->k == 2) {
        const REAL *line = (const REAL *)(const void *)(x + row * a->x_step[1]);
        for (int64_t c = 0; c < (step == 1 ? 0 : a->w); c++) r.line[0][c] = line[c * step];
        NAME(analyse)(a, &r, step == 1 ? line : r.line[0], y, a->y_step[1]);
        return;
    }
    const int taps = a->filters.taps, first = a->edge == TRINE_WAVELET_PERIODIZATION ? taps / 2 : 1;
    for (int j = 0; j < taps; j++) {
        const wavelet_value v = wavelet_value_at(a->edge, a->h, 2 * row + first - j);
        for (int i = 0; i < WAVELET_TERMS; i++) {
            if (v.weight[i] == 0) continue;
            rows.row[rows.count] = x + v.at[i] * a->x_step[1];
            for (int high = 0; high < 2; high++) rows.weight[high][rows.count] = a->filters.tap[high][j] * v.weight[i];
            rows.count++;
        }
    }
    for (int high = 0; high < 2; high++) {
        NAME(combine)(r.line[high], &rows, rows.weight[high], a->w, step);
        NAME(analyse)(a, &r, r.line[high], y + high * a->y_step[1], 2 * a->y_step[1]);
    }
}
