/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_advect: the table and the reference, which counts its roundings as it goes (running.h).
 *
 * WENO3's weighted mean of a and b by u and w is a + (b - a) s, s = w/(u + w) the logistic function of log w - log u,
 * whose slope is at most 1/4. A kernel's mean of numbers off by e lies within the larger e and |b - a| times what s is
 * off by: at most 1, and a quarter of what the logarithms are. log(small + 4 (M x)^2) has the slope 8 M^2 x/(small + 4
 * M^2 x^2), at most 2 M/sqrt(small) and at most 2/|x|; twice that for the square, and 128 roundings in all of the
 * grid's numbers, squares, sums and the quotient. */
#include "running.h"

#define ARGS trine_sphere_advect_args

/* A side between cells 1 and 2 of four: of cells 0 to 2 or 3 to 1 the values that flow towards it. */
typedef struct weight {
    double value, logarithm_off;
} weight;

static weight weight_of(running_kind k, double above, double small, double m, running x) {
    const double smooth = small + 4 * m * m * x.v * x.v, far = fabs(x.v) - x.e,
                 slope = far > 0 ? fmin(2 * m / sqrt(small), 2 / far) : 2 * m / sqrt(small);
    const bool reach = smooth < (k.largest > 1e100 ? 1e150 : 1e18);
    return (weight){ above / (smooth * smooth), reach ? 2 * slope * x.e + 128 * k.u : INFINITY };
}

static running mean_of(running_kind k, running a, running b, weight u, weight w) {
    const double all = u.value + w.value, off = fmin(1, (u.logarithm_off + w.logarithm_off) / 4);
    running mean = { (u.value * a.v + w.value * b.v) / all, fmax(a.e, b.e) + fabs(b.v - a.v) * off };
    mean.e += 6 * k.u * (fabs(u.value * a.v) + fabs(w.value * b.v)) / all + k.tiny * (1 + 2 / all);
    if (!(u.logarithm_off + w.logarithm_off < INFINITY) ||
        !(fmax(fabs(a.v), fabs(b.v)) * fmax(u.value, w.value) * 2 <= k.largest))
        mean.e = INFINITY;
    return running_checked(k, mean, isfinite(a.v) && isfinite(b.v));
}

/* What comes from two cells on one side and one on the other: x[1] and x[0] behind it, x[2] beyond. */
static running part_of(running_kind k, const running *const x[3], double m_behind, double m_own, double q_own,
                       const double above[2], double small) {
    const running m = running_number(k, m_behind), one = running_add(k, running_exact(1), m),
                  back = running_difference(k, *x[1], *x[0]), on = running_difference(k, *x[2], *x[1]);
    const running far = running_difference(k, running_product(k, one, *x[1]), running_product(k, m, *x[0])),
                  near = running_add(k, running_product(k, running_number(k, m_own), *x[1]),
                                     running_product(k, running_number(k, q_own), *x[2]));
    return mean_of(k, far, near, weight_of(k, above[0], small, m_behind, back),
                   weight_of(k, above[1], small, q_own, on));
}

/* n: (v + a)/2 f of cells 0 to 2; p: (v - a)/2 f of cells 1 to 3. */
static running side_of(running_kind k, const sphere_weno *w, const running n[3], const running p[3]) {
    const running *const behind[3] = { &n[0], &n[1], &n[2] }, *const beyond[3] = { &p[2], &p[1], &p[0] };
    return running_add(k, part_of(k, behind, w->m[0], w->m[1], w->q[0], w->n_weight, w->small[0]),
                       part_of(k, beyond, w->q[1], w->q[0], w->m[1], w->p_weight, w->small[1]));
}

typedef struct flow {
    const sphere_grid *g;
    const running *v_theta, *v_phi;
    bool weno;
} flow;

static double larger(double most, double v) { return fabs(v) > most || v != v ? fabs(v) : most; }

/* The velocity through the side before cell i of a column; beyond the poles that of the side next to it. */
static double down_at(const flow *a, int64_t i, int64_t k) {
    const int64_t last = a->g->t - 1, side = i < 1 ? 1 : i > last ? last : i;
    return a->v_theta[(side - 1) * a->g->p + k].v;
}
static double along_at(const flow *a, int64_t j, int64_t k) { return a->v_phi[j * a->g->p + sphere_column(a->g, k)].v; }

