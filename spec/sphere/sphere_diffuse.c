/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_diffuse: the table and the reference, which counts its roundings as it goes (running.h). */
#include "running.h"

#define ARGS trine_sphere_diffuse_args

/* The mean of nu at two corners, times a number of the grid, times a difference: in any order, so that two of them
 * whose product is below the normal numbers may have the third after it. */
static running flow(running_kind k, running number, running a, running b, running here, running there) {
    const running mean = running_product(k, running_exact(0.5), running_add(k, a, b));
    running all = running_product(k, running_product(k, number, mean), running_difference(k, there, here));
    all.e += k.tiny * (fabs(number.v) + number.e + fabs(mean.v) + mean.e);
    return running_checked(k, all, false);
}

/* D of a field at a node; of a pole it is the same for all columns but for the field there. */
static running at_node(const sphere_grid *g, const running *nu, const running *f, int64_t j, int64_t k) {
    const running_kind kind = g->kind;
    const int64_t p = g->p, east = sphere_column(g, k + 1), west = sphere_column(g, k - 1);
    const sphere_row row = sphere_row_of(g->theta, g->t, p, j, 1);
    const running *const above = nu + (j - 1) * p, *const below = nu + j * p, here = f[j * p + k];
    const running along = running_number(kind, row.along);
    return running_sum(
        kind, 4,
        (running[]){ flow(kind, running_number(kind, row.north), above[k], above[east], here, f[(j - 1) * p + k]),
                     flow(kind, running_number(kind, row.south), below[k], below[east], here, f[(j + 1) * p + k]),
                     flow(kind, along, above[k], below[k], here, f[j * p + west]),
                     flow(kind, along, above[east], below[east], here, f[j * p + east]) });
}

static running at_pole(const sphere_grid *g, const running *nu, const running *f, int64_t j) {
    const int64_t p = g->p, next = j == 0 ? 1 : j - 1;
    const sphere_row row = sphere_row_of(g->theta, g->t, p, j, 1);
    const running *const corner = nu + (j == 0 ? 0 : j - 1) * p, one = running_exact(1);
    running *terms = malloc(sizeof *terms * (size_t)(p + 1));
    /* twice the mean */
    for (int64_t k = 0; k < p; k++)
        terms[k] = running_product(
            g->kind, running_exact(2),
            flow(g->kind, one, corner[k], corner[sphere_column(g, k + 1)], f[j * p + k], f[next * p + k]));
    const running sum =
        running_product(g->kind, running_number(g->kind, row.north + row.south), running_sum(g->kind, p, terms));
    free(terms);
    return sum;
}

static void operate(const sphere_grid *g, const running *nu, const running *f, running *to) {
    for (int64_t j = 0; j < g->t; j++) {
        const bool pole = j == 0 || j == g->t - 1;
        const running all = pole ? at_pole(g, nu, f, j) : running_exact(0);
        for (int64_t k = 0; k < g->p; k++) to[j * g->p + k] = pole ? all : at_node(g, nu, f, j, k);
    }
}

/* Room for D of the last and of the first, the one before the last, and the last. */
static void step(const sphere_grid *g, const running *nu, const running *f, double dt, int stages, running *room,
                 running *y) {
    const int64_t n = g->t * g->p;
    running *rate = room, *first_rate = room + n, *before = room + 2 * n, *last = room + 3 * n;
    operate(g, nu, f, first_rate);
    for (int64_t i = 0; i < n; i++) before[i] = last[i] = f[i];
    for (int j = 1; j <= stages; j++) {
        const sphere_rkl c = sphere_rkl_of(j, stages, dt);
        const running_kind k = g->kind;
        operate(g, nu, last, rate);
        for (int64_t i = 0; i < n; i++)
            y[i] = running_sum(k, j == 1 ? 2 : 5,
                               (running[]){ running_product(k, running_number(k, c.first), f[i]),
                                            running_product(k, running_number(k, c.last_rate), rate[i]),
                                            running_product(k, running_number(k, c.last), last[i]),
                                            running_product(k, running_number(k, c.before), before[i]),
                                            running_product(k, running_number(k, c.first_rate), first_rate[i]) });
        for (int64_t i = 0; i < n; i++) before[i] = last[i], last[i] = y[i];
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    bool overflow = false;
    const sphere_grid g = sphere_grid_of(ref, &overflow);
    const int64_t n = g.t * g.p;
    running *f = sphere_read(trine_ref_value(ref, "f"), g.r * n),
            *nu = sphere_read(trine_ref_value(ref, "nu"), (g.t - 1) * g.p),
            *y = malloc(sizeof *y * (size_t)(g.r * n + 1)), *room = malloc(sizeof *room * (size_t)(4 * n + 1));
    for (int64_t r = 0; r < g.r; r++) step(&g, nu, f + r * n, (double)args->dt, args->stages, room, y + r * n);
    sphere_write(ref, &g, y);
    free(f), free(nu), free(y), free(room);
}

const trine_spec trine_spec_sphere_diffuse = {
    SPEC(sphere_diffuse),
    .summary = "A step of diffusion over a sphere by super time stepping (RKL2)",
    .formula = "y = Y_s of s stages, Y_0 = f, Y_1 = f + w/3 dt D f, Y_j = m_j Y_(j-1) + n_j Y_(j-2) + (1 - m_j - n_j) "
               "f + m_j w dt D Y_(j-1) - (1 - b_(j-1)) m_j w dt D f; b_0 = b_1 = b_2 = 1/3, b_j = (j^2 + j - 2)/(2 j "
               "(j + 1)), w = 4/(s^2 + s - 2), m_j = (2 j - 1)/j b_j/b_(j-1), n_j = -(j - 1)/j b_j/b_(j-2); D f = "
               "div(nu grad f) by the cells of a grid of latitudes theta and longitudes 2 pi k/p",
    .source = "Meyer, Balsara and Aslam 2014, section 2.2; HipFT (Caplan et al. 2025)",
    .tensors = { TENSOR(f, IN, "T", "[r] t p"), TENSOR(nu, IN | BROADCAST, "T", "t-1 p", .fill = "positive"),
                 TENSOR(theta, IN | OPTIONAL, "f64", "t", .fill = "derived"),
                 TENSOR(y, OUT, "T", "[r] t p", .terms = "1") },
    .params = { PARAM(dt, F32, .values = "0.001 0 0.0001 0.01 1", .min = 0, .doc = "the step in time"),
                PARAM(stages, I32, .values = "3 2 5 7", .fallback = 3, .min = 2, .max = SPHERE_MOST_STAGES,
                      .doc = "of the step") },
    .types = { "T=f32|f64" },
    .require = { "t >= 3" },
    .alias = { "y=f" },
    .flops = "60*r*t*p",
    .independent = "r",
    .sizes = { "r: 1 0 2 3", "t: 5 3 4 8 17 33", "p: 8 0 1 2 3 5 31 64 100 1000" },
    .cases = { "half a degree f64: T=f64 r=1 t=361 p=720 dt=0.0001 stages=9",
               "eight of one degree f64: T=f64 r=8 t=181 p=360 dt=0.0001 stages=9",
               "quarter of a degree f32: T=f32 r=1 t=721 p=1440 dt=0.0001 stages=9" },
    .reference = reference,
    .prepare = sphere_uneven_rows,
};
