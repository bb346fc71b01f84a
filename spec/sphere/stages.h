/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of the stages of a step in time, in float64, as host code computes them. */
#ifndef TRINE_SPEC_SPHERE_STAGES_H
#define TRINE_SPEC_SPHERE_STAGES_H

#include <trine/sphere.h>

enum { SPHERE_MOST_STAGES = 63 };

/* RKL2: Y_j = last Y_(j-1) + before Y_(j-2) + first f + last_rate D Y_(j-1) + first_rate D f. */
typedef struct sphere_rkl {
    double last, before, first, last_rate, first_rate;
} sphere_rkl;

static inline double sphere_rkl_b(int j) { return j < 3 ? 1 / 3.0 : ((double)j * j + j - 2) / (2.0 * j * (j + 1)); }

/* Of stage j from 1 to `stages`; of the first D f is D Y_0. */
static inline sphere_rkl sphere_rkl_of(int j, int stages, double dt) {
    const double w = 4 / ((double)stages * stages + stages - 2);
    if (j == 1) return (sphere_rkl){ .first = 1, .last_rate = w / 3 * dt };
    const double b = sphere_rkl_b(j), last = (2.0 * j - 1) / j * b / sphere_rkl_b(j - 1),
                 before = -(j - 1.0) / j * b / sphere_rkl_b(j - 2);
    return (sphere_rkl){ last, before, 1 - last - before, last * w * dt, -(1 - sphere_rkl_b(j - 1)) * last * w * dt };
}

/* SSPRK: the next is first f + last g - rate A g, g being what the stage before gave, f of the first. */
typedef struct sphere_ssp {
    double first, last, rate;
} sphere_ssp;

static inline int sphere_ssp_stages(int steps) { return steps == TRINE_SPHERE_SSPRK33 ? 3 : 4; }

static inline sphere_ssp sphere_ssp_of(int j, int steps, double dt) {
    static const sphere_ssp three[] = { { 0, 1, 1 }, { 3 / 4.0, 1 / 4.0, 1 / 4.0 }, { 1 / 3.0, 2 / 3.0, 2 / 3.0 } },
                            four[] = {
                                { 0, 1, 1 / 2.0 }, { 0, 1, 1 / 2.0 }, { 2 / 3.0, 1 / 3.0, 1 / 6.0 }, { 0, 1, 1 / 2.0 }
                            };
    sphere_ssp s = steps == TRINE_SPHERE_SSPRK33 ? three[j - 1] : four[j - 1];
    s.rate *= dt;
    return s;
}

#endif
