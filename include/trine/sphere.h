/* SPDX-License-Identifier: Apache-2.0 */
/* Flow of a quantity over the surface of a sphere, on a grid by latitude and longitude: diffusion and advection. */
#ifndef TRINE_SPHERE_H
#define TRINE_SPHERE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_sphere_diffuse_args {
    size_t struct_size;        /* sizeof(trine_sphere_diffuse_args) */
    const trine_tensor *f;     /* in [r] t p */
    const trine_tensor *nu;    /* in, broadcast t-1 p: diffusivity at the corners of cells */
    const trine_tensor *theta; /* in, optional t, f64: colatitudes, from 0 to pi */
    const trine_tensor *y;     /* out [r] t p */
    float dt;                  /* the step in time */
    int32_t stages;            /* of the step, 2 at least; 0: 3 */
} trine_sphere_diffuse_args;

/* A step of diffusion over a sphere of radius 1, by super time stepping (RKL2).
 *
 *     y = Y_s,  Y_0 = f,  Y_1 = f + w/3 dt D f,  Y_j = m_j Y_(j-1) + n_j Y_(j-2) + (1 - m_j - n_j) f
 *                                                     + m_j w dt D Y_(j-1) - (1 - b_(j-1)) m_j w dt D f
 *     b_0 = b_1 = b_2 = 1/3,  b_j = (j^2 + j - 2)/(2 j (j + 1)),  w = 4/(s^2 + s - 2)
 *     m_j = (2 j - 1)/j b_j/b_(j-1),  n_j = -(j - 1)/j b_j/b_(j-2)
 *
 * s is `stages`. D f is div(nu grad f) by cells about the nodes: rows j of colatitude theta_j, of which the first and
 * the last are the poles, and columns k of longitude k d, d = 2 pi/p, the last beside the first.
 *
 *     D f[j,k] = north_j N (f[j-1,k] - f[j,k]) + south_j S (f[j+1,k] - f[j,k])
 *                + (W (f[j,k-1] - f[j,k]) + E (f[j,k+1] - f[j,k]))/(d sin theta_j)^2
 *     south_j = sin((theta_j + theta_(j+1))/2)/((theta_(j+1) - theta_j) (theta_(j+1) - theta_(j-1))/2 sin theta_j)
 *     D f[0,k] = d/(pi theta_1^2) sum over l of (nu[0,l] + nu[0,l+1]) (f[1,l] - f[0,l])
 *
 * and likewise to the north and at the south pole. nu[j,k] is the value between rows j and j+1 and columns k-1 and k;
 * N, S, W and E are means of the two at the ends of a cell's side. The sum of f over all cells, each with its area as
 * D has it, stays the same but for rounding: sin theta_j (theta_(j+1) - theta_(j-1))/2 d, and
 * theta_1 sin(theta_1/2) d/4 for each of a pole's p values.
 *
 * Without theta, theta_j = pi j/(t - 1). The values of a pole should be the same. The step is stable while dt is at
 * most (s^2 + s - 2)/4 times the longest step of Euler's method, which is 1 over the largest sum of D's four
 * coefficients at a node: s is (sqrt(9 + 16 dt/dt_euler) - 1)/2, rounded up.
 *
 * Source: Meyer, Balsara and Aslam 2014, section 2.2; HipFT (Caplan et al. 2025) for the grid and its poles.
 *
 * Shapes: f and y are [r] t p with t at least 3, for r independent fields; nu is t-1 p, or 1 where it is the same
 * everywhere or along a dimension; theta is t. The last dimension is contiguous.
 * Types: f, nu and y are f32 or f64, the same; theta is f64. Accumulation is f32, and f64 of f64; the grid's numbers
 * are f64, rounded to the type.
 * Parameters: dt is at least 0: what it cannot hold may be a part of nu. stages are 2 to 63; odd ones damp all that
 * changes fast.
 * Aliasing: y may be f, the very same view; it may not overlap another tensor.
 *
 * Error bound: what each stage rounds, 32 + p roundings at a pole and 32 elsewhere of D's terms and 8 of the stage's,
 * carried through those that follow; spec/sphere/sphere_diffuse.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_sphere_diffuse(trine_queue *queue, const trine_sphere_diffuse_args *args);

enum {
    TRINE_SPHERE_UPWIND = 0, /* what flows through a side is the value upstream: order 1 */
    TRINE_SPHERE_WENO3 = 1   /* weighted essentially non-oscillatory: order 3 of smooth fields and even flow */
};
enum {
    TRINE_SPHERE_SSPRK33 = 0, /* three stages, order 3 */
    TRINE_SPHERE_SSPRK43 = 1  /* four stages, order 3, steps twice as long */
};

