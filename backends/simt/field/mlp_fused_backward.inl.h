/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused_backward on devices: a block has a chunk of tiles, whose number follows from the sizes, and sums of all
 * weights, which are then added in the chunks' order.
 *
 * NOTES. Floor: x, hidden, dy once and dx once; a layer's sums are read and written once a tile, from L2. */
#include "mlp.inl.h"

/* The tile's g' a and the sum of its g, added to the chunk's; each thread has the same elements at each tile. */
template <int W> DEVICE void mlp_add_sums(const float *g, const float *a, float *sums, bool first) {
    using shape = mlp_shape<W>;
    constexpr int OWN = shape::OWN;
    const int j = thread_index() / MLP_GRID, i = thread_index() % MLP_GRID;
    float sum[OWN][OWN];
#pragma unroll
    for (int y = 0; y < OWN; y++)
#pragma unroll
        for (int x = 0; x < OWN; x++) sum[y][x] = first ? 0.0f : sums[(j + y * MLP_GRID) * W + i + x * MLP_GRID];
    for (int row = 0; row < shape::ROWS; row += MLP_SIDE) {
        packed<float, MLP_SIDE> of_g[OWN];
#pragma unroll
        for (int y = 0; y < OWN; y++)
            of_g[y] = *(const packed<float, MLP_SIDE> *)&g[(j + y * MLP_GRID) * shape::COLUMN + row];
#pragma unroll
        for (int x = 0; x < OWN; x++) {
            const packed<float, MLP_SIDE> of_a =
                *(const packed<float, MLP_SIDE> *)&a[(i + x * MLP_GRID) * shape::COLUMN + row];
#pragma unroll
            for (int y = 0; y < OWN; y++)
#pragma unroll
                for (int k = 0; k < MLP_SIDE; k++) sum[y][x] = fused(of_g[y].v[k], of_a.v[k], sum[y][x]);
        }
    }
#pragma unroll
    for (int y = 0; y < OWN; y++)
#pragma unroll
        for (int x = 0; x < OWN; x++) sums[(j + y * MLP_GRID) * W + i + x * MLP_GRID] = sum[y][x];
    const int column = thread_index();
    if (column >= W) return;
    float *const db = sums + W * W + column;
    float all = first ? 0.0f : *db;
    for (int row = 0; row < shape::ROWS; row++) all += g[column * shape::COLUMN + row];
    *db = all;
}

/* A square times the slope, whose activations are in a; 0 behind the last of `rows`, where an infinite weight may have
 * made NaN of it. */
template <int W> DEVICE void mlp_add_slope(mlp_square<W> &square, const float *a, int32_t kind, int64_t rows) {
#pragma unroll
    for (int j = 0; j < MLP_SIDE; j++)
#pragma unroll
        for (int i = 0; i < MLP_SIDE; i++) {
            const float of_a = a[(square.column() + j) * mlp_shape<W>::COLUMN + square.row() + i];
            square.sum[j][i] = square.row() + i < rows ? mlp_slope(square.sum[j][i], of_a, kind) : 0.0f;
        }
}

template <class T, int W> DEVICE void mlp_tile_back(const mlp_params &p, int64_t tile, float *g, float *a, bool first) {
    using shape = mlp_shape<W>;
    const int64_t row = tile * shape::ROWS, size = (int64_t)W * W + W;
    mlp_load<T, W>(p, p.dy, 0, row, p.o, g);
    mlp_load<T, W>(p, p.y, 0, row, p.o, a);
    sync_block();
    for (int at = thread_index(); at < W * shape::COLUMN; at += SIMT_THREADS)
        if (at % shape::COLUMN < shape::ROWS) g[at] = mlp_slope(g[at], a[at], p.output);
    for (int layer = mlp_layers(p) - 1; layer >= 0; layer--) {
        sync_block();
        if (layer == 0)
            mlp_load<T, W>(p, p.x, 0, row, p.k, a);
        else
            mlp_load<T, W>(p, p.hidden, layer - 1, row, p.h, a);
        sync_block();
        mlp_add_sums<W>(g, a, p.partial + (block_index() * mlp_layers(p) + layer) * size, first);
        if (layer == 0 && !p.dx.data) break;
        mlp_square<W> square;
        square.begin(nullptr);
        square.add(g, p.copy + layer * (int64_t)W * W, mlp_outputs(p, layer));
        if (layer > 0) mlp_add_slope<W>(square, a, p.activation, p.r - row);
        sync_block();
        square.put(g);
    }
    sync_block();
    if (p.dx.data) mlp_save<T, W>(p, g, p.dx, 0, row, p.k);
    sync_block();
}

template <class T, int W> DEVICE void mlp_fused_backward(const mlp_params &p) {
    alignas(16) SHARED float g[W * mlp_shape<W>::COLUMN];
    alignas(16) SHARED float a[W * mlp_shape<W>::COLUMN];
    const int64_t first = block_index() * p.chunk, end = first + p.chunk < p.tiles ? first + p.chunk : p.tiles;
    for (int64_t tile = first; tile < end; tile++) mlp_tile_back<T, W>(p, tile, g, a, tile == first);
}

/* Sums of the chunks. */
template <class T> DEVICE void mlp_sum(const mlp_params &p) {
    const int64_t at = block_index() * SIMT_THREADS + thread_index(), size = p.width * p.width + p.width;
    if (at >= mlp_layers(p) * size) return;
    const int layer = (int)(at / size), place = mlp_place(p, layer);
    const int64_t row = at % size / p.width, column = at % p.width;
    const bool bias = row == p.width;
    const mlp_tensor &t = bias ? p.db[place] : p.dw[place];
    if (!t.data || column >= (bias ? mlp_outputs(p, layer) : mlp_inputs(p, layer))) return;
    if (!bias && row >= mlp_outputs(p, layer)) return;
    float sum = 0;
#pragma unroll 8
    for (int64_t chunk = 0; chunk < p.chunks; chunk++) sum += p.partial[chunk * mlp_layers(p) * size + at];
    store_one<T>(t.data, mlp_number(p, layer) * t.layer + (bias ? 0 : row * t.row) + column, sum);
}

#define MLP_FUSED_BACKWARD(T, W) \
    ENTRY(mlp_fused_backward_##T##_##W, SIMT_THREADS, mlp_params) { mlp_fused_backward<T, W>(p); }
#define MLP_FUSED_BACKWARD_ALL(T) \
    ENTRY(mlp_fused_backward_copy_##T, SIMT_THREADS, mlp_params) { mlp_copy<T>(p); } \
    ENTRY(mlp_fused_backward_sum_##T, SIMT_THREADS, mlp_params) { mlp_sum<T>(p); } \
    MLP_WIDTHS(MLP_FUSED_BACKWARD, T)
MLP_FUSED_BACKWARD_ALL(f32)
MLP_FUSED_BACKWARD_ALL(bf16)
MLP_FUSED_BACKWARD_ALL(f16)
