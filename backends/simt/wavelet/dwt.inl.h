/* SPDX-License-Identifier: Apache-2.0 */
/* dwt on devices: a block has a tile of coefficients. First the sums down the columns that it needs go to shared
 * memory, or of rows their values; then a thread has those of all bands at one place.
 *
 * NOTES. Floor: x once, y once; what tiles share is read from the caches. */
#include "wavelet.inl.h"

enum { DWT_WIDTH = 2 * WAVELET_COLUMNS + 16 };

/* A value of row `row` at a column that may lie beyond its ends. */
template <class T>
DEVICE typename conv_summed<T>::type dwt_value(const wavelet_params &p, int64_t image, int64_t row,
                                               const wavelet_value &v) {
    typename conv_summed<T>::type sum = 0;
#pragma unroll
    for (int i = 0; i < WAVELET_TERMS; i++)
        if (v.weight[i] != 0)
            sum += (typename conv_summed<T>::type)v.weight[i] *
                   wavelet_get<T>(p.x, image + row * p.x_step[1] + v.at[i] * p.x_step[2]);
    return sum;
}

template <class T> DEVICE void dwt(const wavelet_params &p) {
    using value = typename conv_summed<T>::type;
    SHARED value line[2][WAVELET_ROWS][DWT_WIDTH];
    const wavelet_tile tile(p);
    const int taps = p.taps, first = p.edge == TRINE_WAVELET_PERIODIZATION ? taps / 2 : 1,
              width = 2 * WAVELET_COLUMNS - 2 + taps;
    const int64_t image = tile.n * p.x_step[0], base = 2 * tile.column + first - (taps - 1);
    for (int at = thread_index(); at < WAVELET_ROWS * width; at += SIMT_THREADS) {
        const int row = at / width, c = at % width;
        const int64_t high = tile.row + row;
        if (high >= p.p) continue;
        const wavelet_value v = wavelet_value_at(p.edge, p.w, base + c);
        if (p.k == 2) {
            line[0][row][c] = dwt_value<T>(p, image, high, v);
            continue;
        }
        value low_sum = 0, high_sum = 0;
        for (int j = 0; j < taps; j++) {
            const wavelet_value u = wavelet_value_at(p.edge, p.h, 2 * high + first - j);
#pragma unroll
            for (int i = 0; i < WAVELET_TERMS; i++) {
                if (u.weight[i] == 0) continue;
                const value x = (value)u.weight[i] * dwt_value<T>(p, image, u.at[i], v);
                low_sum += (value)p.tap[0][j] * x;
                high_sum += (value)p.tap[1][j] * x;
            }
        }
        line[0][row][c] = low_sum;
        line[1][row][c] = high_sum;
    }
    sync_block();
    const int row = thread_index() / WAVELET_COLUMNS, column = thread_index() % WAVELET_COLUMNS;
    const int64_t high = tile.row + row, wide = tile.column + column;
    if (high >= p.p || wide >= p.q) return;
    const int64_t to = tile.n * p.y_step[0] + high * p.y_step[2] + wide * p.y_step[3];
    for (int s = 0; s < (p.k == 2 ? 1 : 2); s++) {
        value low_sum = 0, high_sum = 0;
        for (int j = 0; j < taps; j++) {
            const value x = line[s][row][2 * column + taps - 1 - j];
            low_sum += (value)p.tap[0][j] * x;
            high_sum += (value)p.tap[1][j] * x;
        }
        wavelet_put<T>(p.y, to + s * p.y_step[1], low_sum);
        wavelet_put<T>(p.y, to + (s + p.k / 2) * p.y_step[1], high_sum);
    }
}

ENTRY(dwt_f32, SIMT_THREADS, wavelet_params) { dwt<f32>(p); }
ENTRY(dwt_f64, SIMT_THREADS, wavelet_params) { dwt<f64>(p); }
