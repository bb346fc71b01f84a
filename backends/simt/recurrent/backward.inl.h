/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a recurrent cell on devices: the steps of a head of a sequence from the last to the first, which
 * leave the gates' gradients and the states before them in the workspace; then sums over all steps, a tile of dr a
 * block, in the order of the steps. The file that includes this has the cell. */
#ifndef TRINE_SIMT_RECURRENT_BACKWARD_INL_H
#define TRINE_SIMT_RECURRENT_BACKWARD_INL_H

#include "cells.inl.h"

/* State n before step k. */
template <class T>
DEVICE float cell_before(const cell_backward_params &p, const cell_task &a, int n, int64_t k, int64_t j) {
    if (k > 0)
        return n == 0 ? load_one<T>(p.y.data, a.at(p.y, k - 1, 0) + j)
                      : load_one<f32>(p.state[n].data, a.at(p.state[n], k - 1, 0) + j);
    const float *from = a.state(p.start[n]);
    return from ? from[j] : 0.0f;
}

/* An element of a step: its gates' gradients, and those of its states. */
template <class T, class Cell>
DEVICE void cell_element(const cell_backward_params &p, const cell_task &a, int64_t k, int64_t j, float *gradient,
                         float *dstate) {
    float g[Cell::SAVED], before[Cell::KINDS], after[Cell::KINDS], ds[Cell::KINDS], dg[Cell::SAVED];
#pragma unroll
    for (int q = 0; q < Cell::SAVED; q++) g[q] = load_one<T>(p.gates.data, a.at(p.gates, k, q) + j);
#pragma unroll
    for (int n = 0; n < Cell::KINDS; n++) {
        before[n] = cell_before<T>(p, a, n, k, j);
        after[n] = n == 0 ? load_one<T>(p.y.data, a.at(p.y, k, 0) + j)
                          : load_one<f32>(p.state[n].data, a.at(p.state[n], k, 0) + j);
        ds[n] = dstate[n * p.d + j];
    }
    ds[0] += load_one<T>(p.dy.data, a.at(p.dy, k, 0) + j);
    Cell::back(g, before, after, ds, dg);
    const int64_t row = a.row(p, k);
#pragma unroll
    for (int q = 0; q < Cell::SAVED; q++) p.dg[(row * Cell::SAVED + q) * p.d + j] = dg[q];
    p.before[row * p.d + j] = before[0];
#pragma unroll
    for (int q = 0; q < Cell::INPUTS; q++) store_one<T>(p.dwx.data, a.at(p.dwx, k, q) + j, dg[q]);
#pragma unroll
    for (int q = 0; q < Cell::PRODUCTS; q++) gradient[q * p.d + j] = dg[Cell::product_row(q)];
#pragma unroll
    for (int n = 0; n < Cell::KINDS; n++) dstate[n * p.d + j] = ds[n];
}

/* Adds sum over rows c of r[c][k] gradient[c] to out[k]: of few columns some threads have each, a part of the rows. */
template <class T>
DEVICE void cell_product_back(const cell_backward_params &p, int64_t head, int products, const float *gradient,
                              float *out) {
    SHARED float part[SIMT_THREADS];
    const int parts = p.d < SIMT_THREADS ? SIMT_THREADS / (int)p.d : 1,
              width = p.d < SIMT_THREADS ? (int)p.d : SIMT_THREADS;
    const int own = thread_index() / width, column = thread_index() % width;
    for (int64_t first = 0; first < p.d; first += width) {
        const int64_t k = first + column;
        float sum = 0;
        if (own < parts && k < p.d)
            for (int q = 0; q < products; q++) {
                const typename T::bits *r = (const typename T::bits *)p.r.data + head * p.r.batch + q * p.r.gate + k;
#pragma unroll 4
                for (int64_t j = own; j < p.d; j += parts)
                    sum = fused(gradient[q * p.d + j], T::get(r[j * p.r.head]), sum);
            }
        part[thread_index()] = sum;
        sync_block();
        if (own == 0 && k < p.d) {
            float total = out[k];
            for (int i = 0; i < parts; i++) total += part[i * width + column];
            out[k] = total;
        }
        sync_block();
    }
}

/* The room's rows in the workspace are 0, or NaN. */
template <class Cell> DEVICE void cell_clear_rows(const cell_backward_params &p, const cell_task &a) {
    const float x = a.astray ? not_a_number() : 0.0f;
    for (int64_t k = 0; k < a.steps; k++)
        for (int64_t j = thread_index(); j < p.d; j += SIMT_THREADS) {
            p.before[a.row(p, k) * p.d + j] = x;
            for (int q = 0; q < Cell::SAVED; q++) p.dg[(a.row(p, k) * Cell::SAVED + q) * p.d + j] = x;
        }
}