/* (v + a)/2 f or (v - a)/2 f of a cell. */
static running split(running_kind k, running f, double v, double a) {
    return running_product(k, f,
                           running_product(k, running_exact(0.5), running_add(k, running_exact(v), running_exact(a))));
}

static double most_down(const flow *a, int64_t i, int64_t k) {
    double most = 0;
    for (int64_t side = i - 2; side <= i + 3; side++)
        if (side >= 1 && side < a->g->t) most = larger(most, down_at(a, side, k));
    return most;
}
static double most_along(const flow *a, int64_t j, int64_t k) {
    double most = 0;
    for (int64_t side = k - 2; side <= k + 3; side++) most = larger(most, along_at(a, j, side));
    return most;
}

static running upstream(running_kind k, double v, running before, running after) {
    return running_product(k, running_exact(v), v >= 0 ? before : after);
}

/* Through the side before row i. */
static running down(const flow *a, const running *f, int64_t i, int64_t k) {
    const sphere_grid *g = a->g;
    const running_kind kind = g->kind;
    if (!a->weno || i == 1 || i == g->t - 1)
        return upstream(kind, down_at(a, i, k), f[(i - 1) * g->p + k], f[i * g->p + k]);
    running n[3], p[3];
    double width[4];
    for (int c = 0; c < 4; c++) {
        const int64_t cell = i - 2 + c;
        const double most = most_down(a, cell, k);
        width[c] = sphere_width(g->theta, g->t, cell);
        if (c < 3) n[c] = split(kind, f[cell * g->p + k], down_at(a, cell, k), most);
        if (c > 0) p[c - 1] = split(kind, f[cell * g->p + k], down_at(a, cell + 1, k), -most);
    }
    const sphere_weno w = sphere_weno_of(width[0], width[1], width[2], width[3]);
    return side_of(kind, &w, n, p);
}

/* Through the side before column k. */
static running along(const flow *a, const running *f, int64_t j, int64_t k) {
    const sphere_grid *g = a->g;
    const running *row = f + j * g->p;
    if (!a->weno) return upstream(g->kind, along_at(a, j, k), row[sphere_column(g, k - 1)], row[sphere_column(g, k)]);
    running n[3], p[3];
    for (int c = 0; c < 4; c++) {
        const int64_t cell = k - 2 + c;
        const double most = most_along(a, j, cell);
        const running here = row[sphere_column(g, cell)];
        if (c < 3) n[c] = split(g->kind, here, along_at(a, j, cell), most);
        if (c > 0) p[c - 1] = split(g->kind, here, along_at(a, j, cell + 1), -most);
    }
    const double d = 2 * SPHERE_PI / (double)g->p;
    const sphere_weno w = sphere_weno_of(d, d, d, d);
    return side_of(g->kind, &w, n, p);
}

static running divergence(const flow *a, const running *f, int64_t j, int64_t k) {
    const running_kind kind = a->g->kind;
    const sphere_row row = sphere_row_of(a->g->theta, a->g->t, a->g->p, j, 0);
    const running around = running_difference(kind, along(a, f, j, sphere_column(a->g, k + 1)), along(a, f, j, k));
    return running_sum(
        kind, 3,
        (running[]){ running_product(kind, running_number(kind, row.south), down(a, f, j + 1, k)),
                     running_negative(running_product(kind, running_number(kind, row.north), down(a, f, j, k))),
                     running_product(kind, running_number(kind, row.along), around) });
}

static running at_pole(const flow *a, const running *f, int64_t j) {
    const running_kind kind = a->g->kind;
    const sphere_row row = sphere_row_of(a->g->theta, a->g->t, a->g->p, j, 0);
    running *terms = malloc(sizeof *terms * (size_t)(a->g->p + 1));
    for (int64_t k = 0; k < a->g->p; k++) terms[k] = down(a, f, j == 0 ? 1 : j, k);
    const running sum =
        running_product(kind, running_number(kind, row.south - row.north), running_sum(kind, a->g->p, terms));
    free(terms);
    return sum;
}

static void operate(const flow *a, const running *f, running *to) {
    const int64_t p = a->g->p;
    for (int64_t j = 0; j < a->g->t; j++) {
        const bool pole = j == 0 || j == a->g->t - 1;
        const running all = pole ? at_pole(a, f, j) : running_exact(0);
        for (int64_t k = 0; k < p; k++) to[j * p + k] = pole ? all : divergence(a, f, j, k);
    }
}

