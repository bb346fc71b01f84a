/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a recurrent cell by clusters: each block has the gates of its units, of whose gradients it gives the
 * products with its rows to the blocks that have h's elements. Then sums over all steps, a tile of dr a block. */
#ifndef TRINE_CUDA_RECURRENT_BACKWARD_WIDE_H
#define TRINE_CUDA_RECURRENT_BACKWARD_WIDE_H

#include "cells_wide.h"
#include "weights_wide.h"

/* A block's rows are the elements of h, its columns those of each matrix's rows that are its units'. */
template <class T, class Cell> DEVICE void cell_wide_pack(const cell_backward_wide_params &w) {
    constexpr int BYTES = cell_matrix<T>::BYTES;
    const cell_backward_params &p = w.cell;
    const int64_t at = block_index() * SIMT_THREADS + thread_index(), piece = at / WARP,
                  part = piece / w.wide.depth / w.wide.pairs, head = part / w.wide.blocks;
    if (head >= p.h) return;
    const int64_t own = part % w.wide.blocks * w.wide.units;
    const auto element = [&](int64_t k, int column) {
        const int q = column / w.wide.units;
        const int64_t j = own + column % w.wide.units;
        return q < Cell::PRODUCTS && j < p.d && k < p.d
                   ? load_one<T>(p.r.data, head * p.r.batch + q * p.r.gate + j * p.r.head + k)
                   : 0.0f;
    };
    cell_pack<T>(w.pieces + piece * BYTES, (int)(at % WARP), (int)(piece / w.wide.depth % w.wide.pairs) * 2 * CELL_ROWS,
                 (int)(piece % w.wide.depth) * CELL_DEPTH, element);
}

/* What a step reads of an element, as it is in memory: h of the type, before the first step f32, and other states. */
template <class Cell> struct cell_saved {
    uint32_t g[Cell::SAVED], dy, before[Cell::KINDS], after[Cell::KINDS];
};

