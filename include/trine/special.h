/* SPDX-License-Identifier: Apache-2.0 */
/* Special functions. */
#ifndef TRINE_SPECIAL_H
#define TRINE_SPECIAL_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_log_iv_args {
    size_t struct_size;    /* sizeof(trine_log_iv_args) */
    const trine_tensor *v; /* in [p] [q] [r] n: orders; may be broadcast */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
} trine_log_iv_args;

/* Logarithm of the modified Bessel function of the first kind, of any real order v >= 0.
 *
 *     y = log I_v(x),  I_v(x) = sum over k >= 0 of (x/2)^(2k+v) / (k! Gamma(k+v+1))
 *
 * It neither overflows nor underflows where I_v(x) would: orders to 1e6 and arguments to 1e8, and beyond. At x = 0 it
 * is 0 if v = 0, else -Inf; at x = Inf it is Inf, at v = Inf -Inf. Where v or x is negative or NaN, or both are
 * infinite, it is NaN.
 *
 * Source: DLMF 10.25.2, 10.41; Plesner, Sorensen and Hauberg 2024, "Accurate computation of the logarithm of modified
 * Bessel functions on GPUs".
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. A dimension of v may be 1, or missing, where
 * that of x is not. The last is contiguous, leading strides are free.
 * Types: f64 or f32, the same for all; computed in f64, rounded once.
 * Aliasing: y may be x.
 *
 * Error bound, besides the output's own rounding: 8 2^-53 (|y| + v + x^2/(v + 1/2 + hypot(v + 3/2, x))), of which the
 * last two are about what y moves by if x is off by a factor: where y crosses zero the error is absolute.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_log_iv(trine_queue *queue, const trine_log_iv_args *args);

typedef struct trine_log_iv_backward_args {
    size_t struct_size;     /* sizeof(trine_log_iv_backward_args) */
    const trine_tensor *dy; /* in [p] [q] [r] n */
    const trine_tensor *v;  /* in [p] [q] [r] n: orders; may be broadcast */
    const trine_tensor *x;  /* in [p] [q] [r] n */
    const trine_tensor *dx; /* out [p] [q] [r] n; may be dy or x */
} trine_log_iv_backward_args;

/* Gradient of log_iv at x. That at v is not computed.
 *
 *     dx = dy (I_(v+1)(x)/I_v(x) + v/x)
 *
 * The factor of dy is 0 at x = 0 if v = 0, else Inf; it is 1 at x = Inf, and Inf at v = Inf. Where v or x is negative
 * or NaN, or both are infinite, it is NaN.
 *
 * Source: DLMF 10.29.2.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. A dimension of v may be 1, or missing, where
 * that of x is not. The last is contiguous, leading strides are free.
 * Types: f64 or f32, the same for all; computed in f64, rounded once.
 * Aliasing: dx may be dy or x.
 *
 * Error bound, besides the output's own rounding: 24 2^-53 |dx|.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_log_iv_backward(trine_queue *queue, const trine_log_iv_backward_args *args);

typedef struct trine_log_kv_args {
    size_t struct_size;    /* sizeof(trine_log_kv_args) */
    const trine_tensor *v; /* in [p] [q] [r] n: orders; may be broadcast */
    const trine_tensor *x; /* in [p] [q] [r] n */
    const trine_tensor *y; /* out [p] [q] [r] n; may be x */
} trine_log_kv_args;

/* Logarithm of the modified Bessel function of the second kind, of any real order v.
 *
 *     y = log K_v(x),  K_v(x) = integral over t >= 0 of exp(-x cosh t) cosh(v t)
 *
 * It neither overflows nor underflows where K_v(x) would: orders to 1e6 and arguments to 1e8, and beyond. K is even in
 * v: a negative order is as good as its absolute value. At x = 0 it is Inf, at x = Inf -Inf, at v = +-Inf Inf. Where x
 * is negative, v or x is NaN, or both are infinite, it is NaN.
 *
 * Source: DLMF 10.32.9, 10.41; Temme 1975, "On the numerical evaluation of the modified Bessel function of the third
 * kind"; Plesner, Sorensen and Hauberg 2024, "Accurate computation of the logarithm of modified Bessel functions on
 * GPUs".
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. A dimension of v may be 1, or missing, where
 * that of x is not. The last is contiguous, leading strides are free.
 * Types: f64 or f32, the same for all; computed in f64, rounded once.
 * Aliasing: y may be x.
 *
 * Error bound, besides the output's own rounding: 12 2^-53 (|y| + hypot(v, x) + 1), of which the second is about what y
 * moves by if x is off by a factor: where y crosses zero the error is absolute.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_log_kv(trine_queue *queue, const trine_log_kv_args *args);

typedef struct trine_log_kv_backward_args {
    size_t struct_size;     /* sizeof(trine_log_kv_backward_args) */
    const trine_tensor *dy; /* in [p] [q] [r] n */
    const trine_tensor *v;  /* in [p] [q] [r] n: orders; may be broadcast */
    const trine_tensor *x;  /* in [p] [q] [r] n */
    const trine_tensor *dx; /* out [p] [q] [r] n; may be dy or x */
} trine_log_kv_backward_args;

