/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a recurrent cell on devices: each thread has sums of a product, then elements of the states. Matrices
 * are read from the cache, turned so that neighbours read neighbours. The file that includes this has the cell.
 *
 * NOTES. Floor: wx once and y once; but a step cannot begin before the last has ended, so that it is as long as d
 * multiply-adds of a thread and two barriers, and heads of all sequences are what keeps a device busy. */
#ifndef TRINE_SIMT_RECURRENT_FORWARD_INL_H
#define TRINE_SIMT_RECURRENT_FORWARD_INL_H

#include "cells.inl.h"

/* r[q][j][k] of a head becomes row k, column q d + j. */
template <class T, class Cell> DEVICE void cell_turn(const cell_params &p) {
    const int64_t columns = Cell::PRODUCTS * p.d, at = block_index() * SIMT_THREADS + thread_index();
    if (at >= p.h * p.d * columns) return;
    const int64_t row = at / columns, column = at % columns, head = row / p.d, k = row % p.d, q = column / p.d,
                  j = column % p.d;
    p.matrices[at] = load_one<T>(p.r.data, head * p.r.batch + q * p.r.gate + j * p.r.head + k);
}

/* Sums of a product: all of its columns over the elements of h. */
DEVICE void cell_product(const float *matrix, const float *h, int64_t rows, int64_t columns, float *out) {
    for (int64_t column = thread_index(); column < columns; column += SIMT_THREADS) {
        float sum = 0;
#pragma unroll 8
        for (int64_t k = 0; k < rows; k++) sum = fused(h[k], matrix[k * columns + column], sum);
        out[column] = sum;
    }
}

template <class T, class Cell>
DEVICE void cell_element(const cell_params &p, const cell_task &a, int64_t k, int64_t j, const float *product,
                         float *state) {
    float wx[Cell::INPUTS], x[Cell::PRODUCTS], bias[Cell::SAVED], g[Cell::SAVED], s[Cell::KINDS];
#pragma unroll
    for (int q = 0; q < Cell::INPUTS; q++) wx[q] = load_one<T>(p.wx.data, a.at(p.wx, k, q) + j);
#pragma unroll
    for (int q = 0; q < Cell::PRODUCTS; q++) x[q] = product[q * p.d + j];
#pragma unroll
    for (int q = 0; q < Cell::SAVED; q++)
        bias[q] = p.bias.data ? load_one<T>(p.bias.data, q * p.bias.gate + a.head * p.bias.head + j) : 0.0f;
#pragma unroll
    for (int n = 0; n < Cell::KINDS; n++) s[n] = state[n * p.d + j];
    Cell::gates(wx, x, bias, g);
    Cell::next(g, s);
    store_one<T>(p.y.data, a.at(p.y, k, 0) + j, s[0]);
#pragma unroll
    for (int q = 0; q < Cell::SAVED; q++)
        if (p.gates.data) store_one<T>(p.gates.data, a.at(p.gates, k, q) + j, g[q]);
#pragma unroll
    for (int n = 0; n < Cell::KINDS; n++) {
        state[n * p.d + j] = s[n];
        if (n > 0 && p.state[n].data) store_one<f32>(p.state[n].data, a.at(p.state[n], k, 0) + j, s[n]);
    }
}

template <class T, class Cell> DEVICE void cell_forward(const cell_params &p) {
    const cell_task a = cell_task_of(p);
    if (a.room) {
        cell_clear<T>(a, p.y, 1, p.d);
        cell_clear<T>(a, p.gates, Cell::SAVED, p.d);
        for (int n = 1; n < Cell::KINDS; n++) cell_clear<f32>(a, p.state[n], 1, p.d);
        return;
    }
    /* h comes first, since its elements are read several at a time */
    float *const state = cell_rows<Cell::PRODUCTS + Cell::KINDS>(p), *const product = state + Cell::KINDS * p.d;
    for (int64_t j = thread_index(); j < p.d; j += SIMT_THREADS) {
        for (int q = 0; q < Cell::PRODUCTS; q++) product[q * p.d + j] = 0;
        for (int n = 0; n < Cell::KINDS; n++) {
            const float *from = a.state(p.start[n]);
            state[n * p.d + j] = from ? from[j] : 0.0f;
        }
    }
    sync_block();
    const int64_t columns = Cell::PRODUCTS * p.d;
    for (int64_t k = 0; k < a.steps; k++) {
        if (k > 0 || p.start[0].data) cell_product(p.matrices + a.head * p.d * columns, state, p.d, columns, product);
        sync_block();
        for (int64_t j = thread_index(); j < p.d; j += SIMT_THREADS) cell_element<T, Cell>(p, a, k, j, product, state);
        sync_block();
    }
    for (int64_t j = thread_index(); j < p.d; j += SIMT_THREADS)
        for (int n = 0; n < Cell::KINDS; n++) {
            float *to = a.state(p.last[n]);
            if (to) to[j] = a.astray ? not_a_number() : state[n * p.d + j];
        }
}

#define CELL_ENTRIES(op, Cell) \
    ENTRY(op##_turn_f32, SIMT_THREADS, cell_params) { cell_turn<f32, Cell>(p); } \
    ENTRY(op##_turn_bf16, SIMT_THREADS, cell_params) { cell_turn<bf16, Cell>(p); } \
    ENTRY(op##_turn_f16, SIMT_THREADS, cell_params) { cell_turn<f16, Cell>(p); } \
    ENTRY(op##_f32, SIMT_THREADS, cell_params) { cell_forward<f32, Cell>(p); } \
    ENTRY(op##_bf16, SIMT_THREADS, cell_params) { cell_forward<bf16, Cell>(p); } \
    ENTRY(op##_f16, SIMT_THREADS, cell_params) { cell_forward<f16, Cell>(p); }

#endif
