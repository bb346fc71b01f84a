/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of a recurrent cell's gradient over all steps, dr = sum of dg h' and dbias = sum of dg, by tensor cores: a
 * block has a tile of a matrix of dr, in the order of the steps, of parts as in cells_wide.h. */
#ifndef TRINE_CUDA_RECURRENT_WEIGHTS_WIDE_H
#define TRINE_CUDA_RECURRENT_WEIGHTS_WIDE_H

#include "cells_wide.h"

/* Steps of a block at a time, of a tile's columns, as words of two elements for each part. */
struct cell_chunk {
    static constexpr int STEPS = 32, WIDTH = CELL_WEIGHTS_TILE, STRIDE = WIDTH + 8; /* rows begin in other banks */
    static constexpr int ROWS = STEPS / (SIMT_THREADS / (WIDTH / 2));
    packed<uint32_t, 4> part[CELL_PARTS][STEPS][STRIDE / 8];

    static DEVICE int column() { return thread_index() % (WIDTH / 2) * 2; }
    static DEVICE int step(int i) { return thread_index() / (WIDTH / 2) * ROWS + i; }

    DEVICE void put(const float (&x)[ROWS][2], int parts) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            uint32_t word[CELL_PARTS];
            cell_split(x[i][0], x[i][1], word);
#pragma unroll
            for (int q = 0; q < CELL_PARTS; q++)
                if (q < parts) part[q][step(i)][column() / 8].v[column() % 8 / 2] = word[q];
        }
    }
    /* Where a lane's row is of four matrices: steps down, columns across; the second of either is `next` on. */
    DEVICE const void *row(int q, int step, int column, bool next_is_step) const {
        const int lane = thread_index() % WARP, low = lane / 8 % 2 * 8, high = lane / 16 * 8;
        return &part[q][step + lane % 8 + (next_is_step ? low : high)][(column + (next_is_step ? high : low)) / 8];
    }
};

/* A thread's elements of the next steps of a block, of rows of so many columns that are `apart`. */
struct cell_feed {
    const float *at;
    const int64_t apart;
    int64_t steps; /* left, from the thread's first on */
    const bool there[2];

    DEVICE cell_feed(const float *from, int64_t step, int64_t count, int64_t columns)
        : at(from + cell_chunk::step(0) * step + cell_chunk::column()), apart(step), steps(count - cell_chunk::step(0)),
          there{ cell_chunk::column() < columns, cell_chunk::column() + 1 < columns } {}

    DEVICE void read(float (&x)[cell_chunk::ROWS][2]) {
#pragma unroll
        for (int i = 0; i < cell_chunk::ROWS; i++)
#pragma unroll
            for (int k = 0; k < 2; k++) x[i][k] = i < steps && there[k] ? at[i * apart + k] : 0.0f;
        at += cell_chunk::STEPS * apart;
        steps -= cell_chunk::STEPS;
    }
};

template <class T, class Cell> DEVICE void cell_wide_weights(const cell_backward_wide_params &params) {
    SHARED cell_chunk dg, h;
    constexpr int TILE = CELL_WEIGHTS_TILE, ACROSS = TILE / 2 / 8; /* a warp has 16 rows and half of the columns */
    const cell_backward_params &p = params.cell;
    const int64_t tile = block_index() % (p.tiles * p.tiles), rest = block_index() / (p.tiles * p.tiles),
                  head = rest / Cell::SAVED, first_j = tile / p.tiles * TILE, first_k = tile % p.tiles * TILE,
                  steps = p.b * p.t;
    const int row = (int)(rest % Cell::SAVED), warp = thread_index() / WARP, lane = thread_index() % WARP,
              down = warp % 4 * 16, across = warp / 4 * (TILE / 2);
    const int before = params.exact ? cell_parts<T>::COUNT : CELL_PARTS; /* of h */
    int product = -1;
    for (int q = 0; q < Cell::PRODUCTS; q++)
        if (Cell::product_row(q) == row) product = q;
    const float *const from_dg = p.dg + (head * Cell::SAVED + row) * p.d + first_j, *const from_h =
                                                                                        p.before + head * p.d + first_k;
    const int64_t apart = p.h * p.d;
    constexpr int SUMS = 2 * CELL_PARTS - 1;
    float sums[SUMS][ACROSS][4] = {}, bias[2] = {}, x[cell_chunk::ROWS][2], y[cell_chunk::ROWS][2];
    cell_feed feed_dg(from_dg, apart * Cell::SAVED, steps, p.d - first_j), feed_h(from_h, apart, steps, p.d - first_k);
    feed_dg.read(x);
    feed_h.read(y);
    for (int64_t at = 0; at < steps; at += cell_chunk::STEPS) {
        dg.put(x, CELL_PARTS);
        h.put(y, before);
#pragma unroll
        for (int i = 0; i < cell_chunk::ROWS; i++)
            for (int k = 0; k < 2; k++) bias[k] += x[i][k];
        sync_block();
        feed_dg.read(x);
        feed_h.read(y);
#pragma unroll 1
        for (int step = 0; step < cell_chunk::STEPS; step += 16) {
            uint32_t a[CELL_PARTS][4];
#pragma unroll
            for (int i = 0; i < CELL_PARTS; i++) load_matrices<true>(a[i], dg.row(i, step, down, false));
#pragma unroll
            for (int j = 0; j < CELL_PARTS; j++) {
                if (j >= before) break;
#pragma unroll
                for (int n = 0; n < ACROSS; n += 2) {
                    uint32_t b[4];
                    load_matrices<true>(b, h.row(j, step, across + n * 8, true));
#pragma unroll
                    for (int i = 0; i < CELL_PARTS; i++)
#pragma unroll
                        for (int half = 0; half < 2; half++)
                            warp_multiply(bf16(), sums[i + j][n + half], a[i], b[2 * half], b[2 * half + 1]);
                }
            }
        }
        sync_block();
    }
#pragma unroll
    for (int n = 0; n < ACROSS; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t j = first_j + down + lane / 4 + i / 2 * 8,
                          k = first_k + across + n * 8 + lane % 4 * 2 + i % 2;
            const float sum = cell_total<SUMS>([&](int part) { return sums[part][n][i]; });
            if (product >= 0 && j < p.d && k < p.d)
                store_one<T>(p.dr.data, head * p.dr.batch + product * p.dr.gate + j * p.dr.head + k, sum);
        }
    if (!p.dbias.data || first_k > 0) return;
    float *const part = (float *)&dg;
    for (int k = 0; k < 2; k++) part[thread_index() / (TILE / 2) * TILE + cell_chunk::column() + k] = bias[k];
    sync_block();
    const int64_t j = first_j + thread_index();
    if (thread_index() >= TILE || j >= p.d) return;
    float sum = 0;
    for (int i = 0; i < SIMT_THREADS / (TILE / 2); i++) sum += part[i * TILE + thread_index()];
    store_one<T>(p.dbias.data, row * p.dbias.gate + head * p.dbias.head + j, sum);
}

#endif
