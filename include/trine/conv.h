/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions over images and volumes, pooling, and their gradients. */
#ifndef TRINE_CONV_H
#define TRINE_CONV_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_conv2d_args {
    size_t struct_size;         /* sizeof(trine_conv2d_args) */
    const trine_tensor *x;      /* in n h w c */
    const trine_tensor *weight; /* in k r s cg */
    const trine_tensor *bias;   /* in, optional k */
    const trine_tensor *y;      /* out n p q k */
    int32_t stride_h;           /* rows of x from one row of y to the next; 0: 1 */
    int32_t stride_w;           /* columns of x from one column of y to the next; 0: 1 */
    int32_t pad_top;            /* rows of zeros before the first of x */
    int32_t pad_left;           /* columns of zeros before the first of x */
    int32_t dilation_h;         /* rows of x from one row of weight to the next; 0: 1 */
    int32_t dilation_w;         /* columns of x from one column of weight to the next; 0: 1 */
} trine_conv2d_args;

/* A convolution of images, in groups of channels.
 *
 *     y[n,p,q,k] = bias[k] + sum over i < r, j < s, l < cg of
 *                  weight[k,i,j,l] x[n, p stride_h - pad_top + i dilation_h, q stride_w - pad_left + j dilation_w,
 *                                    g cg + l],  g = k/(K/G), G = c/cg groups, K the number of k
 *
 * It is the cross-correlation that deep learning calls a convolution. x is 0 beyond its edges, on all sides: what other
 * libraries call the padding at the bottom and on the right follows from the size of y, which may be any. The usual one
 * is p = (h + pad_top + pad_bottom - dilation_h (r-1) - 1)/stride_h + 1, rounded down. The number of groups follows
 * from the channels: 1 where cg = c, and each channel by itself, depthwise, where cg = 1.
 *
 * Source: LeCun et al. 1998, section II; Krizhevsky et al. 2012, section 3.5, for groups; Yu and Koltun 2016, section
 * 2, for dilation; Howard et al. 2017, section 3.1, for one channel each.
 *
 * Shapes: x is n h w c, weight k r s cg, bias k and y n p q k; c is a multiple of cg, and k of c/cg; without channels
 * there is one group. All strides are free: what is stored as n c h w, and its weights as k c r s, are views with
 * permuted dimensions.
 * Types: x, weight and y are f32, f64, f16 or bf16, the same; bias is of that type or, beside f16 and bf16, f32.
 * Accumulation is f32, and f64 of f64.
 * Parameters: strides and dilations are 1 to 65536, pads 0 to 65536.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound: r s cg + 4 roundings of the accumulator of |weight| |x| + |bias|, of f16 and bf16 2.25 times that,
 * besides one of y's type; spec/conv/conv.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_conv2d(trine_queue *queue, const trine_conv2d_args *args);

typedef struct trine_conv2d_backward_args {
    size_t struct_size;          /* sizeof(trine_conv2d_backward_args) */
    const trine_tensor *dy;      /* in n p q k */
    const trine_tensor *x;       /* in n h w c */
    const trine_tensor *weight;  /* in k r s cg */
    const trine_tensor *dx;      /* out, optional n h w c */
    const trine_tensor *dweight; /* out, optional k r s cg */
    const trine_tensor *dbias;   /* out, optional k */
    int32_t stride_h;            /* the forward's */
    int32_t stride_w;            /* the forward's */
    int32_t pad_top;             /* the forward's */
    int32_t pad_left;            /* the forward's */
    int32_t dilation_h;          /* the forward's */
    int32_t dilation_w;          /* the forward's */
} trine_conv2d_backward_args;

