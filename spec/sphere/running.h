/* SPDX-License-Identifier: Apache-2.0 */
/* Running error analysis (Wilkinson 1986), by which the references of this family find their bounds: a number goes with
 * how far off a kernel's may be, in any order of additions, with multiply-adds fused or not.
 *
 * With u the unit roundoff of the kernel's arithmetic and `tiny` its smallest number: a product of numbers off by e and
 * f is off by |a| f + |b| e + e f, u |a b| and, where it is below the normal numbers, tiny; a sum of n by theirs and
 * (n - 1) u of the sum of sizes. What is beyond the largest number may be off by anything. */
#ifndef TRINE_SPEC_SPHERE_RUNNING_H
#define TRINE_SPEC_SPHERE_RUNNING_H

#include <stdlib.h>

#include "grid.h"
#include "spec/spec.h"
#include "stages.h"

typedef struct running {
    double v, e;
} running;

typedef struct running_kind {
    double u, tiny, largest;
    bool *overflow; /* has a number of finite ones been beyond the largest? */
} running_kind;

static inline running_kind running_kind_of(trine_dtype type, bool *overflow) {
    return (running_kind){ trine_unit_roundoff(type),
                           fmax(2 * trine_smallest_normal(type) * trine_unit_roundoff(type), 0x1p-1074),
                           trine_largest(type), overflow };
}

static inline running running_checked(running_kind k, running x, bool finite) {
    if (!(fabs(x.v) <= k.largest) || !(x.e <= k.largest)) x.e = INFINITY;
    if (finite && isinf(x.e)) *k.overflow = true;
    return x;
}

/* A number of the grid or of a stage, within 20 u and rounded to the type. */
static inline running running_number(running_kind k, double x) {
    return running_checked(k, (running){ x, (20 * 0x1p-53 + k.u) * fabs(x) + k.tiny }, true);
}
static inline running running_exact(double x) { return (running){ x, 0 }; }

static inline running running_product(running_kind k, running a, running b) {
    const double v = a.v * b.v;
    return running_checked(k, (running){ v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e + k.u * fabs(v) + k.tiny },
                           isfinite(a.v) && isfinite(b.v));
}
static inline running running_negative(running a) { return (running){ -a.v, a.e }; }

static inline running running_sum(running_kind k, int64_t n, const running *x) {
    running sum = { 0, 0 };
    double size = 0;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite &= isfinite(x[i].v) != 0;
    for (int64_t i = 0; i < n; i++) sum.v += x[i].v, sum.e += x[i].e, size += fabs(x[i].v);
    sum.e += (double)(n > 1 ? n - 1 : 0) * k.u * (size + sum.e);
    if (size > k.largest) sum.e = INFINITY;
    return running_checked(k, sum, finite);
}
static inline running running_add(running_kind k, running a, running b) {
    return running_sum(k, 2, (running[]){ a, b });
}
static inline running running_difference(running_kind k, running a, running b) {
    return running_add(k, a, running_negative(b));
}

/* r fields of t rows and p columns. */
typedef struct sphere_grid {
    running_kind kind;
    const double *theta; /* NULL: even rows */
    int64_t r, t, p;
} sphere_grid;

static inline sphere_grid sphere_grid_of(trine_ref *ref, bool *overflow) {
    return (sphere_grid){ running_kind_of(trine_ref_type(ref, "T"), overflow), trine_ref_value(ref, "theta"),
                          trine_ref_dim(ref, "r"), trine_ref_dim(ref, "t"), trine_ref_dim(ref, "p") };
}

/* Columns go round. */
static inline int64_t sphere_column(const sphere_grid *g, int64_t k) { return (k % g->p + g->p) % g->p; }

static inline running *sphere_read(const double *x, int64_t count) {
    running *to = malloc(sizeof *to * (size_t)(count + 1));
    for (int64_t i = 0; i < count; i++) to[i] = running_exact(x[i]);
    return to;
}

/* Where finite numbers overflow, what else is infinite or no number depends on the order of operations. */
static inline void sphere_write(trine_ref *ref, const sphere_grid *g, const running *y) {
    for (int64_t i = 0; i < g->r * g->t * g->p; i++) {
        const bool lost = *g->kind.overflow && !isfinite(y[i].v);
        trine_ref_value(ref, "y")[i] = lost ? 0 : y[i].v;
        trine_ref_magnitude(ref, "y")[i] = lost ? INFINITY : y[i].e / g->kind.u;
    }
}

/* Rows that are not even, from pole to pole, for tests. */
static inline void sphere_uneven_rows(trine_ref *ref) {
    double *theta = trine_ref_value(ref, "theta");
    const int64_t t = trine_ref_dim(ref, "t");
    for (int64_t j = 0; theta && j < t; j++) {
        const double part = (double)j / (double)(t - 1);
        theta[j] = SPHERE_PI * (part + 0.3 * part * (1 - part) * (0.8 - part));
    }
}

#endif
