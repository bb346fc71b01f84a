/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_advect on the CPU: stage by stage, a task having a row. The workspace has two fields that stages write by
 * turns, four of parts of velocities, the grid's numbers, and lines of each thread. */
#include "sphere.h"
#include "spec/places/sphere_advect.h"

enum { ODD, EVEN, ROOMS, PARTS = 4, LINES = 5 };

typedef struct advect {
    sphere sphere;
    sphere_field v_theta, v_phi, last, to, part[PARTS];
    const sphere_row *rows;
    const sphere_weno *sides; /* before each row */
    sphere_weno around;
    sphere_ssp number;
    char *lines;
    int64_t slice;
    bool weno;
} advect;

#define REAL float
#define NAME(name) name##_f32
#include "advect.inl.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_f64
#include "advect.inl.h"

static void split_rows(const void *context, int64_t first, int64_t last, int thread) {
    const advect *a = context;
    (void)thread;
    for (int64_t j = first; j < last; j++) {
        if (a->sphere.size == 4)
            split_f32(a, j);
        else
            split_f64(a, j);
    }
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const advect *a = context;
    if (a->sphere.size == 4)
        rows_f32(a, first, last, thread);
    else
        rows_f64(a, first, last, thread);
}

static int team_of(const sphere *s) { return sphere_team(s, 12 * (double)s->size); }

/* Where the rooms of the workspace end. */
typedef struct ends {
    size_t fields, parts, rows, sides, lines, slice;
} ends;

static ends ends_of(const trine_call *call, const sphere *s) {
    const trine_sphere_advect_args *args = call->args;
    const int64_t n = s->t * s->p * s->size, parts = args->flux == TRINE_SPHERE_WENO3 ? PARTS : 0;
    ends e = { .fields = (size_t)(ROOMS * s->r * n), .slice = (size_t)cpu_round_up((LINES * s->p + 16) * s->size, 64) };
    e.parts = e.fields + (size_t)(parts * n);
    e.parts = (size_t)cpu_round_up((int64_t)e.parts, 64);
    e.rows = e.parts + (size_t)s->t * sizeof(sphere_row);
    e.sides = (size_t)cpu_round_up((int64_t)(e.rows + (size_t)s->t * sizeof(sphere_weno)), 64);
    e.lines = e.sides + (size_t)team_of(s) * e.slice;
    return e;
}

static sphere sphere_called(const trine_call *call) {
    return sphere_of(call, &call->tensor[SPHERE_ADVECT_F], &call->tensor[SPHERE_ADVECT_Y],
                     trine_call_given(call, SPHERE_ADVECT_THETA));
}

static size_t workspace(const trine_call *call) {
    const sphere s = sphere_called(call);
    return ends_of(call, &s).lines;
}

static trine_status launch(const trine_call *call) {
    const trine_sphere_advect_args *args = call->args;
    advect a = { .sphere = sphere_called(call),
                 .v_theta = sphere_shared_of(&call->tensor[SPHERE_ADVECT_V_THETA]),
                 .v_phi = sphere_shared_of(&call->tensor[SPHERE_ADVECT_V_PHI]),
                 .weno = args->flux == TRINE_SPHERE_WENO3 };
    const sphere *s = &a.sphere;
    const ends e = ends_of(call, s);
    const int team = team_of(s), stages = sphere_ssp_stages(args->steps);
    const double d = 2 * SPHERE_PI / (double)s->p;
    sphere_row *grid = (sphere_row *)(void *)(s->room + e.parts);
    sphere_weno *sides = (sphere_weno *)(void *)(s->room + e.rows);
    for (int64_t j = 0; j < s->t; j++) grid[j] = sphere_row_of(s->theta, s->t, s->p, j, 0);
    for (int64_t j = 2; j < s->t - 1; j++)
        sides[j] = sphere_weno_of(sphere_width(s->theta, s->t, j - 2), sphere_width(s->theta, s->t, j - 1),
                                  sphere_width(s->theta, s->t, j), sphere_width(s->theta, s->t, j + 1));
    a.rows = grid, a.sides = sides, a.around = sphere_weno_of(d, d, d, d);
    a.lines = s->room + e.sides, a.slice = (int64_t)e.slice;
    for (int i = 0; i < PARTS; i++)
        a.part[i] = (sphere_field){ s->room + e.fields + (size_t)(i * s->t * s->p * s->size), 0, s->p, 1 };
    if (a.weno) cpu_shares(call, team < s->t ? team : (int)s->t, s->t, split_rows, &a);
    a.last = s->f;
    for (int j = 1; j <= stages; j++) {
        a.number = sphere_ssp_of(j, args->steps, (double)args->dt);
        a.to = j == stages ? s->y : sphere_room(s, j % 2 ? ODD : EVEN);
        cpu_shares(call, team, s->r * s->t, rows, &a);
        a.last = a.to;
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SPHERE_ADVECT_DIM_P, VL);
    trine_kernel_edge(edges, SPHERE_ADVECT_DIM_P, 2);
}

CPU_KERNELS(sphere_advect) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
