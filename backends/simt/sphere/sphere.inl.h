/* SPDX-License-Identifier: Apache-2.0 */
/* What steps over a sphere share on devices: the grid's numbers, and which node a thread has. */
#ifndef TRINE_SIMT_SPHERE_INL_H
#define TRINE_SIMT_SPHERE_INL_H

#include "backends/simt/conv/summed.h"
#include "backends/simt/core/simt.h"
#include "sphere.h"

#define SPHERE_FUNCTION DEVICE
#include "spec/sphere/grid.h"

/* Each thread has a row. */
DEVICE void sphere_grid(const sphere_params &p) {
    const int64_t j = block_index() * SIMT_THREADS + thread_index();
    if (j >= p.t) return;
    ((sphere_row *)p.rows)[j] = sphere_row_of(p.theta, p.t, p.p, j, p.diffuse);
    if (j < 2 || j >= p.t - 1) return;
    ((sphere_weno *)p.sides)[j] = sphere_weno_of(sphere_width(p.theta, p.t, j - 2), sphere_width(p.theta, p.t, j - 1),
                                                 sphere_width(p.theta, p.t, j), sphere_width(p.theta, p.t, j + 1));
}

template <class Value> DEVICE Value *sphere_line(const sphere_field &f, int64_t r, int64_t j) {
    return (Value *)f.data + r * f.r + j * f.row;
}

/* The node of a thread, or the pole of its block. */
struct sphere_node {
    int64_t r, j, k, west, east;
    bool pole, there;

    DEVICE sphere_node(const sphere_params &p) {
        const int64_t block = block_index();
        pole = block < 2 * p.r;
        if (pole) {
            r = block / 2, j = block % 2 * (p.t - 1), k = 0, there = true;
        } else {
            const int64_t number = (block - 2 * p.r) * SIMT_THREADS + thread_index(), n = (p.t - 2) * p.p;
            there = number < p.r * n;
            r = number / n, j = number % n / p.p + 1, k = number % p.p;
        }
        east = k + 1 < p.p ? k + 1 : 0;
        west = k > 0 ? k - 1 : p.p - 1;
    }
};

#endif
