/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_diffuse on the CPU: stage by stage, a task having a row. The workspace has D f, two fields of which each stage
 * writes the one before the last's, and the grid's numbers. */
#include "sphere.h"
#include "spec/places/sphere_diffuse.h"

enum { RATE, ODD, EVEN, ROOMS };

typedef struct diffuse {
    sphere sphere;
    sphere_field nu, last, before, rate, to;
    const sphere_row *rows;
    sphere_rkl number;
    int stage;
} diffuse;

#define REAL float
#define NAME(name) name##_f32
#include "diffuse.inl.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "diffuse.inl.h"

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const diffuse *a = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        if (a->sphere.size == 4)
            row_f32(a, i);
        else
            row_f64(a, i);
    }
}

static size_t fields_of(const trine_call *call) {
    const trine_tensor *f = &call->tensor[SPHERE_DIFFUSE_F];
    return (size_t)cpu_round_up(ROOMS * f->shape[0] * f->shape[1] * f->shape[2] * (int64_t)trine_dtype_size(f->dtype),
                                64);
}
static size_t workspace(const trine_call *call) {
    return fields_of(call) + (size_t)call->dim[SPHERE_DIFFUSE_DIM_T] * sizeof(sphere_row);
}

static trine_status launch(const trine_call *call) {
    const trine_sphere_diffuse_args *args = call->args;
    diffuse a = { .sphere = sphere_of(call, &call->tensor[SPHERE_DIFFUSE_F], &call->tensor[SPHERE_DIFFUSE_Y],
                                      trine_call_given(call, SPHERE_DIFFUSE_THETA)),
                  .nu = sphere_shared_of(&call->tensor[SPHERE_DIFFUSE_NU]) };
    const sphere *s = &a.sphere;
    sphere_row *grid = (sphere_row *)(void *)(s->room + fields_of(call));
    const int team = sphere_team(s, 5 * (double)s->size);
    for (int64_t j = 0; j < s->t; j++) grid[j] = sphere_row_of(s->theta, s->t, s->p, j, 1);
    a.rows = grid;
    a.rate = sphere_room(s, RATE);
    a.last = a.before = s->f;
    for (int j = 1; j <= args->stages; j++) {
        a.stage = j;
        a.number = sphere_rkl_of(j, args->stages, (double)args->dt);
        a.to = j == args->stages ? s->y : sphere_room(s, j % 2 ? ODD : EVEN);
        cpu_shares(call, team, s->r * s->t, rows, &a);
        a.before = a.last;
        a.last = a.to;
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SPHERE_DIFFUSE_DIM_P, VL);
    trine_kernel_edge(edges, SPHERE_DIFFUSE_DIM_P, 2);
}

CPU_KERNELS(sphere_diffuse) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
