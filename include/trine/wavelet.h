/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete wavelet transforms, one level a call, and what denoising does with their coefficients. */
#ifndef TRINE_WAVELET_H
#define TRINE_WAVELET_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Filters, of 2 to 16 taps: Daubechies' with 1 to 8 vanishing moments, and biorthogonal ones, whose numbers are those
 * of the moments of reconstruction and decomposition. */
enum {
    TRINE_WAVELET_HAAR = 0,
    TRINE_WAVELET_DB2 = 1,
    TRINE_WAVELET_DB3 = 2,
    TRINE_WAVELET_DB4 = 3,
    TRINE_WAVELET_DB5 = 4,
    TRINE_WAVELET_DB6 = 5,
    TRINE_WAVELET_DB7 = 6,
    TRINE_WAVELET_DB8 = 7,
    TRINE_WAVELET_BIOR1_3 = 8,
    TRINE_WAVELET_BIOR1_5 = 9,
    TRINE_WAVELET_BIOR2_2 = 10,
    TRINE_WAVELET_BIOR2_4 = 11,
    TRINE_WAVELET_BIOR3_1 = 12,
    TRINE_WAVELET_BIOR3_3 = 13,
    TRINE_WAVELET_BIOR4_4 = 14 /* of the JPEG 2000 standard */
};

/* What lies beyond the ends of a b c d: */
enum {
    TRINE_WAVELET_SYMMETRIC = 0,     /* b a | a b c d | d c */
    TRINE_WAVELET_ZERO = 1,          /* 0 0 | a b c d | 0 0 */
    TRINE_WAVELET_CONSTANT = 2,      /* a a | a b c d | d d */
    TRINE_WAVELET_PERIODIC = 3,      /* c d | a b c d | a b */
    TRINE_WAVELET_REFLECT = 4,       /* c b | a b c d | c b */
    TRINE_WAVELET_SMOOTH = 5,        /* straight lines through the first and the last two */
    TRINE_WAVELET_ANTISYMMETRIC = 6, /* -b -a | a b c d | -d -c */
    TRINE_WAVELET_ANTIREFLECT = 7,   /* 2a-c 2a-b | a b c d | 2d-c 2d-b */
    TRINE_WAVELET_PERIODIZATION = 8  /* periodic, an odd number with the last one twice; half as many coefficients */
};

typedef struct trine_dwt_args {
    size_t struct_size;    /* sizeof(trine_dwt_args) */
    const trine_tensor *x; /* in [n] h w */
    const trine_tensor *y; /* out [n] k p q: bands */
    int32_t wavelet;       /* TRINE_WAVELET_*: the filters */
    int32_t edge;          /* TRINE_WAVELET_*: what lies beyond the ends */
} trine_dwt_args;

/* One level of a discrete wavelet transform, of rows or of images: the coefficients of approximation and detail.
 *
 *     k = 2: y[n,s,p,q] = sum over j < F of filter[s,j] x[n, p, 2 q + o - j]
 *     k = 4: y[n,s,p,q] = sum over i, j < F of filter[s%2,i] filter[s/2,j] x[n, 2 p + o - i, 2 q + o - j]
 *
 * filter[0] is the low-pass of decomposition, filter[1] the high-pass, F their taps, and o = 1, or F/2 with
 * TRINE_WAVELET_PERIODIZATION. x has values beyond its ends as `edge` says; of no samples there are zeros. With k = 2
 * each row is a signal, the last dimension's. With k = 4 bands are as of PyWavelets' dwt2: approximation, then
 * horizontal, vertical and diagonal detail, which are detail along h, along w, and along both.
 *
 * p and q may be any: as the usual numbers PyWavelets has (w + F - 1)/2 rounded down, and w/2 rounded up with
 * TRINE_WAVELET_PERIODIZATION. The next level is a call with band 0 as x, a view.
 *
 * Source: Mallat 1989, sections III and IV; Daubechies 1988, section 4; Cohen, Daubechies and Feauveau 1992, section
 * 6; PyWavelets' dwt and dwt2, for edges and signs.
 *
 * Shapes: x is [n] h w, y is [n] k p q with k = 2, and then p = h, or k = 4. All strides are free: of the first axis
 * a transform is that of a view with exchanged dimensions.
 * Types: x and y are f32 or f64, the same. Sums are f32, and f64 of f64.
 * Parameters: wavelet and edge are of the lists above.
 * Aliasing: y may not overlap x.
 *
 * Error bound: F + 5 roundings for each axis, and 2, of the sum of |filter| |x|, besides one of y's type;
 * spec/wavelet/wavelet.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; y overlaps x), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_dwt(trine_queue *queue, const trine_dwt_args *args);

typedef struct trine_idwt_args {
    size_t struct_size;    /* sizeof(trine_idwt_args) */
    const trine_tensor *y; /* in [n] k p q: bands */
    const trine_tensor *x; /* out [n] h w */
    int32_t wavelet;       /* TRINE_WAVELET_*: the filters */
    int32_t edge;          /* TRINE_WAVELET_*: as of the transform */
} trine_idwt_args;

