/* SPDX-License-Identifier: Apache-2.0 */
/* An element of a product as matmul ends it, and what it may be off by. */
#ifndef TRINE_SPEC_ELEMENT_H
#define TRINE_SPEC_ELEMENT_H

#include "product.h"

/* Bound. S = sum_p a_p b_p, f = alpha a_scale b_scale, t = f S + beta c + bias, M = |f| sum_p |a_p b_p| + |beta c| +
 * |bias|, u the unit roundoff of the accumulator.
 *
 * A sum of k products in any order, fused or not, is off by at most k u sum |a_p b_p| (Jeannerod and Rump 2013: no
 * terms of higher order). Times alpha, plus beta c, plus bias: three roundings more on the way of each term, so |t' -
 * t| <= (k + 4)u M, the fourth u for the products of errors (k < 2^22). Two scales are two roundings more.
 * relu does not widen that; the slopes of the other activations stay below 1.13, and they are evaluated to 12u |t|: 4
 * ulp, or 8u, for exp, tanh or erf, four roundings round it. Rounding y' instead of y to D's type multiplies the error
 * by 1 + u(D). In f64 the reference itself, in long double, is off by up to 2^-11 of the bound.
 *
 * Matrix units for bf16 and f16 add 16 products, or fewer, and the accumulator in one step: each addend is cut off, not
 * rounded, at the last place of the largest of them, and so is the sum (Fasi, Higham, Mikaitis and Pranesh 2021, for
 * several generations). The largest is told by exponents, a subnormal's being that of the smallest normal (measured on
 * an H200: in e4m3, 2^-9 2^8 cuts as 2^-6 2^8 does). Let w_p be |a_p| |b_p|, either taken as its type's smallest normal
 * if it is less but not 0. An addend then loses up to 2u of the largest, which is at most sum w_p: with k products,
 * k/16 + 1 accumulators and as many sums that makes (2.25 k + 4)u, so that for these types 2.25 |f| sum w_p stands for
 * the first term of M.
 *
 * tf32: an operand loses up to 2^-10 of itself to the cut, a product 2^-9 + 2^-20 of itself, and units that add 4
 * products in one step make 3k of 2.25k.
 *
 * Float8: the products of both types are exact in bf16, f16 and f32, so that other units may be used, with their
 * errors. Those of sm_90 add 32 products and the accumulator in one step, and cut each addend, and the sum, at the 13th
 * bit of fraction of the largest (measured on an H200 as Fasi et al. do, with a product of 1 and others of 2^-j: those
 * of 2^-13 count, those of 2^-14 do not). A loss is below 2^-13 of the largest w_p or of the sum so far, and so of 1.02
 * sum w_p. Sums of up to 128 products, then added in f32, have 32 + 2 of them in each of four steps: (128 + 2 * 4) 1.02
 * 2^-13 sum w_p, for all parts of k together, and of fewer products as many losses fewer. Sums of small integers stay
 * exact: 128 products of up to 9 are below 2^13.
 *
 * Underflow: a product that is rounded by itself loses up to half the smallest subnormal. The bf16 units of CPUs and
 * GPUs take subnormal operands for zero, which loses the whole product, and flush sums below 2^-126; so may units for
 * tf32. The factors of f may be multiplied in any order: what is lost by underflow may grow by all that are above 1,
 * and a product of those below 1 may be 0, which an infinite sum makes NaN.
 * Overflow: where sum |a_p b_p|, M, or the product of sum |a_p b_p| and the factors above 1 exceeds the largest f32,
 * partial results may be infinite. */

/* i8: modulo 2^32. */
static inline double integer_element(const trine_matmul_args *args, double sum, const double *c, const double *bias) {
    uint32_t x = (uint32_t)(int64_t)args->alpha * (uint32_t)(int64_t)sum;
    if (c) x += (uint32_t)(int64_t)args->beta * (uint32_t)(int64_t)*c;
    if (bias) x += (uint32_t)(int64_t)*bias;
    return args->activation == TRINE_ACTIVATION_RELU && (int32_t)x < 0 ? 0 : (int32_t)x;
}

typedef struct result {
    double value, magnitude, slack;
} result;

/* What multiplies a sum: the product; those of the factors above 1, and below;
 * whether there are scales, and one that is Inf. */
typedef struct factors {
    long double product;
    double reach, least;
    bool scaled, infinite;
} factors;

static inline factors factors_of(const trine_matmul_args *args, const double *a_scale, const double *b_scale) {
    const double alpha = (double)args->alpha + 0, scale[2] = { a_scale ? *a_scale : 1, b_scale ? *b_scale : 1 };
    factors f = {
        .product = alpha, .reach = fmax(1, fabs(alpha)), .least = fmin(1, fabs(alpha)), .scaled = a_scale || b_scale
    };
    for (int i = 0; i < 2; i++) {
        f.product *= scale[i];
        f.infinite |= isinf(scale[i]);
        if (isfinite(scale[i])) f.reach *= fmax(1, fabs(scale[i])), f.least *= fmin(1, fabs(scale[i]));
    }
    return f;
}