template <class T, class Cell> struct cell_backward_wide {
    const cell_backward_params &p;
    const cell_wide &w;
    const int64_t head;
    const int own, columns, items; /* own: the first of the block's units */
    char *gradients;               /* parts, of the block's gates */
    float *sums;                   /* of each block and slice; of this step and of the next */
    float *states;
    cell_column *column;
    char *held;
    cell_item mine; /* the thread's first */
    cell_saved<Cell> ahead;

    DEVICE cell_backward_wide(const cell_backward_wide_params &params, int64_t which)
        : p(params.cell), w(params.wide), head(which), own(cluster_rank() * w.units), columns(w.across * CELL_ACROSS),
          items(columns * w.units) {
        gradients = launch_memory() + CELL_BARRIERS;
        column = (cell_column *)(gradients + w.across * w.depth * CELL_COLUMN_BYTES);
        sums = (float *)(column + columns);
        states = sums + w.buffers * w.blocks * w.slices * items;
        held = (char *)(states + Cell::KINDS * items);
    }
    DEVICE char *parts(int n) const { return gradients + n / CELL_ACROSS * w.depth * CELL_COLUMN_BYTES; }

    /* Of unit u and column n of what comes from part `from` of all: neighbours in a row are apart, so that neither
     * storing columns by pairs nor reading units has all in few banks. */
    DEVICE int place(int64_t turn, int from, int u, int n) const {
        return ((int)(turn & (w.buffers - 1)) * w.blocks * w.slices + from) * items +
               n / CELL_ACROSS * w.units * CELL_ACROSS + u * CELL_ACROSS +
               ((n % CELL_ACROSS / 2 ^ u / 4 % 4) * 2 + n % 2);
    }

    DEVICE void begin(bool astray, int64_t group) {
        for (int n = thread_index(); n < columns; n += CELL_WIDE_THREADS)
            column[n] = cell_column_of(p, group * columns + n, astray);
        for (int i = thread_index(); i < w.across * w.depth * CELL_COLUMN_BYTES / 16; i += CELL_WIDE_THREADS)
            ((packed<uint32_t, 4> *)gradients)[i] = {};
        sync_block();
        for (int i = thread_index(); i < items; i += CELL_WIDE_THREADS)
            for (int s = 0; s < Cell::KINDS; s++) {
                const cell_column &c = column[i / w.units];
                const float *from = s < Cell::GRADIENTS && c.sequence >= 0 ? c.state(p.dlast[s], head) : nullptr;
                const int64_t j = own + i % w.units;
                states[s * items + i] = from && j < p.d ? from[j] : 0.0f;
            }
    }

    DEVICE int64_t steps() const {
        int64_t most = 0;
        for (int n = 0; n < columns; n++) most = column[n].steps > most ? column[n].steps : most;
        return most;
    }

    DEVICE cell_item item(int i) const {
        const cell_item x = { i / w.units, i % w.units };
        return { i < items && own + x.unit < p.d && column[x.column].sequence >= 0 ? x.column : -1, x.unit };
    }
    /* Turn i is each sequence's step steps - 1 - i. */
    DEVICE bool there(const cell_item &x, int64_t turn) const { return x.column >= 0 && turn < column[x.column].steps; }

    DEVICE void read(const cell_item &it, int64_t turn, cell_saved<Cell> &x) const {
        if (!there(it, turn)) return;
        const cell_column &c = column[it.column];
        const int64_t j = own + it.unit, k = c.steps - 1 - turn;
        const int64_t gates = c.at(p.gates, k, 0, head) + j, y = c.at(p.y, k, 0, head) + j;
#pragma unroll
        for (int q = 0; q < Cell::SAVED; q++) x.g[q] = cell_word_of<T>(p.gates.data, gates + q * p.gates.gate);
        x.dy = cell_word_of<T>(p.dy.data, c.at(p.dy, k, 0, head) + j);
        x.after[0] = cell_word_of<T>(p.y.data, y);
#pragma unroll
        for (int n = 1; n < Cell::KINDS; n++)
            x.after[n] = cell_word_of<f32>(p.state[n].data, c.at(p.state[n], k, 0, head) + j);
        if (k > 0) {
            x.before[0] = cell_word_of<T>(p.y.data, y - p.y.step);
#pragma unroll
            for (int n = 1; n < Cell::KINDS; n++)
                x.before[n] = cell_word_of<f32>(p.state[n].data, c.at(p.state[n], k - 1, 0, head) + j);
            return;
        }
#pragma unroll
        for (int n = 0; n < Cell::KINDS; n++) {
            const float *from = c.state(p.start[n], head);
            x.before[n] = from ? cell_word_of<f32>(from, j) : 0;
        }
    }

    /* What has come of h's gradient from the step after. */
    DEVICE void take(const cell_item &it, int64_t turn) const {
        if (turn == 0 || !there(it, turn - 1) || (turn == column[it.column].steps && !p.start[0].data)) return;
        float *const state = states + it.column * w.units + it.unit;
        float sum = *state;
#pragma unroll 4
        for (int from = 0; from < w.blocks * w.slices; from++) sum += sums[place(turn, from, it.unit, it.column)];
        *state = sum;
    }

    DEVICE void element(const cell_item &it, int64_t turn, const cell_saved<Cell> &x) const {
        const int n = it.column, u = it.unit, i = n * w.units + u;
        const cell_column &c = column[n];
        const int64_t j = own + u, k = c.steps - 1 - turn, row = (c.batch * p.t + c.first + k) * p.h + head;
        float g[Cell::SAVED], before[Cell::KINDS], after[Cell::KINDS], ds[Cell::KINDS], dg[Cell::SAVED];
#pragma unroll
        for (int q = 0; q < Cell::SAVED; q++) g[q] = cell_get<T>(x.g[q]);
#pragma unroll
        for (int m = 0; m < Cell::KINDS; m++) {
            after[m] = m == 0 ? cell_get<T>(x.after[m]) : float_of_bits(x.after[m]);
            before[m] = m == 0 && k > 0 ? cell_get<T>(x.before[m]) : float_of_bits(x.before[m]);
            ds[m] = states[m * items + i];
        }
        ds[0] += cell_get<T>(x.dy);
        Cell::back(g, before, after, ds, dg);
#pragma unroll
        for (int q = 0; q < Cell::PRODUCTS; q++)
            cell_put_parts(parts(n), n % CELL_ACROSS, q * w.units + u, dg[Cell::product_row(q)]);
        float *const to_dg = p.dg + row * Cell::SAVED * p.d + j;
#pragma unroll
        for (int q = 0; q < Cell::SAVED; q++) to_dg[q * p.d] = dg[q];
        p.before[row * p.d + j] = before[0];
        const int64_t to = c.at(p.dwx, k, 0, head) + j;
#pragma unroll
        for (int q = 0; q < Cell::INPUTS; q++) store_one<T>(p.dwx.data, to + q * p.dwx.gate, dg[q]);
#pragma unroll
        for (int m = 0; m < Cell::KINDS; m++) states[m * items + i] = ds[m];
    }

    DEVICE void elements(int64_t turn) const {
#pragma unroll 1
        for (int i = thread_index(); i < items; i += CELL_WIDE_THREADS) {
            cell_saved<Cell> x = ahead;
            const cell_item it = i < CELL_WIDE_THREADS ? mine : item(i);
            if (i >= CELL_WIDE_THREADS) read(it, turn, x);
            take(it, turn);
            if (there(it, turn)) element(it, turn, x);
        }
    }

    /* The products of this turn, to the blocks that have the rows, for the next. */
    DEVICE void multiply(const cell_matrix<T> &matrix, const cell_turns &turns, int64_t next) const {
        if (turns.shared) turns.expect(next, w.blocks * w.slices * items * (int)sizeof(float));
        matrix.shares([&](const cell_share &s) {
            for (int tile = 0; tile < w.across; tile++) {
                cell_sum<cell_matrix<T>::PARTS> sum;
                matrix.multiply(s, parts(tile * CELL_ACROSS), sum);
                give(sum, turns, s, tile, next);
            }
        });
        if (turns.shared) turns.wait(next);
        sync_block(); /* others of the block may still read what the next elements are put over */
    }
    DEVICE void give(const cell_sum<cell_matrix<T>::PARTS> &sum, const cell_turns &turns, const cell_share &s, int tile,
                     int64_t next) const {
        const int lane = thread_index() % WARP, n = tile * CELL_ACROSS + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = (s.pair * 2 + i) * CELL_ROWS, rank = row / w.units, unit = row % w.units + lane / 4;
            if (rank >= w.blocks) continue;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float *const to = sums + place(next, cluster_rank() * w.slices + s.slice, unit + 8 * half, n);
                const float x = sum.get(i, 2 * half), y = sum.get(i, 2 * half + 1);
                if (turns.shared)
                    cluster_send(cluster_address(shared_address(to), rank), turns.barrier(next, rank), bits_of_float(x),
                                 bits_of_float(y));
                else
                    to[0] = x, to[1] = y;
            }
        }
    }

    DEVICE void end(bool astray) const {
        for (int i = thread_index(); i < items; i += CELL_WIDE_THREADS)
            for (int s = 0; s < Cell::GRADIENTS; s++) {
                const int64_t j = own + i % w.units;
                const cell_column &c = column[i / w.units];
                float *to = c.sequence >= 0 ? c.state(p.dstart[s], head) : nullptr;
                if (to && j < p.d) to[j] = astray ? not_a_number() : states[s * items + i];
            }
    }
};

