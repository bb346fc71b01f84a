/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of steps over a sphere pass to their device sides. */
#ifndef TRINE_SIMT_SPHERE_H
#define TRINE_SIMT_SPHERE_H

#include "backends/simt/core/params.h"

/* Rows of r fields, or of one that serves all; strides in elements. A column's is 1, or 0 where all are the same. */
typedef struct sphere_field {
    void *data;
    int64_t r, row, column;
} sphere_field;

enum {
    SPHERE_PARTS = 4,
    SPHERE_COLUMNS = 32, /* of a block's tile of nodes, */
    SPHERE_ROWS = SIMT_THREADS / SPHERE_COLUMNS
};

/* A stage: diffusion is last Y + before Y' + first f + last_rate D Y + first_rate D f, advection last Y + first f -
 * last_rate A Y. */
typedef struct sphere_params {
    const double *theta;                 /* NULL: even rows */
    void *rows;                          /* the grid's numbers, of each row, */
    void *sides;                         /* and of WENO3 of the side before it, first those along rows */
    sphere_field f, y, before, rate, to; /* y: of the stage before */
    sphere_field nu, v_theta, v_phi, part[SPHERE_PARTS];
    int64_t r, t, p, tiles;
    simt_divisor across, down; /* tiles of a field */
    double last, before_times, first, last_rate, first_rate;
    int32_t stage;
    bool weno, diffuse, narrow; /* narrow: fields are f32 */
} sphere_params;

#endif