/* first f + last g - rate A g of each stage; f and y are of one field. */
static void step(const flow *a, const ARGS *args, const running *f, running *rate, running *y) {
    const int64_t n = a->g->t * a->g->p;
    const running_kind k = a->g->kind;
    for (int64_t i = 0; i < n; i++) y[i] = f[i];
    for (int j = 1; j <= sphere_ssp_stages(args->steps); j++) {
        const sphere_ssp c = sphere_ssp_of(j, args->steps, (double)args->dt);
        operate(a, y, rate);
        for (int64_t i = 0; i < n; i++)
            y[i] = running_sum(k, c.first == 0 ? 2 : 3,
                               (running[]){ running_product(k, running_number(k, c.last), y[i]),
                                            running_product(k, running_number(k, -c.rate), rate[i]),
                                            running_product(k, running_number(k, c.first), f[i]) });
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    bool overflow = false;
    const sphere_grid g = sphere_grid_of(ref, &overflow);
    const int64_t n = g.t * g.p;
    running *f = sphere_read(trine_ref_value(ref, "f"), g.r * n),
            *v_theta = sphere_read(trine_ref_value(ref, "v_theta"), (g.t - 1) * g.p),
            *v_phi = sphere_read(trine_ref_value(ref, "v_phi"), n), *y = malloc(sizeof *y * (size_t)(g.r * n + 1)),
            *rate = malloc(sizeof *rate * (size_t)(n + 1));
    const flow a = { &g, v_theta, v_phi, args->flux == TRINE_SPHERE_WENO3 };
    for (int64_t r = 0; r < g.r; r++) step(&a, args, f + r * n, rate, y + r * n);
    sphere_write(ref, &g, y);
    free(f), free(v_theta), free(v_phi), free(y), free(rate);
}

const trine_spec trine_spec_sphere_advect = {
    SPEC(sphere_advect),
    .summary = "A step of advection over a sphere, by upwind or WENO3 fluxes",
    .formula = "ssprk33: f1 = f - dt A f, f2 = 3/4 f + 1/4 f1 - 1/4 dt A f1, y = 1/3 f + 2/3 f2 - 2/3 dt A f2; "
               "ssprk43: f1 = f - dt/2 A f, f2 = f1 - dt/2 A f1, f3 = 2/3 f + 1/3 f2 - 1/6 dt A f2, y = f3 - dt/2 A "
               "f3; A f = div(v f) by the cells of a grid of latitudes theta and longitudes 2 pi k/p, with the "
               "values upstream or those of WENO3 at their sides, between the rows and columns before and after "
               "which v_theta and v_phi are",
    .source = "Jiang and Shu 1996; Gottlieb, Shu and Tadmor 2001; Ketcheson 2008; HipFT (Caplan et al. 2025)",
    .tensors = { TENSOR(f, IN, "T", "[r] t p"), TENSOR(v_theta, IN | BROADCAST, "T", "t-1 p"),
                 TENSOR(v_phi, IN | BROADCAST, "T", "t p"), TENSOR(theta, IN | OPTIONAL, "f64", "t", .fill = "derived"),
                 TENSOR(y, OUT, "T", "[r] t p", .terms = "1") },
    .params = { PARAM(dt, F32, .values = "0.01 0 0.001 0.1 1", .min = 0, .doc = "the step in time"),
                PARAM(flux, ENUM, .values = "upwind weno3", .doc = "TRINE_SPHERE_*: what flows through sides"),
                PARAM(steps, ENUM, .values = "ssprk33 ssprk43", .doc = "TRINE_SPHERE_*: the stages of the step") },
    .types = { "T=f32|f64" },
    .require = { "t >= 3" },
    .alias = { "y=f" },
    .flops = "400*r*t*p",
    .independent = "r",
    .sizes = { "r: 1 0 2 3", "t: 5 3 4 8 17 33", "p: 8 0 1 2 3 5 31 64 100 1000" },
    .cases = { "half a degree f64, weno3: T=f64 r=1 t=361 p=720 dt=0.0001 flux=weno3 steps=ssprk43",
               "eight of one degree f64, weno3: T=f64 r=8 t=181 p=360 dt=0.0001 flux=weno3 steps=ssprk43",
               "half a degree f64, upwind: T=f64 r=1 t=361 p=720 dt=0.0001",
               "quarter of a degree f32, weno3: T=f32 r=1 t=721 p=1440 dt=0.0001 flux=weno3 steps=ssprk43" },
    .reference = reference,
    .prepare = sphere_uneven_rows,
};
