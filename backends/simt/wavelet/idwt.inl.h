/* SPDX-License-Identifier: Apache-2.0 */
/* idwt on devices: a block has a tile of x. The coefficients that it needs go to shared memory, 0 where there are none;
 * of images then the sums down their columns; then a thread has two elements of a row.
 *
 * NOTES. Floor: y once, x once; what tiles share is read from the caches. */
#include "wavelet.inl.h"

enum { IDWT_WIDTH = WAVELET_COLUMNS + WAVELET_MOST / 2, IDWT_HEIGHT = (WAVELET_ROWS + WAVELET_MOST) / 2 };

/* Coefficient `at` of n; -1: there is none. */
DEVICE int64_t idwt_place(const wavelet_params &p, int64_t at, int64_t n) {
    if (at >= 0 && at < n) return at;
    return p.edge == TRINE_WAVELET_PERIODIZATION && n > 0 ? at - wavelet_turns(at, n) * n : -1;
}

/* Element t of an axis is the sum of tap 2 m + odd times coefficient start/2 - m, start = t + shift. */
struct idwt_sum {
    int odd, place; /* of the coefficient for m = 0, counted from `base` */

    DEVICE idwt_sum(int64_t start, int64_t base) : odd((int)(start & 1)), place((int)((start >> 1) - base)) {}
};

template <class T> DEVICE void idwt(const wavelet_params &p) {
    using value = typename conv_summed<T>::type;
    SHARED value y[4][IDWT_HEIGHT][IDWT_WIDTH], line[2][WAVELET_ROWS][IDWT_WIDTH];
    SHARED wavelet_taps<value> tap[WAVELET_MOST];
    SHARED int64_t down[IDWT_HEIGHT], across[IDWT_WIDTH]; /* where they are, or -1 */
    const wavelet_tile tile(p);
    const bool rows = p.k == 2;
    const int half = p.taps / 2, shift = p.edge == TRINE_WAVELET_PERIODIZATION ? half - 1 : p.taps - 2,
              width = WAVELET_COLUMNS + half, height = rows ? WAVELET_ROWS : WAVELET_ROWS / 2 + half;
    const int64_t left = 2 * tile.column, base = ((left + shift) >> 1) - (half - 1),
                  top = rows ? tile.row : ((tile.row + shift) >> 1) - (half - 1);
    wavelet_taps_load(tap, p);
    for (int n = thread_index(); n < height + width; n += SIMT_THREADS) {
        const int64_t at = n < height ? top + n : base + n - height;
        if (n >= height)
            across[n - height] = idwt_place(p, at, p.q);
        else
            down[n] = rows ? (at < p.p ? at : -1) : idwt_place(p, at, p.p);
    }
    sync_block();
    for (int s = 0; s < (int)p.k; s++)
        for (int r = tile.line; r < height; r += WAVELET_ROWS) {
            const int64_t high = down[r], from = tile.n * p.y_step[0] + s * p.y_step[1] + high * p.y_step[2];
            for (int c = tile.lane; c < width; c += WAVELET_COLUMNS) {
                const int64_t wide = across[c];
                (rows ? line[s][r] : y[s][r])[c] =
                    high >= 0 && wide >= 0 ? wavelet_get<T>(p.y, from + wide * p.y_step[3]) : (value)0;
            }
        }
    sync_block();
    if (!rows) {
        const idwt_sum at(tile.row + tile.line + shift, top);
        for (int c = tile.lane; c < width; c += WAVELET_COLUMNS)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                value sum = 0;
                for (int m = 0; m < half; m++) {
                    const wavelet_taps<value> t = tap[2 * m + at.odd];
                    sum += t.of[0] * y[2 * s][at.place - m][c];
                    sum += t.of[1] * y[2 * s + 1][at.place - m][c];
                }
                line[s][tile.line][c] = sum;
            }
        sync_block();
    }
    const int64_t row = tile.row + tile.line;
    if (row >= p.h) return;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t t = left + tile.lane + i * WAVELET_COLUMNS;
        if (t >= p.w) return;
        const idwt_sum at(t + shift, base);
        value sum = 0;
        for (int m = 0; m < half; m++) {
            const wavelet_taps<value> f = tap[2 * m + at.odd];
            sum += f.of[0] * line[0][tile.line][at.place - m];
            sum += f.of[1] * line[1][tile.line][at.place - m];
        }
        wavelet_put<T>(p.x, tile.n * p.x_step[0] + row * p.x_step[1] + t * p.x_step[2], sum);
    }
}

ENTRY(idwt_f32, SIMT_THREADS, wavelet_params) { idwt<f32>(p); }
ENTRY(idwt_f64, SIMT_THREADS, wavelet_params) { idwt<f64>(p); }
