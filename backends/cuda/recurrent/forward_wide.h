/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a recurrent cell by clusters: each block has the gates of its units and gives its part of the new h to
 * the others. */
#ifndef TRINE_CUDA_RECURRENT_FORWARD_WIDE_H
#define TRINE_CUDA_RECURRENT_FORWARD_WIDE_H

#include "cells_wide.h"

/* A block's rows: those of each matrix, of its units. */
template <class T, class Cell> DEVICE void cell_wide_pack(const cell_wide_params &w) {
    constexpr int BYTES = cell_matrix<T>::BYTES;
    const cell_params &p = w.cell;
    const int64_t at = block_index() * SIMT_THREADS + thread_index(), piece = at / WARP,
                  part = piece / w.wide.depth / w.wide.pairs, head = part / w.wide.blocks;
    if (head >= p.h) return;
    const int64_t own = part % w.wide.blocks * w.wide.units;
    const auto element = [&](int row, int64_t k) {
        const int q = row / w.wide.units;
        const int64_t j = own + row % w.wide.units;
        return q < Cell::PRODUCTS && j < p.d && k < p.d
                   ? load_one<T>(p.r.data, head * p.r.batch + q * p.r.gate + j * p.r.head + k)
                   : 0.0f;
    };
    cell_pack<T>(w.pieces + piece * BYTES, (int)(at % WARP), (int)(piece / w.wide.depth % w.wide.pairs) * 2 * CELL_ROWS,
                 (int)(piece % w.wide.depth) * CELL_DEPTH, element);
}

