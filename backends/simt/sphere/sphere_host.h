/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that steps over a sphere share. */
#ifndef TRINE_SIMT_SPHERE_HOST_H
#define TRINE_SIMT_SPHERE_HOST_H

#include <trine/sphere.h>

#include "backends/simt/core/host.h"
#include "spec/sphere/grid.h"
#include "spec/sphere/stages.h"
#include "sphere.h"

static inline sphere_field sphere_field_of(const trine_tensor *t) {
    return (sphere_field){ t->data, t->stride[0], t->stride[1], t->stride[2] };
}
static inline sphere_field sphere_shared_of(const trine_tensor *t) {
    return (sphere_field){ t->data, 0, t->stride[0], t->stride[1] };
}

static inline sphere_params sphere_params_of(const trine_tensor *f, const trine_tensor *theta) {
    const int64_t p = f->shape[2], across = simt_blocks(p + (p == 0), SPHERE_COLUMNS),
                  down = simt_blocks(f->shape[1] - 2, SPHERE_ROWS);
    return (sphere_params){ .theta = theta ? theta->data : NULL,
                            .f = sphere_field_of(f),
                            .y = sphere_field_of(f),
                            .before = sphere_field_of(f),
                            .r = f->shape[0],
                            .t = f->shape[1],
                            .p = p,
                            .tiles = f->shape[0] * down * across,
                            .across = simt_divisor_of(across),
                            .down = simt_divisor_of(down),
                            .narrow = f->dtype == TRINE_F32 };
}

/* Room for `fields` of all r and `shared` that serve all, and the bytes of the grid's numbers. */
static inline size_t sphere_fields(const sphere_params *p, int fields, int shared, trine_dtype type) {
    const int64_t bytes = (fields * p->r + shared) * p->t * p->p * (int64_t)trine_dtype_size(type);
    return (size_t)((bytes + 63) / 64 * 64);
}
static inline size_t sphere_numbers(const sphere_params *p) {
    return (size_t)p->t * (sizeof(sphere_row) + sizeof(sphere_weno));
}

/* Field `number` of the workspace. */
static inline sphere_field sphere_room(const trine_call *call, const sphere_params *p, int64_t number,
                                       trine_dtype type) {
    const int64_t n = p->t * p->p;
    return (sphere_field){ (char *)call->workspace + number * p->r * n * (int64_t)trine_dtype_size(type), n, p->p, 1 };
}

/* Blocks of a stage: of each pole one, and of each tile. */
static inline int64_t sphere_blocks(const sphere_params *p) { return 2 * p->r + p->tiles; }

/* The grid's numbers, which lie behind so many bytes of fields. */
static inline trine_status sphere_launch_grid(const trine_call *call, sphere_params *p, size_t fields) {
    const simt_function grid = { .step = "grid" };
    p->rows = (char *)call->workspace + fields;
    p->sides = (sphere_row *)p->rows + p->t;
    return simt_launch(call, &grid, simt_blocks(p->t, SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
}

static inline void sphere_edges(trine_kernel_edges *edges, int columns, int rows) {
    trine_kernel_edge(edges, columns, SPHERE_COLUMNS);
    trine_kernel_edge(edges, columns, SIMT_THREADS);
    trine_kernel_edge(edges, rows, SPHERE_ROWS + 2);
    trine_kernel_edge(edges, rows, SIMT_THREADS);
}

#endif