/* Gradient of trine_conv2d().
 *
 *     dx[n,h,w,g cg+l]  = sum over k of group g, and over i < r and j < s for which p and q are integers, of
 *                         weight[k,i,j,l] dy[n,p,q,k],  p = (h + pad_top - i dilation_h)/stride_h,
 *                         q = (w + pad_left - j dilation_w)/stride_w
 *     dweight[k,i,j,l]  = sum over n, p and q of
 *                         dy[n,p,q,k] x[n, p stride_h - pad_top + i dilation_h, q stride_w - pad_left + j dilation_w,
 *                                       g cg + l]
 *     dbias[k]          = sum over n, p and q of dy[n,p,q,k]
 *
 * dy and x are 0 beyond their edges. At least one of dx, dweight and dbias is asked for.
 *
 * Source: the derivative of trine_conv2d()'s formula.
 *
 * Shapes: dy is n p q k, x and dx n h w c, weight and dweight k r s cg, dbias k; c is a multiple of cg, and k of c/cg;
 * without channels there is one group. All strides are free.
 * Types: dy, x, weight, dx and dweight are f32, f64, f16 or bf16, the same; dbias is of that type or, beside f16 and
 * bf16, f32. Accumulation is f32, and f64 of f64.
 * Parameters: strides and dilations are 1 to 65536, pads 0 to 65536.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of dx, r s k cg/c + 4 roundings of the accumulator of |weight| |dy|, of dweight n p q + 4 of |dy| |x|,
 * of f16 and bf16 2.25 times those, and of dbias n p q + 4 of |dy|, besides one of the type; spec/conv/conv.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; no output; rank, sizes, strides or element types that the
 * above does not admit; a parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_conv2d_backward(trine_queue *queue, const trine_conv2d_backward_args *args);

typedef struct trine_conv3d_args {
    size_t struct_size;         /* sizeof(trine_conv3d_args) */
    const trine_tensor *x;      /* in n d h w c */
    const trine_tensor *weight; /* in k t r s cg */
    const trine_tensor *bias;   /* in, optional k */
    const trine_tensor *y;      /* out n o p q k */
    int32_t stride_d;           /* planes of x from one plane of y to the next; 0: 1 */
    int32_t stride_h;           /* rows, likewise; 0: 1 */
    int32_t stride_w;           /* columns, likewise; 0: 1 */
    int32_t pad_front;          /* planes of zeros before the first of x */
    int32_t pad_top;            /* rows of zeros before the first of x */
    int32_t pad_left;           /* columns of zeros before the first of x */
    int32_t dilation_d;         /* planes of x from one plane of weight to the next; 0: 1 */
    int32_t dilation_h;         /* rows, likewise; 0: 1 */
    int32_t dilation_w;         /* columns, likewise; 0: 1 */
} trine_conv3d_args;

/* A convolution of volumes, in groups of channels: trine_conv2d() with an axis of depth.
 *
 *     y[n,o,p,q,k] = bias[k] + sum over m < t, i < r, j < s, l < cg of
 *                    weight[k,m,i,j,l] x[n, o stride_d - pad_front + m dilation_d, p stride_h - pad_top + i dilation_h,
 *                                        q stride_w - pad_left + j dilation_w, g cg + l],
 *                    g = k/(K/G), G = c/cg groups, K the number of k
 *
 * x is 0 beyond its edges, on all sides: what other libraries call the padding at the back, at the bottom and on the
 * right follows from the size of y, which may be any.
 *
 * Source: Tran et al. 2015, section 3; Krizhevsky et al. 2012, section 3.5, for groups.
 *
 * Shapes: x is n d h w c, weight k t r s cg, bias k and y n o p q k; c is a multiple of cg, and k of c/cg; without
 * channels there is one group. All strides are free: what is stored as n c d h w is a view with permuted dimensions.
 * Types: x, weight and y are f32, f64, f16 or bf16, the same; bias is of that type or, beside f16 and bf16, f32.
 * Accumulation is f32, and f64 of f64.
 * Parameters: strides and dilations are 1 to 65536, pads 0 to 65536.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound: t r s cg + 4 roundings of the accumulator of |weight| |x| + |bias|, of f16 and bf16 2.25 times that,
 * besides one of y's type; spec/conv/conv.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_conv3d(trine_queue *queue, const trine_conv3d_args *args);

/* What trine_pool2d() makes of a window. */
enum {
    TRINE_POOL2D_MAX = 0,        /* the largest, NaN if there is one; -Inf of nothing */
    TRINE_POOL2D_MEAN = 1,       /* the mean of those within x; 0 of nothing */
    TRINE_POOL2D_MEAN_PADDED = 2 /* the sum of those within x, over kernel_h kernel_w */
};