template <class T, class Cell> struct cell_forward_wide {
    const cell_params &p;
    const cell_wide &w;
    const int64_t head;
    const int own, columns, items, height; /* own: the first of the block's units */
    char *h;                               /* parts, of all of the head's units; of this step and of the next */
    float *sums, *states, *bias;
    cell_column *column;
    char *held;
    cell_item mine[CELL_AHEAD];
    const typename T::bits *from[CELL_AHEAD]; /* the inputs of these at the next step */
    uint32_t ahead[CELL_AHEAD][Cell::INPUTS];

    DEVICE cell_forward_wide(const cell_wide_params &params, int64_t which)
        : p(params.cell), w(params.wide), head(which), own(cluster_rank() * w.units), columns(w.across * CELL_ACROSS),
          items(columns * w.units), height(w.pairs * 2 * CELL_ROWS + CELL_APART) {
        h = launch_memory() + CELL_BARRIERS;
        column = (cell_column *)(h + w.buffers * buffer());
        sums = (float *)(column + columns);
        states = sums + w.slices * columns * height;
        bias = states + Cell::KINDS * items;
        held = (char *)(bias + Cell::SAVED * w.units);
    }
    DEVICE int buffer() const { return w.across * w.depth * CELL_COLUMN_BYTES; }
    DEVICE char *parts(int64_t k, int n) const {
        return h + (int)(k & (w.buffers - 1)) * buffer() + n / CELL_ACROSS * w.depth * CELL_COLUMN_BYTES;
    }

    DEVICE cell_item item(int i) const {
        const cell_item x = { i / w.units, i % w.units };
        return { i < items && own + x.unit < p.d && column[x.column].sequence >= 0 ? x.column : -1, x.unit };
    }
    DEVICE bool there(const cell_item &x, int64_t k) const { return x.column >= 0 && k < column[x.column].steps; }

    DEVICE void begin(bool astray, int64_t group) {
        for (int n = thread_index(); n < columns; n += CELL_WIDE_THREADS)
            column[n] = cell_column_of(p, group * columns + n, astray);
        for (int i = thread_index(); i < w.buffers * buffer() / 16; i += CELL_WIDE_THREADS)
            ((packed<uint32_t, 4> *)h)[i] = {};
        for (int i = thread_index(); i < Cell::SAVED * w.units; i += CELL_WIDE_THREADS) {
            const int64_t j = own + i % w.units;
            bias[i] = p.bias.data && j < p.d
                          ? load_one<T>(p.bias.data, i / w.units * p.bias.gate + head * p.bias.head + j)
                          : 0.0f;
        }
        for (int i = thread_index(); i < w.slices * columns * height; i += CELL_WIDE_THREADS) sums[i] = 0.0f;
        sync_block();
        for (int i = thread_index(); i < items; i += CELL_WIDE_THREADS)
            for (int s = 0; s < Cell::KINDS; s++) {
                const cell_column &c = column[i / w.units];
                const float *from = c.sequence >= 0 ? c.state(p.start[s], head) : nullptr;
                const int64_t j = own + i % w.units;
                states[s * items + i] = from && j < p.d ? from[j] : 0.0f;
            }
        if (p.start[0].data)
            for (int64_t i = thread_index(); i < columns * p.d; i += CELL_WIDE_THREADS) {
                const int n = (int)(i / p.d), j = (int)(i % p.d);
                if (column[n].sequence >= 0)
                    cell_put_parts(parts(0, n), n % CELL_ACROSS, j, column[n].state(p.start[0], head)[j]);
            }
    }

    DEVICE int64_t steps() const {
        int64_t most = 0;
        for (int n = 0; n < columns; n++) most = column[n].steps > most ? column[n].steps : most;
        return most;
    }

    DEVICE void find() {
#pragma unroll
        for (int e = 0; e < CELL_AHEAD; e++) {
            mine[e] = item(e * CELL_WIDE_THREADS + thread_index());
            from[e] = (const typename T::bits *)p.wx.data;
            if (mine[e].column >= 0) from[e] += column[mine[e].column].at(p.wx, 0, 0, head) + own + mine[e].unit;
        }
    }
    DEVICE void read_ahead(int64_t k) {
#pragma unroll
        for (int e = 0; e < CELL_AHEAD; e++)
            if (there(mine[e], k)) {
#pragma unroll
                for (int q = 0; q < Cell::INPUTS; q++) ahead[e][q] = cell_word_of<T>(from[e], q * p.wx.gate);
                from[e] += p.wx.step;
            }
    }

    DEVICE void multiply(const cell_matrix<T> &matrix, int64_t k) const {
        const int lane = thread_index() % WARP;
        matrix.shares([&](const cell_share &s) {
            for (int tile = 0; tile < w.across; tile++) {
                cell_sum<cell_matrix<T>::PARTS> sum;
                matrix.multiply(s, parts(k, tile * CELL_ACROSS), sum);
                float *const to = sums + ((s.slice * w.across + tile) * CELL_ACROSS + lane % 4 * 2) * height +
                                  s.pair * 2 * CELL_ROWS + lane / 4;
#pragma unroll
                for (int i = 0; i < 8; i++)
                    to[i % 2 * height + i / 4 * CELL_ROWS + i / 2 % 2 * 8] = sum.get(i / 4, i % 4);
            }
        });
    }

    DEVICE void element(const cell_item &it, int64_t k, const float (&wx)[Cell::INPUTS]) const {
        float x[Cell::PRODUCTS], b[Cell::SAVED], g[Cell::SAVED], s[Cell::KINDS];
        const int n = it.column, u = it.unit, i = n * w.units + u, j = own + u;
        const cell_column &c = column[n];
        const float *sum = sums + n * height + u;
#pragma unroll
        for (int q = 0; q < Cell::PRODUCTS; q++) x[q] = sum[q * w.units];
#pragma unroll 1
        for (int slice = 1; slice < w.slices; slice++) {
            sum += columns * height;
#pragma unroll
            for (int q = 0; q < Cell::PRODUCTS; q++) x[q] += sum[q * w.units];
        }
#pragma unroll
        for (int q = 0; q < Cell::SAVED; q++) b[q] = bias[q * w.units + u];
#pragma unroll
        for (int m = 0; m < Cell::KINDS; m++) s[m] = states[m * items + i];
        Cell::gates(wx, x, b, g);
        Cell::next(g, s);
        cell_put_parts(parts(k + 1, n), n % CELL_ACROSS, j, s[0]);
        store_one<T>(p.y.data, c.at(p.y, k, 0, head) + j, s[0]);
#pragma unroll
        for (int q = 0; q < Cell::SAVED; q++)
            if (p.gates.data) store_one<T>(p.gates.data, c.at(p.gates, k, q, head) + j, g[q]);
#pragma unroll
        for (int m = 0; m < Cell::KINDS; m++) {
            states[m * items + i] = s[m];
            if (m > 0 && p.state[m].data) store_one<f32>(p.state[m].data, c.at(p.state[m], k, 0, head) + j, s[m]);
        }
    }

    DEVICE void elements(int64_t k) const {
#pragma unroll 1
        for (int e = 0; e * CELL_WIDE_THREADS < items; e++) {
            const cell_item x = e == 0 ? mine[0] : e == 1 ? mine[1] : item(e * CELL_WIDE_THREADS + thread_index());
            if (!there(x, k)) continue;
            float wx[Cell::INPUTS];
#pragma unroll
            for (int q = 0; q < Cell::INPUTS; q++)
                wx[q] = cell_get<T>(
                    e == 0   ? ahead[0][q]
                    : e == 1 ? ahead[1][q]
                             : cell_word_of<T>(p.wx.data, column[x.column].at(p.wx, k, q, head) + own + x.unit));
            element(x, k, wx);
        }
    }

    /* The block's tiles along h. */
    DEVICE int tiles() const {
        const int rest = w.depth - own / CELL_DEPTH;
        return w.units / CELL_DEPTH < rest ? w.units / CELL_DEPTH : rest;
    }
    /* Its parts of h to the others, and theirs. */
    DEVICE void exchange(const cell_turns &turns, int64_t k) const {
        const int pieces = tiles() * (CELL_COLUMN_BYTES / 16);
        turns.expect(k, w.across * (w.depth - tiles()) * CELL_COLUMN_BYTES);
        for (int tile = 0; tile < w.across; tile++) {
            const char *from = parts(k, tile * CELL_ACROSS) + own / CELL_DEPTH * CELL_COLUMN_BYTES;
            for (int other = thread_index() / WARP; other < w.blocks - 1; other += CELL_WIDE_WARPS) {
                const int rank = other + (other >= cluster_rank());
                const uint32_t to = cluster_address(shared_address(from), rank), barrier = turns.barrier(k, rank);
                for (int at = thread_index() % WARP; at < pieces; at += WARP)
                    cluster_send_piece(to + (uint32_t)at * 16, barrier, ((const packed<uint32_t, 4> *)from)[at]);
            }
        }
        turns.wait(k);
    }

    DEVICE void end(bool astray) const {
        for (int i = thread_index(); i < items; i += CELL_WIDE_THREADS)
            for (int s = 0; s < Cell::KINDS; s++) {
                const int64_t j = own + i % w.units;
                const cell_column &c = column[i / w.units];
                float *to = c.sequence >= 0 ? c.state(p.last[s], head) : nullptr;
                if (to && j < p.d) to[j] = astray ? not_a_number() : states[s * items + i];
            }
    }
};