typedef struct trine_sphere_advect_args {
    size_t struct_size;          /* sizeof(trine_sphere_advect_args) */
    const trine_tensor *f;       /* in [r] t p */
    const trine_tensor *v_theta; /* in, broadcast t-1 p: velocity to the south through the sides between rows */
    const trine_tensor *v_phi;   /* in, broadcast t p: velocity to the east through the sides between columns */
    const trine_tensor *theta;   /* in, optional t, f64: colatitudes, from 0 to pi */
    const trine_tensor *y;       /* out [r] t p */
    float dt;                    /* the step in time */
    int32_t flux;                /* TRINE_SPHERE_*: the flux */
    int32_t steps;               /* TRINE_SPHERE_*: the steps in time */
} trine_sphere_advect_args;

/* A step of advection over a sphere of radius 1, with given velocities, on the grid of trine_sphere_diffuse().
 *
 *     SSPRK33: f1 = f - dt A f,  f2 = 3/4 f + 1/4 f1 - 1/4 dt A f1,  y = 1/3 f + 2/3 f2 - 2/3 dt A f2
 *     SSPRK43: f1 = f - dt/2 A f,  f2 = f1 - dt/2 A f1,  f3 = 2/3 f + 1/3 f2 - 1/6 dt A f2,  y = f3 - dt/2 A f3
 *     A f[j,k] = (sin(theta_(j+1/2)) F[j+1/2,k] - sin(theta_(j-1/2)) F[j-1/2,k])/(sin theta_j d_j)
 *                + (G[j,k+1/2] - G[j,k-1/2])/(sin theta_j d)
 *     A f[0,k] = 2 d/(pi theta_1) sum over l of F[1/2,l],  and minus that of the last row at the south pole
 *
 * d_j = (theta_(j+1) - theta_(j-1))/2 is the width of a cell, theta_1 that of the pole's, and theta_(j+1/2) the middle
 * between two rows. F[j+1/2,k] = v_theta[j,k] f flows between rows j and j+1, G[j,k-1/2] = v_phi[j,k] f between columns
 * k-1 and k; v_phi of a pole is not used. f there is the value upstream; or the fluxes are WENO3's, of cells i - 2 to
 * i + 1 around the side between i - 1 and i, with widths d_i and velocities v_i of the side before cell i:
 *
 *     P_i = f_i (v_(i+1) - a_i)/2,  N_i = f_i (v_i + a_i)/2,  a_i = max |v| of the sides i - 2 to i + 3
 *     M_i = d_i/(d_(i-1) + d_i),  Q_i = d_i/(d_i + d_(i+1)),  T_i = d_(i-1) + d_i + d_(i+1)
 *     F = (u0 n0 + u1 n1)/(u0 + u1) + (w0 p0 + w1 p1)/(w0 + w1)
 *     n0 = (1 + M_(i-1)) N_(i-1) - M_(i-1) N_(i-2),  n1 = M_i N_(i-1) + Q_(i-1) N_i
 *     p0 = (1 + Q_i) P_i - Q_i P_(i+1),  p1 = Q_(i-1) P_i + M_i P_(i-1)
 *     u0 = d_i/T_(i-1)/(d_(i-1) + 4 (M_(i-1) (N_(i-1) - N_(i-2)))^2)^2
 *     u1 = (d_(i-2) + d_(i-1))/T_(i-1)/(d_(i-1) + 4 (Q_(i-1) (N_i - N_(i-1)))^2)^2
 *     w0 = d_(i-1)/T_i/(d_i + 4 (Q_i (P_(i+1) - P_i))^2)^2
 *     w1 = (d_i + d_(i+1))/T_i/(d_i + 4 (M_i (P_i - P_(i-1)))^2)^2
 *
 * Through the sides of the poles' cells flows the value upstream. The velocity beyond a pole is that through the side
 * of its cell, and not of a_i's. The sum of f over all cells, each with its area as trine_sphere_diffuse() has it,
 * stays the same but for rounding. Steps are stable while |v| dt is below the widths of cells, which are narrow near
 * the poles.
 *
 * Source: Jiang and Shu 1996; Cravero and Semplice 2016 for widths as small numbers; Gottlieb, Shu and Tadmor 2001;
 * Ketcheson 2008; HipFT (Caplan et al. 2025) for these on a sphere.
 *
 * Shapes: f and y are [r] t p with t at least 3, for r independent fields; v_theta is t-1 p and v_phi t p, or 1 where
 * they are the same everywhere or along a dimension; theta is t. The last dimension is contiguous.
 * Types: f, v_theta, v_phi and y are f32 or f64, the same; theta is f64. Accumulation is f32, and f64 of f64; the
 * grid's numbers are f64, rounded to the type.
 * Parameters: dt is at least 0: what it cannot hold may be a part of the velocities. flux and steps are of the lists
 * above.
 * Aliasing: y may be f, the very same view; it may not overlap another tensor.
 *
 * Error bound: what each stage rounds, carried through those that follow; spec/sphere/sphere_advect.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_sphere_advect(trine_queue *queue, const trine_sphere_advect_args *args);

#ifdef __cplusplus
}
#endif

#endif