template <class T, class Cell> DEVICE void cell_backward(const cell_backward_params &p) {
    const cell_task a = cell_task_of(p);
    if (a.room) {
        cell_clear<T>(a, p.dwx, Cell::INPUTS, p.d);
        cell_clear_rows<Cell>(p, a);
        return;
    }
    float *const gradient = cell_rows<Cell::PRODUCTS + Cell::KINDS>(p), *const dstate = gradient + Cell::PRODUCTS * p.d;
    for (int64_t j = thread_index(); j < p.d; j += SIMT_THREADS)
        for (int n = 0; n < Cell::KINDS; n++) {
            const float *from = n < Cell::GRADIENTS ? a.state(p.dlast[n]) : nullptr;
            dstate[n * p.d + j] = from ? from[j] : 0.0f;
        }
    sync_block();
    for (int64_t k = a.steps - 1; k >= 0; k--) {
        for (int64_t j = thread_index(); j < p.d; j += SIMT_THREADS)
            cell_element<T, Cell>(p, a, k, j, gradient, dstate);
        sync_block();
        if (k > 0 || p.start[0].data) cell_product_back<T>(p, a.head, Cell::PRODUCTS, gradient, dstate);
    }
    for (int64_t j = thread_index(); j < p.d; j += SIMT_THREADS)
        for (int n = 0; n < Cell::GRADIENTS; n++) {
            float *to = a.state(p.dstart[n]);
            if (to) to[j] = a.astray ? not_a_number() : dstate[n * p.d + j];
        }
}

/* A tile of dr, of 16 elements j and 16 k, over all steps; the first along k sums dbias as well. */
template <class T, class Cell> DEVICE void cell_sums(const cell_backward_params &p) {
    SHARED float dg[CELL_TILE][CELL_TILE + 1], h[CELL_TILE][CELL_TILE + 1];
    const int64_t tile = block_index() % (p.tiles * p.tiles), rest = block_index() / (p.tiles * p.tiles);
    const int row = (int)(rest % Cell::SAVED), across = thread_index() % CELL_TILE, down = thread_index() / CELL_TILE;
    const int64_t head = rest / Cell::SAVED, first_j = tile / p.tiles * CELL_TILE, first_k = tile % p.tiles * CELL_TILE,
                  steps = p.b * p.t;
    int product = -1;
    for (int q = 0; q < Cell::PRODUCTS; q++)
        if (Cell::product_row(q) == row) product = q;
    float sum = 0, bias = 0;
    for (int64_t first = 0; first < steps; first += CELL_TILE) {
        const int64_t at = (first + down) * p.h + head;
        const bool there = first + down < steps;
        dg[down][across] =
            there && first_j + across < p.d ? p.dg[(at * Cell::SAVED + row) * p.d + first_j + across] : 0.0f;
        h[down][across] = there && first_k + across < p.d ? p.before[at * p.d + first_k + across] : 0.0f;
        sync_block();
#pragma unroll
        for (int i = 0; i < CELL_TILE; i++) {
            sum = fused(dg[i][down], h[i][across], sum);
            bias += dg[i][down];
        }
        sync_block();
    }
    const int64_t j = first_j + down, k = first_k + across;
    if (j < p.d && k < p.d && product >= 0)
        store_one<T>(p.dr.data, head * p.dr.batch + product * p.dr.gate + j * p.dr.head + k, sum);
    if (j < p.d && k == 0 && p.dbias.data)
        store_one<T>(p.dbias.data, row * p.dbias.gate + head * p.dbias.head + j, bias);
}

#define CELL_ENTRIES(op, Cell) \
    ENTRY(op##_f32, SIMT_THREADS, cell_backward_params) { cell_backward<f32, Cell>(p); } \
    ENTRY(op##_bf16, SIMT_THREADS, cell_backward_params) { cell_backward<bf16, Cell>(p); } \
    ENTRY(op##_f16, SIMT_THREADS, cell_backward_params) { cell_backward<f16, Cell>(p); } \
    ENTRY(op##_sums_f32, SIMT_THREADS, cell_backward_params) { cell_sums<f32, Cell>(p); } \
    ENTRY(op##_sums_bf16, SIMT_THREADS, cell_backward_params) { cell_sums<bf16, Cell>(p); } \
    ENTRY(op##_sums_f16, SIMT_THREADS, cell_backward_params) { cell_sums<f16, Cell>(p); }

#endif