template <class T, class Cell> DEVICE void cell_wide_forward(const cell_wide_params &params) {
    const cell_params &p = params.cell;
    const cell_wide &w = params.wide;
    const int64_t cluster = cluster_index(), group = cluster / p.h, head = cluster % p.h;
    const bool astray = cell_astray(p);
    if (group == w.groups) { /* the room behind the last of packed sequences */
        if (cluster_rank() > 0) return;
        const cell_task room = { p.count, head,  0, astray ? 0 : p.cu[p.count], astray ? p.t : p.t - p.cu[p.count],
                                 true,    astray };
        cell_clear<T>(room, p.y, 1, p.d);
        cell_clear<T>(room, p.gates, Cell::SAVED, p.d);
        for (int n = 1; n < Cell::KINDS; n++) cell_clear<f32>(room, p.state[n], 1, p.d);
        return;
    }
    cell_forward_wide<T, Cell> f(params, head);
    cell_matrix<T> matrix(w, cell_pieces_of<T>(params, head), f.held);
    const cell_turns turns(w);
    matrix.fetch();
    f.begin(astray, group);
    turns.meet();
    f.find();
    const int64_t steps = f.steps();
    f.read_ahead(0);
    for (int64_t k = 0; k < steps; k++) {
        if (k > 0 || p.start[0].data) f.multiply(matrix, k);
        sync_block();
        f.elements(k);
        if (k + 1 == steps) break;
        f.read_ahead(k + 1);
        sync_block();
        if (turns.shared) f.exchange(turns, k + 1);
    }
    f.end(astray);
}

#define CELL_WIDE_ENTRY(op, Cell, T) \
    ENTRY(op##_pack_##T, SIMT_THREADS, cell_wide_params) { cell_wide_pack<T, Cell>(p); } \
    ENTRY_HELD(op##_wide_##T, CELL_WIDE_THREADS, 1, cell_wide_params) { cell_wide_forward<T, Cell>(p); }
#define CELL_WIDE_ENTRIES(op, Cell) \
    CELL_WIDE_ENTRY(op, Cell, f32) CELL_WIDE_ENTRY(op, Cell, bf16) CELL_WIDE_ENTRY(op, Cell, f16)

#endif
