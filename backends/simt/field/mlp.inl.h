/* SPDX-License-Identifier: Apache-2.0 */
/* Device side that mlp_fused and its gradient share. A block has a tile of rows in shared memory, column by column, in
 * f32; a thread has a square of a product: as many rows as outputs. */
#ifndef TRINE_SIMT_FIELD_MLP_INL_H
#define TRINE_SIMT_FIELD_MLP_INL_H

#include <trine/field.h>

#include "mlp.h"
#include "backends/simt/core/math.h"

template <int W> struct mlp_shape {
    static constexpr int ROWS = MLP_HELD / W, COLUMN = ROWS + MLP_PAD, SIDES = W / MLP_SIDE, OWN = W / MLP_GRID;
};

DEVICE int mlp_layers(const mlp_params &p) { return (int)p.m + 2; }
DEVICE int mlp_place(const mlp_params &p, int layer) {
    return layer == 0 ? MLP_FIRST : layer <= p.m ? MLP_BEHIND : MLP_OUTPUT;
}
DEVICE int64_t mlp_inputs(const mlp_params &p, int layer) { return layer == 0 ? p.k : p.h; }
DEVICE int64_t mlp_outputs(const mlp_params &p, int layer) { return layer <= p.m ? p.h : p.o; }
/* The number of a layer among those of its place. */
DEVICE int64_t mlp_number(const mlp_params &p, int layer) { return mlp_place(p, layer) == MLP_BEHIND ? layer - 1 : 0; }

/* Copies weights, and biases behind them. */
template <class T> DEVICE void mlp_copy(const mlp_params &p) {
    const int64_t at = block_index() * SIMT_THREADS + thread_index(), matrix = p.width * p.width,
                  matrices = mlp_layers(p) * matrix;
    if (at >= matrices + mlp_layers(p) * p.width) return;
    const bool bias = at >= matrices;
    const int layer = (int)(bias ? (at - matrices) / p.width : at / matrix), place = mlp_place(p, layer);
    const int64_t row = bias ? 0 : at / p.width % p.width, column = at % p.width;
    const int64_t output = p.turned || bias ? column : row, input = bias ? 0 : p.turned ? row : column;
    const mlp_tensor &t = bias ? p.b[place] : p.w[place];
    const bool there = t.data && output < mlp_outputs(p, layer) && (bias || input < mlp_inputs(p, layer));
    p.copy[at] =
        there ? load_one<T>(t.data, mlp_number(p, layer) * t.layer + (bias ? output : output * t.row + input)) : 0.0f;
}

/* Rows from `first` on of a tensor into a tile, 0 behind the last, and back. Threads are along a row. */
template <class T, int W>
DEVICE void mlp_load(const mlp_params &p, const mlp_tensor &t, int64_t layer, int64_t first, int64_t columns,
                     float *to) {
    using shape = mlp_shape<W>;
    for (int at = thread_index(); at < MLP_HELD; at += SIMT_THREADS) {
        const int row = at / W, column = at % W;
        const bool there = first + row < p.r && column < columns;
        to[column * shape::COLUMN + row] =
            there ? load_one<T>(t.data, layer * t.layer + (first + row) * t.row + column) : 0.0f;
    }
}
template <class T, int W>
DEVICE void mlp_save(const mlp_params &p, const float *from, const mlp_tensor &t, int64_t layer, int64_t first,
                     int64_t columns) {
    using shape = mlp_shape<W>;
    for (int at = thread_index(); at < MLP_HELD; at += SIMT_THREADS) {
        const int row = at / W, column = at % W;
        if (first + row < p.r && column < columns)
            store_one<T>(t.data, layer * t.layer + (first + row) * t.row + column, from[column * shape::COLUMN + row]);
    }
}

/* The thread's square of a product: its rows and columns from row() and column() on. */
template <int W> struct mlp_square {
    float sum[MLP_SIDE][MLP_SIDE]; /* by columns, then rows */

    static DEVICE int column() { return thread_index() % mlp_shape<W>::SIDES * MLP_SIDE; }
    static DEVICE int row() { return thread_index() / mlp_shape<W>::SIDES * MLP_SIDE; }

    DEVICE void begin(const float *start) {
#pragma unroll
        for (int j = 0; j < MLP_SIDE; j++)
#pragma unroll
            for (int i = 0; i < MLP_SIDE; i++) sum[j][i] = start ? start[column() + j] : 0.0f;
    }
    /* Sums over the tile's columns t of its element of a row times matrix[t], row by row of the matrix. */
    DEVICE void add(const float *tile, const float *matrix, int64_t terms) {
        for (int t = 0; t < terms; t++) {
            const packed<float, MLP_SIDE> a = *(const packed<float, MLP_SIDE> *)&tile[t * mlp_shape<W>::COLUMN + row()],
                                          w = *(const packed<float, MLP_SIDE> *)&matrix[t * W + column()];
#pragma unroll
            for (int j = 0; j < MLP_SIDE; j++)
#pragma unroll
                for (int i = 0; i < MLP_SIDE; i++) sum[j][i] = fused(a.v[i], w.v[j], sum[j][i]);
        }
    }
    DEVICE void put(float *tile) const {
#pragma unroll
        for (int j = 0; j < MLP_SIDE; j++) {
            packed<float, MLP_SIDE> column_part;
#pragma unroll
            for (int i = 0; i < MLP_SIDE; i++) column_part.v[i] = sum[j][i];
            *(packed<float, MLP_SIDE> *)&tile[(column() + j) * mlp_shape<W>::COLUMN + row()] = column_part;
        }
    }
};

/* exp_of() takes no more than 88. */
DEVICE float mlp_exp(float x) {
    if (!(x > 88.0f)) return exp_of(x);
    const float half = exp_of((x < 170.0f ? x : 170.0f) * 0.5f);
    return half * half;
}
DEVICE float mlp_activate(float x, int32_t kind) {
    switch (kind) {
    case TRINE_MLP_RELU: return x <= 0.0f ? 0.0f : x;
    case TRINE_MLP_LEAKY_RELU: return x <= 0.0f ? x * 0.01f : x;
    case TRINE_MLP_SIGMOID: return sigmoid(x);
    case TRINE_MLP_TANH: return tanh_of(x);
    case TRINE_MLP_EXPONENTIAL: return mlp_exp(x);
    default: return x;
    }
}
/* g times the slope where the activation gave a. */
DEVICE float mlp_slope(float g, float a, int32_t kind) {
    switch (kind) {
    case TRINE_MLP_RELU: return a > 0.0f ? g : 0.0f;
    case TRINE_MLP_LEAKY_RELU: return a > 0.0f ? g : g * 0.01f;
    case TRINE_MLP_SIGMOID: return g * (a * (1.0f - a));
    case TRINE_MLP_TANH: return g * (1.0f - a * a);
    case TRINE_MLP_EXPONENTIAL: return g * a;
    default: return g;
    }
}

#define MLP_WIDTHS(ENTRIES, T) ENTRIES(T, 16) ENTRIES(T, 32) ENTRIES(T, 64) ENTRIES(T, 128)

#endif
