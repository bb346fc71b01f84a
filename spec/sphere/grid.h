/* SPDX-License-Identifier: Apache-2.0 */
/* The grid of a sphere in float64, row by row, as kernels compute it. Text that host and device compile:
 * SPHERE_FUNCTION is how a function is declared.
 *
 * Errors in units of 2^-53: a sine 3, by the terms of its series up to x^23/23!, beyond which lies 2^-60 of it; a
 * middle and a difference of colatitudes 1 each; and so no number of a row more than 20. */
#ifndef TRINE_SPEC_SPHERE_GRID_H
#define TRINE_SPEC_SPHERE_GRID_H

#include <stdint.h>

#ifndef SPHERE_FUNCTION
#define SPHERE_FUNCTION static inline
#endif

#define SPHERE_PI 3.141592653589793
#define SPHERE_PI_REST 1.2246467991473532e-16 /* pi - SPHERE_PI */

/* Of 0 to pi. */
SPHERE_FUNCTION double sphere_sine(double x) {
    const double y = x > SPHERE_PI / 2 ? (SPHERE_PI - x) + SPHERE_PI_REST : x, z = y * y;
    double sum = -1 / 25852016738884976640000.0;
    sum = sum * z + 1 / 51090942171709440000.0;
    sum = sum * z - 1 / 121645100408832000.0;
    sum = sum * z + 1 / 355687428096000.0;
    sum = sum * z - 1 / 1307674368000.0;
    sum = sum * z + 1 / 6227020800.0;
    sum = sum * z - 1 / 39916800.0;
    sum = sum * z + 1 / 362880.0;
    sum = sum * z - 1 / 5040.0;
    sum = sum * z + 1 / 120.0;
    sum = sum * z - 1 / 6.0;
    return y + y * z * sum;
}

/* Colatitude of row j of t; theta NULL: even rows. */
SPHERE_FUNCTION double sphere_theta(const double *theta, int64_t t, int64_t j) {
    return theta ? theta[j] : SPHERE_PI * (double)j / (double)(t - 1);
}

/* Width of a row's cells. */
SPHERE_FUNCTION double sphere_width(const double *theta, int64_t t, int64_t j) {
    if (j == 0) return sphere_theta(theta, t, 1) - sphere_theta(theta, t, 0);
    if (j == t - 1) return sphere_theta(theta, t, j) - sphere_theta(theta, t, j - 1);
    return (sphere_theta(theta, t, j + 1) - sphere_theta(theta, t, j - 1)) / 2;
}

/* What a row's operator multiplies: of its north, its south, and its west and east sides; of a pole that of the one
 * side it has. */
typedef struct sphere_row {
    double north, south, along;
} sphere_row;

/* Of D, whose differences these are factors of, or of A, whose fluxes they are. */
SPHERE_FUNCTION sphere_row sphere_row_of(const double *theta, int64_t t, int64_t p, int64_t j, int diffuse) {
    const double d = 2 * SPHERE_PI / (double)p, here = sphere_theta(theta, t, j), width = sphere_width(theta, t, j);
    sphere_row row = { 0, 0, 0 };
    if (j == 0 || j == t - 1) {
        const double pole = diffuse ? d / (SPHERE_PI * width * width) : 2 * d / (SPHERE_PI * width);
        if (j == 0)
            row.south = pole;
        else
            row.north = pole;
        return row;
    }
    const double up = sphere_theta(theta, t, j - 1), down = sphere_theta(theta, t, j + 1), sine = sphere_sine(here);
    row.north = sphere_sine((up + here) / 2) / (sine * width * (diffuse ? here - up : 1));
    row.south = sphere_sine((here + down) / 2) / (sine * width * (diffuse ? down - here : 1));
    row.along = diffuse ? 1 / (d * d * sine * sine) : 1 / (d * sine);
    return row;
}

/* WENO3's numbers for the side between cells i - 1 and i, of widths a, b, c, d of cells i - 2 to i + 1: M and Q of
 * those two, what the four weights have above, and the small numbers they have below. */
typedef struct sphere_weno {
    double m[2], q[2], n_weight[2], p_weight[2], small[2];
} sphere_weno;

SPHERE_FUNCTION sphere_weno sphere_weno_of(double a, double b, double c, double d) {
    sphere_weno w = { { b / (a + b), c / (b + c) },
                      { b / (b + c), c / (c + d) },
                      { c / (a + b + c), (a + b) / (a + b + c) },
                      { b / (b + c + d), (c + d) / (b + c + d) },
                      { b, c } };
    return w;
}

#endif
