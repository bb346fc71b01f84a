/* SPDX-License-Identifier: Apache-2.0 */
/* Images: what stands between a decoder and a model. */
#ifndef TRINE_IMAGE_H
#define TRINE_IMAGE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How pixels between pixels are made. */
enum {
    TRINE_RESIZE_NEAREST = 0,  /* the nearest pixel */
    TRINE_RESIZE_BILINEAR = 1, /* two pixels along each side */
    TRINE_RESIZE_BICUBIC = 2,  /* four pixels along each side (Keys 1981) */
    TRINE_RESIZE_AREA = 3      /* the mean over what a pixel of the output covers */
};

/* Where the middle of a pixel of the output is among those of the box. */
enum {
    TRINE_COORDINATES_HALF_PIXEL = 0,    /* edges meet edges */
    TRINE_COORDINATES_ALIGN_CORNERS = 1, /* the middles of the corners meet */
    TRINE_COORDINATES_ASYMMETRIC = 2     /* the middles of the first pixels meet */
};

typedef struct trine_crop_resize_normalize_args {
    size_t struct_size;            /* sizeof(trine_crop_resize_normalize_args) */
    const trine_tensor *x;         /* in n h w c */
    const trine_tensor *boxes;     /* in, optional b 4: left, top, right and bottom of each; NULL: whole images */
    const trine_tensor *images;    /* in, optional b: the image that each box is of; NULL: box i is of image i */
    const trine_tensor *mean;      /* in, optional c, f32 */
    const trine_tensor *deviation; /* in, optional c, f32: of the channels */
    const trine_tensor *y;         /* out b p q c */
    int32_t filter;                /* TRINE_RESIZE_* */
    int32_t coordinates;           /* TRINE_COORDINATES_* */
    int32_t antialias;             /* 1: bilinear and bicubic reach as far as a pixel of y does */
    int32_t reverse;               /* 1: channels in reverse order, RGB for BGR */
    float scale;                   /* of pixels, before the mean is taken off; 0: 1 */
    float cubic;                   /* bicubic's slope at 1, -1 to 0; 0: -0.75 */
} trine_crop_resize_normalize_args;

/* Boxes of images, each resized to p x q pixels and normalised.
 *
 *     y[i,a,b,c] = (scale sum over r, s of V[a,r] H[b,s] x[images[i], top + r, left + s, d] - mean[c]) / deviation[c]
 *
 * with d = c, or the number of channels less 1 + c with reverse. A box is the pixels from left to right and from top to
 * bottom, right and bottom not among them, as far as they are in the image: h' = bottom - top rows of w' = right - left
 * pixels. The weights V are those of p pixels made of h', and H of q made of w', by the same rule. Pixel b's middle is
 * at:
 *
 *     u = (b + 1/2) w'/q - 1/2      half_pixel
 *         b (w' - 1) / (q - 1)      align_corners; 0 if q is 1
 *         b w'/q                    asymmetric
 *
 * and a pixel beyond the box is the nearest one in it.
 *
 *     nearest    H[b, floor(u + 1/2)] = 1, asymmetric H[b, floor(u)] = 1
 *     bilinear   H[b,s] = k(s - u), k(t) = 1 - |t| for |t| < 1
 *     bicubic    H[b,s] = k(s - u), k(t) = (m+2)|t|^3 - (m+3)|t|^2 + 1 for |t| <= 1,
 *                m (|t|^3 - 5|t|^2 + 8|t| - 4) for 1 < |t| < 2, m = cubic
 *     area       H[b,s] = the part of [b w'/q, (b+1) w'/q] that [s, s+1] covers
 *
 * With antialias bilinear and bicubic are H[b,s] = k((s - u) / g) / sum over s of that, g = max(1, w'/q), u of
 * half_pixel whatever coordinates says, and pixels beyond the box have no part. coordinates says nothing of area, nor
 * antialias of nearest and area. A pixel whose weight is 0 is not read, but for those that antialias's |s - u| = g
 * gives one of 0.
 *
 * So half_pixel is PyTorch's interpolate and OpenCV's resize, nearest being PyTorch's nearest-exact; asymmetric is
 * PyTorch's and OpenCV's nearest; antialias with cubic = -0.5 is Pillow's and PyTorch's.
 *
 * A box that is empty, has nothing in its image, or is of an image that is not in [0, n), gives NaN.
 *
 * Source: Keys 1981 for bicubic; crop, resize and normalise as one kernel are of the Fused Kernel Library (Amoros et
 * al. 2025).
 *
 * Shapes: x is n h w c, boxes b 4, images b, mean and deviation c, y b p q c; without images b is n. All strides of x
 * and y are free: with the strides of planes they are n c h w in memory. The stride of boxes' rows is free.
 * Types: x is u8 or f32; boxes and images are i32 or i64; y is f32, f16 or bf16. Computation is in f32, rounded once.
 * Places and weights follow from whole numbers, so that no pixel is missed by rounding.
 * Parameters: scale is finite, cubic -1 to 0. As 0 stands for 1 and for -0.75, write -0.0f for a zero.
 * Aliasing: y may overlap no other tensor.
 *
 * Error bound: of the sum over |weights| |x|, R + C + 3 roundings of f32 for R rows and C columns that have a part, and
 * 4 for a bilinear weight or of an area, 17 of 1 for a bicubic one, more where antialias divides; 3 of scale times
 * that + |mean|; all over |deviation|, besides one of y's type; spec/image/crop_resize_normalize.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; without images b is not n; more than 2^30 pixels along a side; a parameter out of range; y overlaps another
 * tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_crop_resize_normalize(trine_queue *queue, const trine_crop_resize_normalize_args *args);

#ifdef __cplusplus
}
#endif

#endif
