/* SPDX-License-Identifier: Apache-2.0 */
/* What steps over a sphere share on devices: the grid's numbers, and which node a thread has. */
#ifndef TRINE_SIMT_SPHERE_INL_H
#define TRINE_SIMT_SPHERE_INL_H

#include "backends/simt/conv/summed.h"
#include "backends/simt/core/quotient.h"
#include "sphere.h"

#define SPHERE_FUNCTION DEVICE
#include "spec/sphere/grid.h"

/* WENO3's numbers of a side, rounded to what a field has. */
template <class Value> struct sphere_side {
    Value m[2], q[2], n_weight[2], p_weight[2], small[2];

    DEVICE sphere_side(const sphere_weno &w) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            m[i] = (Value)w.m[i], q[i] = (Value)w.q[i], small[i] = (Value)w.small[i];
            n_weight[i] = (Value)w.n_weight[i], p_weight[i] = (Value)w.p_weight[i];
        }
    }
};

/* Each thread has a row. */
DEVICE void sphere_grid(const sphere_params &p) {
    const int64_t j = block_index() * SIMT_THREADS + thread_index();
    if (j >= p.t) return;
    ((sphere_row *)p.rows)[j] = sphere_row_of(p.theta, p.t, p.p, j, p.diffuse);
    if (j == 1 || j >= p.t - 1) return;
    const double d = 2 * SPHERE_PI / (double)p.p;
    const bool along = j == 0;
    const sphere_weno w =
        sphere_weno_of(along ? d : sphere_width(p.theta, p.t, j - 2), along ? d : sphere_width(p.theta, p.t, j - 1),
                       along ? d : sphere_width(p.theta, p.t, j), along ? d : sphere_width(p.theta, p.t, j + 1));
    if (p.narrow)
        ((sphere_side<float> *)p.sides)[j] = w;
    else
        ((sphere_side<double> *)p.sides)[j] = w;
}

template <class Value> DEVICE Value *sphere_line(const sphere_field &f, int64_t r, int64_t j) {
    return (Value *)f.data + r * f.r + j * f.row;
}

/* The pole of a block, or its tile of a field, from row `top` and column `left` on, and its thread's node. */
struct sphere_node {
    int64_t r, top, left, j, k;
    bool pole, there;

    DEVICE sphere_node(const sphere_params &p) {
        const int64_t block = block_index(), tile = block - 2 * p.r;
        pole = tile < 0;
        if (pole) {
            r = block / 2, j = top = block % 2 * (p.t - 1), k = left = 0, there = true;
            return;
        }
        const int64_t line = quotient_below(p.tiles, tile, p.across);
        r = quotient_below(p.tiles, line, p.down);
        top = 1 + (line - r * p.down.by) * SPHERE_ROWS, left = (tile - line * p.across.by) * SPHERE_COLUMNS;
        j = top + thread_index() / SPHERE_COLUMNS, k = left + thread_index() % SPHERE_COLUMNS;
        there = j < p.t - 1 && k < p.p;
    }
};

#endif
