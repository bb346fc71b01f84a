/* SPDX-License-Identifier: Apache-2.0 */
/* What the device kernels of products of groups of rows share: the launch that divides the groups' rows into tiles,
 * which begin with their group; where rows come from; and the end of a row. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_TILES_INL_H
#define TRINE_SIMT_GROUPED_MATMUL_TILES_INL_H

#include <trine/matmul.h>

#include "grouped_matmul.h"
#include "backends/simt/core/math.h"

/* Whatever the offsets say, rows are those of y. */
DEVICE int32_t grouped_offset(const grouped_params &p, int32_t g) {
    const int32_t at = p.offsets[g];
    return at < 0 ? 0 : at < p.p ? at : p.p;
}

/* Neighbouring rows that are of one group, or of none. */
struct grouped_part {
    int32_t group, first, last;
};

/* Number 0 are the rows before the first group, the last number those behind the last; with counts a group has two
 * numbers, its rows and those that are not computed. */
DEVICE grouped_part grouped_part_of(const grouped_params &p, int32_t number) {
    const int32_t parts = p.counts ? 2 : 1, g = (number - 1) / parts;
    if (number == 0) return { -1, 0, grouped_offset(p, 0) };
    if (number > p.e * parts) return { -1, grouped_offset(p, p.e), p.p };
    const int32_t first = grouped_offset(p, g), last = grouped_offset(p, g + 1);
    if (!p.counts) return { g, first, last };
    const int32_t count = p.counts[g] > 0 ? p.counts[g] : 0, middle = count < last - first ? first + count : last;
    return (number - 1) % parts == 0 ? grouped_part{ g, first, middle } : grouped_part{ -1, middle, last };
}

/* By one block. */
DEVICE void grouped_plan(const grouped_params &p) {
    SHARED int32_t part[SIMT_THREADS];
    const int thread = thread_index();
    const int32_t numbers = p.e * (p.counts ? 2 : 1) + 2;
    int32_t base = 0;
    for (int32_t from = 0; from < numbers; from += SIMT_THREADS) {
        const grouped_part own = from + thread < numbers ? grouped_part_of(p, from + thread) : grouped_part{ -1, 0, 0 };
        const int32_t count = own.last > own.first ? (own.last - own.first + p.rows - 1) / p.rows : 0;
        part[thread] = count;
        sync_block();
        int32_t at = base;
        for (int i = 0; i < thread; i++) at += part[i];
        for (int32_t i = 0; i < count && at + i < p.tiles; i++) {
            const int32_t start = own.first + i * p.rows;
            p.tile[at + i] = { own.group, start, start + p.rows < own.last ? start + p.rows : own.last };
        }
        for (int i = 0; i < SIMT_THREADS; i++) base += part[i];
        sync_block();
    }
    for (int32_t i = base + thread; i < p.tiles; i += SIMT_THREADS) p.tile[i] = { -1, 0, 0 };
}

/* The row of x that row i of y is made of; -1: none. */
DEVICE int64_t grouped_source(const grouped_params &p, int32_t i) {
    if (!p.gather) return i;
    const int64_t from = p.gather[i];
    return from < 0 || from >= p.r * p.divide ? -1 : from / p.divide;
}

DEVICE float grouped_activate(float x, int32_t activation) {
    return activation == TRINE_ACTIVATION_RELU        ? x < 0 ? 0 : x
           : activation == TRINE_ACTIVATION_GELU_TANH ? x * gelu_logistic(x).of
           : activation == TRINE_ACTIVATION_GELU_ERF  ? x * normal_of(x).cdf
           : activation == TRINE_ACTIVATION_SILU      ? x * sigmoid(x)
                                                      : x;
}

/* The end of a row of y: what its sums go through. */
struct grouped_row {
    int64_t at; /* in y */
    float factor;
    bool there, nothing;

    DEVICE grouped_row(const grouped_params &p, const grouped_tile &tile, int32_t row) {
        there = row < tile.last;
        nothing = there && (tile.group < 0 || grouped_source(p, row) < 0);
        factor = there && !nothing && p.row_scale ? p.row_scale[row] : 1.0f;
        at = row * p.y.row;
    }
    template <class O> DEVICE float end(const grouped_params &p, int32_t group, int64_t column, float x) const {
        if (nothing) return 0;
        const int64_t b = group * p.bias_group + column;
        if (p.bias) x += p.wide_bias ? load_one<f32>(p.bias, b) : load_one<O>(p.bias, b);
        x = grouped_activate(x, p.activation);
        return p.row_scale ? x * factor : x;
    }
};

#endif
