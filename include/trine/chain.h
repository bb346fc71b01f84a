/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of operations on elements and rows, fused when they are called. */
#ifndef TRINE_CHAIN_H
#define TRINE_CHAIN_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_chain_args {
    size_t struct_size;     /* sizeof(trine_chain_args) */
    const trine_tensor *x0; /* in [p] [q] [r] n, may be broadcast, as may be the others: */
    const trine_tensor *x1; /* in, optional [p] [q] [r] n: what the program reads must be given */
    const trine_tensor *x2; /* in, optional [p] [q] [r] n */
    const trine_tensor *x3; /* in, optional [p] [q] [r] n */
    const trine_tensor *x4; /* in, optional [p] [q] [r] n */
    const trine_tensor *x5; /* in, optional [p] [q] [r] n */
    const trine_tensor *x6; /* in, optional [p] [q] [r] n */
    const trine_tensor *x7; /* in, optional [p] [q] [r] n */
    const trine_tensor *y0; /* out [p] [q] [r] n */
    const trine_tensor *y1; /* out, optional [p] [q] [r] n: NULL: not stored, if the program sets it */
    const trine_tensor *y2; /* out, optional [p] [q] [r] n */
    const trine_tensor *y3; /* out, optional [p] [q] [r] n */
    const char *program;    /* what to do, "y0 = x0 + x1"; read during the call alone */
    const trine_tensor *r0; /* out, optional [p] [q] [r]: one value for each row */
    const trine_tensor *r1; /* out, optional [p] [q] [r] */
} trine_chain_args;

/* A short program on elements and rows, run as one kernel: each input is read from memory once, but where rows are
 * long, and nothing between inputs and outputs is stored.
 *
 *     t = x0 + x1; m = max_row(t); e = exp(t - m); y0 = e / sum_row(e)
 *
 * A program is statements NAME = EXPRESSION, parted by semicolons. x0 to x7 are the inputs at an element, y0 to y3 the
 * outputs, r0 and r1 those that have one value for a row; other names stand for what they were last set to, and may be
 * set again. Spaces and ends of lines mean nothing. Expressions are made of decimal numbers, names and parentheses, and
 * of these:
 *
 *     a + b, a - b, a * b, a / b, -a
 *     a < b, a <= b, a > b, a >= b, a == b, a != b    1 or 0; one in an expression, but for parentheses
 *     select(c, a, b)                                 a if c is not 0, else b
 *     min(a, b), max(a, b)                            NaN if one is
 *     fma(a, b, c)                                    a b + c, rounded once or twice
 *     abs(a), floor(a), sqrt(a), rsqrt(a), exp(a), log(a), tanh(a), erf(a)
 *     sigmoid(a), silu(a), relu(a)                    1/(1 + e^-a), a sigmoid(a), max(a, 0)
 *     gelu(a), gelu_tanh(a)                           a/2 (1 + erf(a/sqrt 2)), and gelu's form tanh
 *     bf16(a), f16(a), f32(a)                         rounded to that type, to nearest even
 *     sum_row(a), mean_row(a), max_row(a), min_row(a) over the row, which is the last dimension; NaN if one is
 *
 * "-" binds stronger than "*" and "/", those stronger than "+" and "-", and these than comparisons. What is written
 * twice is computed once. The value of a row, as sum_row(a), may stand wherever an element may; r0 and r1 are set to
 * such values alone, as in "m = max_row(x0); e = exp(x0 - m); s = sum_row(e); y0 = e / s; r0 = m + log(s)". A program
 * has room for 1024 characters, 128 steps, 32 different numbers, 32 values of a row, 16 values of an element at once,
 * reductions of reductions to a depth of 7, and 8 reductions at each; trine explain says how many it takes.
 *
 * Source: Wahib and Maruyama 2014 on fusing kernels; Shi et al. 2023 (Welder) on what moves through memory.
 *
 * Shapes: all [p] [q] [r] n, but r0 and r1 [p] [q] [r]; missing leading dimensions are 1, and a dimension of an input
 * may be 1 where that of y0 is not. The last dimension is contiguous, leading strides are free, as are all of r0 and
 * r1.
 * Types: x0 is f32, bf16, f16, i8, u8 or i32, x1 f32, bf16 or f16, x2 to x7 f32, bf16 or f16, all the same, y0 to y3
 * likewise, r0 and r1 f32. All is computed in f32, to which i32 is rounded; a result is rounded to the output's type.
 * If one of the tensors is f64, all is computed in f64, and the program's numbers are f64: x0 is then f64, f32 or i32,
 * the others f64 or f32, x2 to x7 all the same, y0 to y3 likewise, and r0 and r1.
 * Aliasing: an output may be one of x0 to x3, the very same view. All other overlap with an output is an error.
 *
 * Error bound: composed. Each step has one of its own, 2^-24 of a sum or product, 2^-23 of a quotient or square root,
 * 4, 8 or 11 times 2^-24 of what functions give, more where results are subnormal; what its operands are off by goes
 * through it besides, and through comparisons as either outcome; spec/chain/errors.h. Sums over a row are off by min(n,
 * 256) + n/1024 + 16 times 2^-24 of the sum of absolute values. In f64 2^-53 takes the place of 2^-24.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL, or one that the program reads; an output that it does not set;
 * program is NULL or wrong, and the message says at which character, and what was expected; rank, sizes, strides or
 * element types that the above does not admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_chain(trine_queue *queue, const trine_chain_args *args);

#ifdef __cplusplus
}
#endif

#endif
