/* SPDX-License-Identifier: Apache-2.0 */
/* idwt on devices: a block has a tile of x. First the sums down the columns of coefficients that it needs go to shared
 * memory, or of rows these themselves; then a thread has two neighbours of a row.
 *
 * NOTES. Floor: y once, x once; what tiles share is read from the caches. */
#include "wavelet.inl.h"

enum { IDWT_WIDTH = WAVELET_COLUMNS + 16 };

/* Coefficient `at` of n; -1: there is none. */
DEVICE int64_t idwt_place(const wavelet_params &p, int64_t at, int64_t n) {
    if (n <= 0) return -1;
    if (p.edge == TRINE_WAVELET_PERIODIZATION) return at - wavelet_turns(at, n) * n;
    return at >= 0 && at < n ? at : -1;
}

/* What bands `band` and band + 1 give row t of their columns; `column` is where the column begins. */
template <class T>
DEVICE typename conv_summed<T>::type idwt_down(const wavelet_params &p, int64_t column, int band, int64_t t) {
    using value = typename conv_summed<T>::type;
    const int64_t start = t + (p.edge == TRINE_WAVELET_PERIODIZATION ? p.taps / 2 - 1 : p.taps - 2);
    value sum = 0;
    for (int j = (int)(start % 2); j < p.taps; j += 2) {
        const int64_t at = idwt_place(p, wavelet_turns(start - j, 2), p.p);
        if (at < 0) continue;
        const int64_t low = column + band * p.y_step[1] + at * p.y_step[2];
        sum += (value)p.tap[0][j] * wavelet_get<T>(p.y, low);
        sum += (value)p.tap[1][j] * wavelet_get<T>(p.y, low + p.y_step[1]);
    }
    return sum;
}

template <class T> DEVICE void idwt(const wavelet_params &p) {
    using value = typename conv_summed<T>::type;
    SHARED value line[2][WAVELET_ROWS][IDWT_WIDTH];
    const wavelet_tile tile(p);
    const int half = p.taps / 2, width = WAVELET_COLUMNS + half;
    const int64_t left = 2 * tile.column, back = p.edge == TRINE_WAVELET_PERIODIZATION ? half - 1 : 0,
                  base = wavelet_turns(left - back, 2);
    for (int at = thread_index(); at < WAVELET_ROWS * width; at += SIMT_THREADS) {
        const int row = at / width, c = at % width;
        const int64_t high = tile.row + row, place = idwt_place(p, base + c, p.q);
        if (high >= p.h) continue;
        const int64_t column = tile.n * p.y_step[0] + place * p.y_step[3];
        for (int s = 0; s < 2; s++)
            line[s][row][c] = place < 0  ? 0
                              : p.k == 2 ? wavelet_get<T>(p.y, column + s * p.y_step[1] + high * p.y_step[2])
                                         : idwt_down<T>(p, column, 2 * s, high);
    }
    sync_block();
    const int row = thread_index() / WAVELET_COLUMNS;
    const int64_t high = tile.row + row, first = left + thread_index() % WAVELET_COLUMNS * 2;
    if (high >= p.h) return;
    for (int64_t t = first; t < first + 2 && t < p.w; t++) {
        const int64_t from = wavelet_turns(t - back, 2);
        const int odd = (int)(t - back - 2 * from), place = (int)(from - base) + half - 1;
        value sum = 0;
        for (int m = 0; m < half; m++) {
            sum += (value)p.tap[0][2 * m + odd] * line[0][row][place - m];
            sum += (value)p.tap[1][2 * m + odd] * line[1][row][place - m];
        }
        wavelet_put<T>(p.x, tile.n * p.x_step[0] + high * p.x_step[1] + t * p.x_step[2], sum);
    }
}

ENTRY(idwt_f32, SIMT_THREADS, wavelet_params) { idwt<f32>(p); }
ENTRY(idwt_f64, SIMT_THREADS, wavelet_params) { idwt<f64>(p); }