/* The inverse of trine_dwt(): rows or images from their bands.
 *
 *     k = 2: x[n,h,w] = sum over s < 2, j < F of filter[s,j] y[n, s, h, (w + o - j)/2]
 *     k = 4: x[n,h,w] = sum over s < 4, i, j < F of filter[s%2,i] filter[s/2,j] y[n, s, (h + o - i)/2, (w + o - j)/2]
 *
 * The sums are over those i and j whose places are whole numbers. filter[0] is the low-pass of reconstruction,
 * filter[1] the high-pass, F their taps. Places below 0 and from p or q on have nothing, and o = F - 2; with
 * TRINE_WAVELET_PERIODIZATION they go round, and o = F/2 - 1. Other edges are alike.
 *
 * h and w may be any: those of the x that was transformed give it back. PyWavelets has 2 q - F + 2, and 2 q with
 * TRINE_WAVELET_PERIODIZATION, which is one more than an odd w.
 *
 * Source: Mallat 1989, sections III and IV; Cohen, Daubechies and Feauveau 1992, section 6; PyWavelets' idwt and
 * idwt2.
 *
 * Shapes: y is [n] k p q with k = 2, and then p = h, or k = 4; x is [n] h w. All strides are free.
 * Types: y and x are f32 or f64, the same. Sums are f32, and f64 of f64.
 * Parameters: wavelet and edge are of the lists above.
 * Aliasing: x may not overlap y.
 *
 * Error bound: F + 5 roundings for each axis, and 2, of the sum of |filter| |y|, besides one of x's type;
 * spec/wavelet/wavelet.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; x overlaps y), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_idwt(trine_queue *queue, const trine_idwt_args *args);

typedef struct trine_soft_threshold_args {
    size_t struct_size;            /* sizeof(trine_soft_threshold_args) */
    const trine_tensor *x;         /* in [b] [h] w */
    const trine_tensor *threshold; /* in b */
    const trine_tensor *y;         /* out [b] [h] w */
} trine_soft_threshold_args;

/* Shrinks each element towards 0 by a threshold, of each band its own.
 *
 *     y[b,h,w] = sign(x[b,h,w]) max(|x[b,h,w]| - threshold[b], 0)
 *
 * 0 where |x| is at most the threshold. A negative threshold moves elements away from 0, a zero by its sign.
 *
 * Source: Donoho 1995, section 2.
 *
 * Shapes: x and y are [b] [h] w, threshold is b, 1 where they have no b. All strides are free.
 * Types: all are f32, or all are f64.
 * Parameters: none.
 * Aliasing: y may be x, the very same view; it may not overlap threshold.
 *
 * Error bound: none, the difference is rounded once.
 * Deterministic: the same bits on all devices.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_soft_threshold(trine_queue *queue, const trine_soft_threshold_args *args);

typedef struct trine_soft_threshold_backward_args {
    size_t struct_size;             /* sizeof(trine_soft_threshold_backward_args) */
    const trine_tensor *dy;         /* in [b] [h] w */
    const trine_tensor *x;          /* in [b] [h] w */
    const trine_tensor *threshold;  /* in b */
    const trine_tensor *dx;         /* out, optional [b] [h] w */
    const trine_tensor *dthreshold; /* out, optional b */
} trine_soft_threshold_backward_args;

/* Gradient of trine_soft_threshold().
 *
 *     dx[b,h,w] = dy[b,h,w] if |x[b,h,w]| > threshold[b], else 0
 *     dthreshold[b] = - sum over h, w of sign(x[b,h,w]) dx[b,h,w]
 *
 * NaN where |x| - threshold is.
 *
 * Source: the derivative of trine_soft_threshold()'s formula.
 *
 * Shapes: dy, x and dx are [b] [h] w, threshold and dthreshold b. All strides are free.
 * Types: all are f32, or all are f64. Sums are f64.
 * Parameters: none; at least one of dx and dthreshold must be given.
 * Aliasing: dx may be dy, the very same view; else no output may overlap another tensor.
 *
 * Error bound: of dx, none. Of dthreshold, h w + 2 roundings of f64 of the sum of |dy|, besides one of its type.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL, or both outputs; rank, sizes, strides or element types that
 * the above does not admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_soft_threshold_backward(trine_queue *queue,
                                                     const trine_soft_threshold_backward_args *args);

typedef struct trine_sure_risk_args {
    size_t struct_size;            /* sizeof(trine_sure_risk_args) */
    const trine_tensor *x;         /* in [b] [h] w */
    const trine_tensor *threshold; /* in g */
    const trine_tensor *risk;      /* out [b] g */
    float sigma;                   /* deviation of the noise; 0: 1 */
} trine_sure_risk_args;

/* Stein's unbiased estimate of the risk of soft thresholds: what the squared error of trine_soft_threshold() is
 * expected to be, of elements with normal noise.
 *
 *     risk[b,g] = sum over h, w of (sigma^2 + min(|x[b,h,w]|, threshold[g])^2
 *                                   - 2 sigma^2 if |x[b,h,w]| <= threshold[g])
 *
 * The threshold to take of a band is that with the least risk: trine_topk() of the negated risks with k = 1 tells
 * which, and trine_gather_rows() makes a row of thresholds of that.
 *
 * Source: Stein 1981; Donoho and Johnstone 1995, section 2.2.
 *
 * Shapes: x is [b] [h] w, threshold g, risk [b] g. All strides are free.
 * Types: all are f32, or all are f64. Sums are f64.
 * Parameters: sigma is at least 0.
 * Aliasing: risk may not overlap another tensor.
 *
 * Error bound: h w + 6 roundings of f64 of the sum of sigma^2 (3 or 1) + min(|x|, threshold)^2, besides one of risk's
 * type.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; risk overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_sure_risk(trine_queue *queue, const trine_sure_risk_args *args);

#ifdef __cplusplus
}
#endif

#endif