template <class T, class Cell> DEVICE void cell_wide_backward(const cell_backward_wide_params &params) {
    const cell_backward_params &p = params.cell;
    const cell_wide &w = params.wide;
    const int64_t cluster = cluster_index(), group = cluster / p.h, head = cluster % p.h;
    const bool astray = cell_astray(p);
    if (group == w.groups) { /* the room behind the last of packed sequences */
        if (cluster_rank() > 0) return;
        const cell_task room = { p.count, head,  0, astray ? 0 : p.cu[p.count], astray ? p.t : p.t - p.cu[p.count],
                                 true,    astray };
        cell_clear<T>(room, p.dwx, Cell::INPUTS, p.d);
        cell_clear_rows<Cell>(p, room);
        return;
    }
    cell_backward_wide<T, Cell> f(params, head);
    cell_matrix<T> matrix(w, cell_pieces_of<T>(params, head), f.held);
    const cell_turns turns(w);
    matrix.fetch();
    f.begin(astray, group);
    turns.meet();
    const int64_t steps = f.steps();
    f.mine = f.item(thread_index());
    f.read(f.mine, 0, f.ahead);
    for (int64_t turn = 0; turn <= steps; turn++) {
        f.elements(turn);
        if (turn == steps) break;
        f.read(f.mine, turn + 1, f.ahead);
        sync_block();
        f.multiply(matrix, turns, turn + 1);
    }
    f.end(astray);
}

#define CELL_BACKWARD_WIDE_ENTRY(op, Cell, T) \
    ENTRY(op##_pack_##T, SIMT_THREADS, cell_backward_wide_params) { cell_wide_pack<T, Cell>(p); } \
    ENTRY_HELD(op##_wide_##T, CELL_WIDE_THREADS, 1, cell_backward_wide_params) { cell_wide_backward<T, Cell>(p); } \
    ENTRY(op##_weights_##T, SIMT_THREADS, cell_backward_wide_params) { cell_wide_weights<T, Cell>(p); }
#define CELL_BACKWARD_WIDE_ENTRIES(op, Cell) \
    CELL_BACKWARD_WIDE_ENTRY(op, Cell, f32) \
    CELL_BACKWARD_WIDE_ENTRY(op, Cell, bf16) CELL_BACKWARD_WIDE_ENTRY(op, Cell, f16)

#endif
