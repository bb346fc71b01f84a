/* SPDX-License-Identifier: Apache-2.0 */
/* dwt on devices: a block has a tile of coefficients. The elements that it needs go to shared memory, what lies beyond
 * the ends of the image among them; of images then the sums down their columns; then a thread has the coefficients of
 * all bands at one place.
 *
 * NOTES. Floor: x once, y once; what tiles share is read from the caches. */
#include "wavelet.inl.h"

enum { DWT_WIDTH = 2 * WAVELET_COLUMNS + WAVELET_MOST, DWT_HEIGHT = 2 * WAVELET_ROWS + WAVELET_MOST - 2 };

/* The rows and columns of a tile's elements. */
struct dwt_span {
    int64_t row, column;
    int height, width;

    DEVICE dwt_span(const wavelet_params &p, const wavelet_tile &tile) {
        const int first = (p.edge == TRINE_WAVELET_PERIODIZATION ? p.taps / 2 : 1) - (p.taps - 1);
        const bool rows = p.k == 2;
        row = rows ? tile.row : 2 * tile.row + first, height = rows ? WAVELET_ROWS : 2 * WAVELET_ROWS - 2 + p.taps;
        column = 2 * tile.column + first, width = 2 * WAVELET_COLUMNS - 2 + p.taps;
    }
    DEVICE bool inside(const wavelet_params &p) const {
        return row >= 0 && row + height <= p.h && column >= 0 && column + width <= p.w;
    }
};

template <class T, class Value>
DEVICE void dwt_load(Value (&x)[DWT_HEIGHT][DWT_WIDTH], const wavelet_params &p, const wavelet_tile &tile,
                     const dwt_span &span) {
    const int64_t image = tile.n * p.x_step[0] + span.row * p.x_step[1] + span.column * p.x_step[2];
    for (int r = tile.line; r < span.height; r += WAVELET_ROWS)
        for (int c = tile.lane; c < span.width; c += WAVELET_COLUMNS)
            x[r][c] = wavelet_get<T>(p.x, image + r * p.x_step[1] + c * p.x_step[2]);
}

/* Where some of them lie beyond the ends: which each of the rows and columns is made of is found first. */
template <class T, class Value>
DEVICE void dwt_load_edge(Value (&x)[DWT_HEIGHT][DWT_WIDTH], const wavelet_params &p, const wavelet_tile &tile,
                          const dwt_span &span) {
    SHARED wavelet_value down[DWT_HEIGHT], across[DWT_WIDTH];
    const int64_t image = tile.n * p.x_step[0];
    for (int n = thread_index(); n < span.height + span.width; n += SIMT_THREADS) {
        const int c = n - span.height;
        if (c >= 0)
            across[c] = wavelet_value_at(p.edge, p.w, span.column + c);
        else if (p.k == 2)
            down[n] = { { span.row + n }, { span.row + n < p.h ? 1.0 : 0.0 } };
        else
            down[n] = wavelet_value_at(p.edge, p.h, span.row + n);
    }
    sync_block();
    for (int r = tile.line; r < span.height; r += WAVELET_ROWS)
        for (int c = tile.lane; c < span.width; c += WAVELET_COLUMNS) {
            Value sum = 0;
            for (int i = 0; i < WAVELET_TERMS; i++) {
                if (down[r].weight[i] == 0) continue;
                Value line = 0;
                for (int j = 0; j < WAVELET_TERMS; j++)
                    if (across[c].weight[j] != 0)
                        line += (Value)across[c].weight[j] * wavelet_get<T>(p.x, image + down[r].at[i] * p.x_step[1] +
                                                                                     across[c].at[j] * p.x_step[2]);
                sum += (Value)down[r].weight[i] * line;
            }
            x[r][c] = sum;
        }
}

template <class T> DEVICE void dwt(const wavelet_params &p) {
    using value = typename conv_summed<T>::type;
    alignas(16) SHARED value x[DWT_HEIGHT][DWT_WIDTH], line[2][WAVELET_ROWS][DWT_WIDTH];
    alignas(16) SHARED wavelet_taps<value> tap[WAVELET_MOST];
    const wavelet_tile tile(p);
    const dwt_span span(p, tile);
    const int taps = p.taps;
    const bool rows = p.k == 2;
    wavelet_taps_load(tap, p);
    if (span.inside(p))
        dwt_load<T>(x, p, tile, span);
    else
        dwt_load_edge<T>(x, p, tile, span);
    sync_block();
    if (!rows) {
        for (int c = tile.lane; c < span.width; c += WAVELET_COLUMNS) {
            value low = 0, high = 0;
#pragma unroll 2
            for (int j = 0; j < taps; j++) {
                const value v = x[2 * tile.line + taps - 1 - j][c];
                low += tap[j].of[0] * v, high += tap[j].of[1] * v;
            }
            line[0][tile.line][c] = low, line[1][tile.line][c] = high;
        }
        sync_block();
    }
    const int64_t row = tile.row + tile.line, column = tile.column + tile.lane;
    if (row >= p.p || column >= p.q) return;
    const int64_t to = tile.n * p.y_step[0] + row * p.y_step[2] + column * p.y_step[3];
    for (int s = 0; s < (rows ? 1 : 2); s++) {
        const value *const from = (rows ? x[tile.line] : line[s][tile.line]) + 2 * tile.lane + taps - 2;
        value low = 0, high = 0;
        for (int j = 0; j < taps; j += 2) {
            const packed<value, 2> v = *(const packed<value, 2> *)(from - j);
            low += tap[j].of[0] * v.v[1], high += tap[j].of[1] * v.v[1];
            low += tap[j + 1].of[0] * v.v[0], high += tap[j + 1].of[1] * v.v[0];
        }
        wavelet_put<T>(p.y, to + s * p.y_step[1], low);
        wavelet_put<T>(p.y, to + (s + p.k / 2) * p.y_step[1], high);
    }
}

ENTRY(dwt_f32, SIMT_THREADS, wavelet_params) { dwt<f32>(p); }
ENTRY(dwt_f64, SIMT_THREADS, wavelet_params) { dwt<f64>(p); }
