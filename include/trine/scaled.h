/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of few bits whose scales are of blocks. */
#ifndef TRINE_SCALED_H
#define TRINE_SCALED_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the bytes of a and b are. A byte of two codes has the first in its lower half. */
enum {
    TRINE_SCALED_PLAIN = 0,    /* elements of their types; of b whole numbers of 4 bits where q is p/2 */
    TRINE_SCALED_E2M1 = 1,     /* b, of u8, has two codes of OCP FP4 in each byte */
    TRINE_SCALED_E2M1_BOTH = 2 /* and so has a */
};

typedef struct trine_matmul_scaled_args {
    size_t struct_size;          /* sizeof(trine_matmul_scaled_args) */
    const trine_tensor *a;       /* in m p */
    const trine_tensor *b;       /* in n q */
    const trine_tensor *a_scale; /* in, optional ma ka */
    const trine_tensor *b_scale; /* in, optional nb kb */
    const trine_tensor *bias;    /* in, optional n */
    const trine_tensor *d;       /* out m n */
    float alpha;                 /* 0: 1 */
    int32_t format;              /* TRINE_SCALED_* */
    int32_t offset;              /* taken from the codes of b that are whole numbers, -128 .. 255 */
    int32_t activation;          /* TRINE_ACTIVATION_* of <trine/matmul.h> */
} trine_matmul_scaled_args;

/* Product of matrices of few bits, with scales of their blocks, bias and activation.
 *
 *     d[i,j] = act(alpha sum_l a_scale[i / x, l / y] b_scale[j / z, l / w] a[i,l] b[j,l] + bias[j])
 *
 * quotients being rounded down. x rows of a and y of their elements share a scale, z rows of b and w of theirs. Row j
 * of b has the weights of output j. Of a dimension with n elements and c scales a block is the power of two of which n
 * has c blocks, whole or not; if there is none, n/c rounded up.
 *
 * Source: Rouhani et al. 2023 (blocks with scales; OCP Microscaling Formats 1.0); DeepSeek-AI 2024, section 3.3 (blocks
 * of 1 by 128 and 128 by 128); Lin et al. 2024 (QServe, weights of 4 bits by i8).
 *
 * Shapes: a is m p, b n q, d m n, bias n; a_scale ma ka, b_scale nb kb. ka and kb count the blocks of k. k, elements
 * in a row, is p, but 2 p with format e2m1_both. q is p, or p/2 where b alone has two codes in a byte: e2m1, and whole
 * numbers of 4 bits. There is at least one scale, and no more than rows, and bytes in a row; scales that
 * are absent are 1. m, n and k may be 0; k = 0 gives act(bias).
 * Strides: in each tensor the last dimension is contiguous. All other strides are free.
 * Types: a and b are both of e4m3 or e5m2, i8 by i8 or u8, e4m3 by i8 or u8, or u8 by u8. i8 is two's complement, also
 * of 4 bits, u8 without a sign, but for what format says. Scales are f32; or b's alone bf16 or f16; or all e8m0, or all
 * e4m3. d is f32, bf16 or f16; bias f32, or of d's type.
 * Parameters: format as above. offset 8 for codes of 4 bits in u8 that stand for -8 .. 7. alpha is finite; write -0.0f
 * for a true zero. activation as in trine_matmul().
 * Formats: MXFP8 is plain with scales of e8m0 for 32 elements; MXFP4 and NVFP4 are e2m1_both, this with scales of e4m3
 * for 16 elements, alpha being the product of the tensors' own scales.
 * Aliasing: d may overlap no other tensor.
 *
 * Error bound: |d - d64| <= u(d) |d64| + (2.25 P + N + 16) 2^-24 1.13 (|alpha| sum_l |a_scale b_scale a b| + |bias|),
 * where sums of P = min(k, 128) products are formed before they are scaled and N is the number of those sums, at most
 * k/128 + ka + kb; whole numbers have exact sums, and P is 0. Of two types of float8 (P + 2 ceil(P/32)) 1.02 2^11 is
 * added to 2.25 P: units keep 13 bits below the largest product, and a subnormal counts as the smallest normal; else
 * one of e5m2 counts as 2^-14. 1.13 is 1 for none and relu, and 12 2^-24 |t| is added where an activation is applied to
 * t; spec/scaled/matmul_scaled.c. An Inf among the factors gives Inf or NaN.
 * Deterministic: the same bits on the same device for any number of threads. The order of an element's sum depends on
 * sizes and types alone.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or d overlaps), TRINE_ERR_UNSUPPORTED (no
 * kernel of the device takes the call, or b of e4m3 or e5m2 has q = p/2), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_scaled(trine_queue *queue, const trine_matmul_scaled_args *args);

typedef struct trine_grouped_matmul_scaled_args {
    size_t struct_size;              /* sizeof(trine_grouped_matmul_scaled_args) */
    const trine_tensor *x;           /* in r k */
    const trine_tensor *w;           /* in e n q */
    const trine_tensor *offsets;     /* in e+1, i32: where the rows of each group begin in y */
    const trine_tensor *x_scale;     /* in, optional ra ka */
    const trine_tensor *w_scale;     /* in, optional e nb kb */
    const trine_tensor *group_scale; /* in, optional e, f32: factors of the groups' products */
    const trine_tensor *gather;      /* in, optional p, i32: the row of x that each row of y is made of */
    const trine_tensor *bias;        /* in, optional e n */
    const trine_tensor *row_scale;   /* in, optional p, f32: factors of y's rows */
    const trine_tensor *counts;      /* in, optional e, i32: rows of each group that are computed */
    const trine_tensor *y;           /* out p n */
    int64_t divide;                  /* gather counts rows of x so many times each; 0: 1 */
    int32_t format;                  /* TRINE_SCALED_* */
    int32_t code_offset;             /* taken from the codes of w that are whole numbers, -128 .. 255 */
    int32_t activation;              /* TRINE_ACTIVATION_* of <trine/matmul.h> */
} trine_grouped_matmul_scaled_args;