/* Gradient of log_kv at x. That at v is not computed.
 *
 *     dx = -dy (K_(v-1)(x)/K_v(x) + v/x)
 *
 * A negative order is as good as its absolute value. The factor of dy is -Inf at x = 0 and at v = +-Inf, and -1 at x =
 * Inf. Where x is negative, v or x is NaN, or both are infinite, it is NaN.
 *
 * Source: DLMF 10.29.2.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. A dimension of v may be 1, or missing, where
 * that of x is not. The last is contiguous, leading strides are free.
 * Types: f64 or f32, the same for all; computed in f64, rounded once.
 * Aliasing: dx may be dy or x.
 *
 * Error bound, besides the output's own rounding: 24 2^-53 |dx|.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_log_kv_backward(trine_queue *queue, const trine_log_kv_backward_args *args);

typedef struct trine_vmf_log_norm_args {
    size_t struct_size;        /* sizeof(trine_vmf_log_norm_args) */
    const trine_tensor *kappa; /* in [p] [q] [r] n: concentrations */
    const trine_tensor *y;     /* out [p] [q] [r] n; may be kappa */
    int64_t dimension;         /* d >= 2: unit vectors have so many elements */
} trine_vmf_log_norm_args;

/* Logarithm of the normalizer of the von Mises-Fisher distribution, of density C_d(kappa) exp(kappa m'x) over the unit
 * vectors x of d elements.
 *
 *     y = log C_d(kappa) = v log kappa - log I_v(kappa) - (v+1) log(2 pi),  v = d/2 - 1
 *
 * At kappa = 0 it is the logarithm of the reciprocal of the sphere's area. At kappa = Inf it is -Inf; where kappa is
 * negative or NaN it is NaN.
 *
 * Source: Banerjee et al. 2005, "Clustering on the unit hypersphere using von Mises-Fisher distributions", eq. 2.2.
 *
 * Shapes: kappa and y [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f64 or f32, the same for both; computed in f64, rounded once.
 * Parameters: dimension is at most 2^40.
 * Aliasing: y may be kappa.
 *
 * Error bound, besides the output's own rounding: 10 2^-53 (|y| + d + kappa^2/(v + 1/2 + hypot(v + 3/2, kappa))).
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above, or dimension is below 2;
 * outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_vmf_log_norm(trine_queue *queue, const trine_vmf_log_norm_args *args);

typedef struct trine_vmf_log_norm_backward_args {
    size_t struct_size;         /* sizeof(trine_vmf_log_norm_backward_args) */
    const trine_tensor *dy;     /* in [p] [q] [r] n */
    const trine_tensor *kappa;  /* in [p] [q] [r] n: concentrations */
    const trine_tensor *dkappa; /* out [p] [q] [r] n; may be dy or kappa */
    int64_t dimension;          /* d >= 2: unit vectors have so many elements */
} trine_vmf_log_norm_backward_args;

/* Gradient of vmf_log_norm: minus the mean resultant length, of which kappa is to be estimated.
 *
 *     dkappa = -dy I_(v+1)(kappa)/I_v(kappa),  v = d/2 - 1
 *
 * The factor of dy is 0 at kappa = 0, and -1 at kappa = Inf. Where kappa is negative or NaN it is NaN.
 *
 * Source: Banerjee et al. 2005, "Clustering on the unit hypersphere using von Mises-Fisher distributions", eq. 2.8.
 *
 * Shapes: all tensors [p] [q] [r] n; dimensions may be missing in front. The last is contiguous, leading strides are
 * free.
 * Types: f64 or f32, the same for all; computed in f64, rounded once.
 * Parameters: dimension is at most 2^40.
 * Aliasing: dkappa may be dy or kappa.
 *
 * Error bound, besides the output's own rounding: 24 2^-53 |dkappa|.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above, or dimension is below 2;
 * outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_vmf_log_norm_backward(trine_queue *queue, const trine_vmf_log_norm_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