typedef struct trine_pool2d_args {
    size_t struct_size;          /* sizeof(trine_pool2d_args) */
    const trine_tensor *x;       /* in n h w c */
    const trine_tensor *y;       /* out n p q c */
    const trine_tensor *indices; /* out, optional n p q c, i64: where in its image the largest is */
    int32_t kind;                /* TRINE_POOL2D_*: what is made of a window */
    int32_t kernel_h;            /* rows of a window */
    int32_t kernel_w;            /* columns of a window */
    int32_t stride_h;            /* rows of x from one window to the next; 0: kernel_h */
    int32_t stride_w;            /* columns of x from one window to the next; 0: kernel_w */
    int32_t pad_top;             /* rows of windows before the first of x */
    int32_t pad_left;            /* columns of windows before the first of x */
    int32_t dilation_h;          /* rows of x from one row of a window to the next; 0: 1 */
    int32_t dilation_w;          /* columns of x from one column of a window to the next; 0: 1 */
} trine_pool2d_args;

/* The largest, or the mean, of windows of images, channel by channel.
 *
 *     y[n,p,q,c] = max or mean over i < kernel_h, j < kernel_w of
 *                  x[n, p stride_h - pad_top + i dilation_h, q stride_w - pad_left + j dilation_w, c]
 *
 * Only elements within x count; a mean is over their number, or with TRINE_POOL2D_MEAN_PADDED over kernel_h kernel_w.
 * indices is h W + w of the element that the largest is, W being the columns of x: of equal ones the first, row by row,
 * and of several NaN the last; -1 where a window has nothing within x, and for means. How far windows reach beyond the
 * bottom and the right follows from the size of y, which may be any.
 *
 * Source: LeCun et al. 1998, section II; PyTorch's max_pool2d and avg_pool2d, for NaN and indices.
 *
 * Shapes: x is n h w c, y and indices n p q c. All strides are free.
 * Types: x and y are f32, f64, f16 or bf16, the same; indices are i64. Sums are f32, and f64 of f64.
 * Parameters: kernel_h and kernel_w are 1 to 65536, as are strides and dilations; pads are 0 to 65536.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of a largest, none. Of a mean, kernel_h kernel_w + 3 roundings of the accumulator of the mean of |x|,
 * besides one of y's type; spec/conv/pool.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_pool2d(trine_queue *queue, const trine_pool2d_args *args);

typedef struct trine_pool2d_backward_args {
    size_t struct_size;     /* sizeof(trine_pool2d_backward_args) */
    const trine_tensor *dy; /* in n p q c */
    const trine_tensor *x;  /* in n h w c */
    const trine_tensor *dx; /* out n h w c */
    int32_t kind;           /* TRINE_POOL2D_*: the forward's */
    int32_t kernel_h;       /* the forward's */
    int32_t kernel_w;       /* the forward's */
    int32_t stride_h;       /* the forward's; 0: kernel_h */
    int32_t stride_w;       /* the forward's; 0: kernel_w */
    int32_t pad_top;        /* the forward's */
    int32_t pad_left;       /* the forward's */
    int32_t dilation_h;     /* the forward's; 0: 1 */
    int32_t dilation_w;     /* the forward's; 0: 1 */
} trine_pool2d_backward_args;

/* Gradient of trine_pool2d().
 *
 *     dx[n,h,w,c] = sum of dy[n,p,q,c] over the windows whose largest is x[n,h,w,c], or, for means, that hold it, each
 *                   by the number that the mean was over
 *
 * The largest of a window is the element that trine_pool2d() has the index of: the first of equal ones, the last of
 * several NaN. x is read for it; for means it tells sizes alone.
 *
 * Source: the derivative of trine_pool2d()'s formula; PyTorch's max_pool2d, for equal ones.
 *
 * Shapes: dy is n p q c, x and dx n h w c. All strides are free.
 * Types: dy, x and dx are f32, f64, f16 or bf16, the same. Sums are f32, and f64 of f64.
 * Parameters: kernel_h and kernel_w are 1 to 65536, as are strides and dilations; pads are 0 to 65536.
 * Aliasing: dx may not overlap another tensor.
 *
 * Error bound: as many roundings of the accumulator of |dy| as windows hold an element, and 3, besides one of dx's
 * type; spec/conv/pool2d_backward.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; dx overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_pool2d_backward(trine_queue *queue, const trine_pool2d_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
