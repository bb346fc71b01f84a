/* SPDX-License-Identifier: Apache-2.0 */
/* block_mean on devices. A block of threads has a block of rows by 256 columns: eight lines of 32 threads add every
 * eighth row each, then their sums are added in order.
 *
 * NOTES. Floor: x once, and so it is read. */
#include "block_mean.h"
#include "backends/simt/core/row.h"

template <class T, class W> DEVICE void block_mean(const block_mean_params &p) {
    SHARED float part[MEAN_LINES][MEAN_COLUMNS];
    const int64_t tile = block_index() % p.tiles, number = block_index() / p.tiles, block = number % p.blocks,
                  batch = number / p.blocks;
    const int64_t first = block <= p.s / p.size ? block * p.size : p.s,
                  end = p.size < p.s - first ? first + p.size : p.s;
    const int line = thread_index() / 32, column = thread_index() % 32 * VECTOR;
    const lane l = { tile * MEAN_COLUMNS + column, p.n, p.wide };
    float sum[VECTOR] = {};
#pragma unroll 4
    for (int64_t row = first + line; row < end; row += MEAN_LINES) {
        float x[VECTOR];
        load<T>(x, row_at<T>(p.x, batch, row), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum[k] += x[k];
    }
#pragma unroll
    for (int k = 0; k < VECTOR; k++) part[line][column + k] = sum[k];
    sync_block();
    const int64_t at = tile * MEAN_COLUMNS + thread_index();
    if (at >= p.n) return;
    float total = 0;
#pragma unroll
    for (int i = 0; i < MEAN_LINES; i++) total += part[i][thread_index()];
    store_one<W>(row_at<W>(p.y, batch, block), at, end > first ? total / (float)(end - first) : 0.0f);
}

#define MEAN(T, W) \
    ENTRY(block_mean_##T##_##W, SIMT_THREADS, block_mean_params) { block_mean<T, W>(p); }
MEAN(f32, f32)
MEAN(bf16, f32)
MEAN(f16, f32)
MEAN(bf16, bf16)
MEAN(f16, f16)