/* The error of a sum of k products and of its scales, in (k + 4)u. */
static inline double sum_error(const trine_matmul_args *args, const dot *s, int64_t k, trine_dtype in, bool scaled) {
    const double terms = (double)k + 4, part = k < 128 ? (double)k : 128, losses = (part + 2 * ceil(part / 32)) * 1.02,
                 scales = scaled ? 2 / terms : 0;
    switch (in) {
    case TRINE_BF16:
    case TRINE_F16: return 2.25 * s->weight + scales * s->scale;
    case TRINE_E4M3:
    case TRINE_E5M2: return (2.25 + losses * 0x1p11 / terms) * s->weight + scales * s->scale;
    case TRINE_F32:
        if (args->precision == TRINE_PRECISION_TF32)
            return 3.01 * s->weight + ((0x1p15 + 0x1p4) / terms + scales) * s->scale;
        return (1 + scales) * s->scale;
    default: return (1 + scales) * s->scale;
    }
}

static inline result element(const trine_matmul_args *args, dot s, factors f, int64_t k, const double *c,
                             const double *bias, trine_dtype in, trine_dtype out) {
    const bool wide = in == TRINE_F64;
    const double beta = (double)args->beta + 0, u = wide ? 0x1p-53 : 0x1p-24, factor = fabs((double)f.product);
    long double t = f.product * s.sum;
    double m = isfinite(factor) ? factor * sum_error(args, &s, k, in, f.scaled) : 0;
    if (c) t += (long double)beta * *c;
    if (c && isfinite(*c)) m += fabs(beta * *c);
    if (bias) t += *bias;
    if (bias && isfinite(*bias)) m += fabs(*bias);
    const bool curved = args->activation > TRINE_ACTIVATION_RELU;
    const double lost = wide               ? 0x1p-1074
                        : in == TRINE_BF16 ? 0x1p-126
                                           : 0x1p-150,
                 largest = trine_largest(wide ? TRINE_F64 : TRINE_F32);
    const double grown = f.scaled ? f.reach * fmax(1, s.scale) : 1;
    result r = { .value = (double)activate(args->activation, t) };
    r.magnitude = m * (curved ? 1.13 : 1) * (1 + trine_unit_roundoff(out)) * (wide ? 1 + 0x1p-10 : 1);
    r.slack = trine_smallest_normal(out) * trine_unit_roundoff(out);
    if (isfinite(factor)) r.slack += 2 * (((double)k * lost + s.flushed) * factor + 3 * lost * grown);
    if (curved && isfinite((double)t)) r.slack += 12 * u * fabs((double)t);
    const bool vanishes = isinf((double)s.sum) && f.least < trine_smallest_normal(wide ? TRINE_F64 : TRINE_F32);
    if (f.infinite || vanishes ||
        !(s.scale < largest && m < largest && r.slack < largest && (!f.scaled || grown < largest)))
        r.magnitude = INFINITY, r.slack = 0;
    return r;
}

/* Element (batch, i) of [g] m, or of [g] n; NULL if the tensor is absent. */
static inline const double *scale_at(const double *scale, int64_t batch, int64_t lanes, int64_t i) {
    return scale ? scale + batch * lanes + i : NULL;
}

/* All elements of d: a, c, bias and the scales are those of the call; b is [gb] k n, row-major. */
static inline void product_elements(trine_ref *ref, const trine_matmul_args *args, const double *b) {
    const int64_t g = trine_ref_dim(ref, "g"), m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"),
                  k = trine_ref_dim(ref, "k");
    const int64_t a_batch = trine_ref_dim(ref, "ga") > 1 ? m * k : 0,
                  b_batch = trine_ref_dim(ref, "gb") > 1 ? k * n : 0;
    const trine_dtype in = trine_ref_type(ref, "T"), in_b = trine_ref_type(ref, "U"), out = trine_ref_type(ref, "O");
    const double *a = trine_ref_value(ref, "a"), *c = trine_ref_value(ref, "c"), *bias = trine_ref_value(ref, "bias");
    const double *a_scale = trine_ref_value(ref, "a_scale"), *b_scale = trine_ref_value(ref, "b_scale");
    double *d = trine_ref_value(ref, "d"), *magnitude = trine_ref_magnitude(ref, "d"),
           *slack = trine_ref_slack(ref, "d");
    const double least = trine_smallest_normal(in), least_b = trine_smallest_normal(in_b);
    const bool below = in != TRINE_I8 && in != TRINE_F64 &&
                       (any_below(a, trine_ref_dim(ref, "ga") * m * k, least) ||
                        any_below(b, trine_ref_dim(ref, "gb") * k * n, least_b));
    const bool flushes = below && (in == TRINE_BF16 || (in == TRINE_F32 && args->precision == TRINE_PRECISION_TF32));
    for (int64_t at = 0; at < g * m * n; at++) {
        const int64_t batch = at / (m * n), i = at / n % m, j = at % n;
        const double *row = a + batch * a_batch + i * k, *column = b + batch * b_batch + j;
        dot s = flushes ? dot_careful(row, column, k, n, 0x1p-126) : dot_of(row, column, k, n);
        if (in == TRINE_I8) {
            d[at] = integer_element(args, (double)s.sum, c ? c + at : NULL, bias ? bias + j : NULL);
            continue;
        }
        if (below) s.weight = dot_weight(row, column, k, n, least, least_b);
        const factors f = factors_of(args, scale_at(a_scale, batch, m, i), scale_at(b_scale, batch, n, j));
        const result r = element(args, s, f, k, c ? c + at : NULL, bias ? bias + j : NULL, in, out);
        d[at] = r.value;
        magnitude[at] = r.magnitude;
        slack[at] = r.slack;
    }
}

#endif