/* Products of groups of rows, each group with a matrix of its own, of few bits with scales of their blocks: the experts
 * of a mixture in float8, MXFP8, MXFP4 or NVFP4.
 *
 *     y[i,j] = row_scale[i] act(group_scale[g] t + bias[g,j]),  g with offsets[g] <= i < offsets[g+1]
 *     t = sum_l x_scale[s / a, l / b] w_scale[g, j / c, l / d] x[s,l] w[g,j,l]
 *
 * It is trine_grouped_matmul() with the operands and scales of trine_matmul_scaled(): quotients are rounded down, a
 * rows of x and b of their elements share a scale, and c rows of w[g] and d of theirs. Of a dimension with n elements
 * and c scales a block is the power of two of which n has c blocks, whole or not; if there is none, n/c rounded up. s
 * is i, or with gather the whole part of gather[i]/divide: scales are those of x's rows, before they are gathered. Rows
 * of y that no group has are 0, and so are those whose gather is below 0, or r divide and more, and with counts those
 * of a group beyond its first counts[g].
 *
 * Source: Gale et al. 2023 (grouped products for mixtures of experts); DeepSeek-AI 2024, section 3.3 (blocks of 1 by
 * 128 and 128 by 128); Rouhani et al. 2023 (OCP Microscaling Formats 1.0).
 *
 * Shapes: x is r k, w e n q, offsets e+1, x_scale ra ka, w_scale e nb kb, bias e n, y p n, group_scale and counts e,
 * gather and row_scale p. ka and kb count the blocks of a row. A row of x has k elements, but 2 k with format
 * e2m1_both. q is k, or k/2 where w alone has two codes in a byte: e2m1, and whole numbers of 4 bits. There is at least
 * one scale, and no more than rows, and bytes in a row; scales that are absent are 1. Without gather r = p. Any size
 * may be 0; k = 0 gives act(bias).
 * Strides: in each tensor the last dimension is contiguous. All other strides are free.
 * Types: x and w are both of e4m3 or e5m2, i8 by i8 or u8, e4m3 by i8 or u8, or u8 by u8. i8 is two's complement, also
 * of 4 bits, u8 without a sign, but for what format says. x_scale and w_scale are f32; or w's alone bf16 or f16; or
 * both e8m0, or both e4m3. y is f32, bf16 or f16; bias f32, or of y's type; group_scale and row_scale f32, offsets,
 * gather and counts i32. Sums are in f32 and rounded once, at the end.
 * Ranges: offsets ascend from at least 0 to p at most.
 * Parameters: format as for trine_matmul_scaled(). code_offset 8 for codes of 4 bits in u8 that stand for -8 .. 7.
 * activation as in trine_matmul(), before row_scale.
 * Formats: MXFP8 is plain with scales of e8m0 for 32 elements; MXFP4 and NVFP4 are e2m1_both, this with scales of e4m3
 * for 16 elements, group_scale being the products of the tensors' own scales.
 * Aliasing: y may overlap no other tensor.
 *
 * Error bound: |y - y64| <= u(y) |y64| + (2.25 P + N + 17) 2^-24 1.13 |row_scale| (|group_scale| sum_l |x_scale w_scale
 * x w| + |bias|), P, N and what is added for two types of float8 being those of trine_matmul_scaled(); 1.13 is 1 for
 * none and relu, and 12 2^-24 |row_scale t| is added where an activation is applied to t;
 * spec/scaled/grouped_matmul_scaled.c. An Inf among the factors gives Inf or NaN.
 * Deterministic: the same bits on the same device for any number of threads. Sums of a group that has few rows may be
 * in another order than of one that has many.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or y overlaps; on the CPU, offsets that
 * descend, or leave 0 to p), TRINE_ERR_UNSUPPORTED (p, r divide or e is more than 2^31 - 1, a row has more elements
 * than the device's kernel takes, or w of e4m3 or e5m2 has q = k/2), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_grouped_matmul_scaled(trine_queue *queue, const trine_grouped_matmul_scaled_args *args);

#ifdef __cplusplus
}
#endif

#endif
