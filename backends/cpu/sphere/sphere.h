/* SPDX-License-Identifier: Apache-2.0 */
/* What steps over a sphere share on the CPU: fields, rooms in the workspace, and tasks of a row each. */
#ifndef TRINE_CPU_SPHERE_H
#define TRINE_CPU_SPHERE_H

#include <stdbool.h>
#include <string.h>

#include <trine/sphere.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/sphere/grid.h"
#include "spec/sphere/stages.h"

/* Rows of r fields, or of one that serves all; strides in elements. A column's is 1, or 0 where all are the same. */
typedef struct sphere_field {
    void *data;
    int64_t r, row, column;
} sphere_field;

static inline sphere_field sphere_field_of(const trine_tensor *t) {
    return (sphere_field){ t->data, t->stride[0], t->stride[1], t->stride[2] };
}
static inline sphere_field sphere_shared_of(const trine_tensor *t) {
    return (sphere_field){ t->data, 0, t->stride[0], t->stride[1] };
}

typedef struct sphere {
    const trine_call *call;
    int64_t r, t, p, size; /* size: bytes of an element */
    const double *theta;   /* NULL: even rows */
    sphere_field f, y;
    char *room;
} sphere;

static inline sphere sphere_of(const trine_call *call, const trine_tensor *f, const trine_tensor *y,
                               const trine_tensor *theta) {
    return (sphere){ .call = call,
                     .r = f->shape[0],
                     .t = f->shape[1],
                     .p = f->shape[2],
                     .size = (int64_t)trine_dtype_size(f->dtype),
                     .theta = theta ? theta->data : NULL,
                     .f = sphere_field_of(f),
                     .y = sphere_field_of(y),
                     .room = call->workspace };
}

/* Field `number` of the workspace, which has them one behind the other. */
static inline sphere_field sphere_room(const sphere *s, int number) {
    const int64_t n = s->t * s->p;
    return (sphere_field){ s->room + number * s->r * n * s->size, n, s->p, 1 };
}

static inline int sphere_team(const sphere *s, double bytes) {
    return cpu_team(s->call, s->r * s->t, (int64_t)fmin((double)s->r * (double)s->t * (double)s->p * bytes, 0x1p62));
}

#endif
