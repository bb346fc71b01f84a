/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of convolutions share: their geometry, and sums of products with their errors. An image is a
 * volume of one plane.
 *
 * Bound. S = a sum of count products a_p b_p, t = S + bias, u the unit roundoff of the accumulator.
 *
 * A sum of that many products in any order, fused or not, is off by at most count u sum |a_p b_p| (Jeannerod and Rump
 * 2013: no terms of higher order). Products with the zeros beyond edges are exact. The bias is one rounding more, and
 * one is for products of errors: within (count + 4) u (sum |a_p b_p| + |bias|). Rounding y' instead of y to the
 * output's type multiplies the error by 1 + u(out). In f64 the reference itself, in long double, is off by up to 2^-10
 * of the bound.
 *
 * Matrix units for bf16 and f16 cut addends off, as spec/matmul/matmul.c derives: 2.25 sum w_p stands for sum
 * |a_p b_p|, w_p being |a_p| |b_p|, either taken as its type's smallest normal if it is less but not 0.
 *
 * Underflow: a product that is rounded by itself loses up to half the smallest subnormal. The bf16 units take subnormal
 * operands for zero, which loses the whole product, and flush sums below 2^-126.
 * Overflow: where sum |a_p b_p| or the whole exceeds the accumulator's largest, partial results may be infinite. */
#ifndef TRINE_SPEC_CONV_H
#define TRINE_SPEC_CONV_H

#include "spec/spec.h"

/* Strides, dilations and pads, which tables have as parameters. */
#define CONV_STEP(field, words) \
    PARAM(field, I32, .values = "1 2 3", .fallback = 1, .min = 0, .max = 65536, .doc = words)
#define CONV_PAD(field, words) PARAM(field, I32, .values = "0 1 2 5", .min = 0, .max = 65536, .doc = words)

/* Channels in groups. */
#define CONV_GROUPS "min(c, 1) == min(cg, 1)", "c % max(cg, 1) == 0", "k*cg % max(c, 1) == 0"

/* Along depth, height and width: sizes of x, weight and y, and what leads from one to the other. */
typedef struct conv_axis {
    int64_t in, taps, out, stride, pad, dilation;
} conv_axis;

typedef struct conv_shape {
    conv_axis axis[3];
    int64_t n, c, k, cg, kg; /* channels of a group: of x, and of y */
    trine_dtype type;
    double least; /* the type's smallest normal */
    bool below;   /* there may be operands below that, which matrix units take apart */
} conv_shape;

static inline conv_shape conv_shape_of(const trine_ref *ref) {
    conv_shape s = { .n = trine_ref_dim(ref, "n"),
                     .c = trine_ref_dim(ref, "c"),
                     .k = trine_ref_dim(ref, "k"),
                     .cg = trine_ref_dim(ref, "cg"),
                     .type = trine_ref_type(ref, "T") };
    s.kg = s.c > 0 ? s.k / (s.c / s.cg) : s.k;
    s.least = trine_smallest_normal(s.type);
    s.below = s.type == TRINE_F16 || s.type == TRINE_BF16;
    return s;
}

/* A sum of products as it grows: of |a b| over the finite ones, over those that a flushed operand would lose, and of
 * w. */
typedef struct conv_sum {
    long double sum;
    double scale, flushed, weight;
} conv_sum;

static inline void conv_add(const conv_shape *s, conv_sum *to, double a, double b) {
    const double size = fabs(a * b), x = fabs(a), y = fabs(b);
    to->sum += (long double)a * b;
    if (!isfinite(a) || !isfinite(b)) return;
    to->scale += size;
    if (!s->below || x == 0 || y == 0) return;
    if (s->type == TRINE_BF16 && (x < s->least || y < s->least)) to->flushed += size;
    to->weight += fmax(x, s->least) * fmax(y, s->least);
}

/* The sum of `count` products plus a bias, 0 if there is none, as element `at` of an output of type `out`. */
static inline void conv_put(trine_ref *ref, const char *output, int64_t at, const conv_shape *s, const conv_sum *from,
                            double count, double bias, trine_dtype out) {
    const bool wide = s->type == TRINE_F64;
    const double lost = wide                    ? 0x1p-1074
                        : s->type == TRINE_BF16 ? 0x1p-126
                                                : 0x1p-150,
                 largest = trine_largest(wide ? TRINE_F64 : TRINE_F32),
                 m = (s->below ? 2.25 * from->weight : from->scale) + trine_finite_abs(bias);
    double magnitude = m * (1 + trine_unit_roundoff(out)) * (wide ? 1 + 0x1p-10 : 1),
           slack = 2 * (count * lost + from->flushed) + 3 * lost;
    slack += trine_smallest_normal(out) * trine_unit_roundoff(out);
    if (!(from->scale < largest && m < largest && slack < largest)) magnitude = INFINITY, slack = 0;
    trine_ref_value(ref, output)[at] = (double)(from->sum + bias);
    trine_ref_magnitude(ref, output)[at] = magnitude;
    trine_ref_slack(ref, output)[at] = slack;
}

/* Where tap `tap` of output position `at` is in x; -1: beyond its edges. */
static inline int64_t conv_source(const conv_axis *a, int64_t at, int64_t tap) {
    const int64_t from = at * a->stride - a->pad + tap * a->dilation;
    return from < a->in ? from < 0 ? -1 : from : -1;
}

/* Element [n,o,p,q,k] of y, its places told by `at`. */
static inline conv_sum conv_forward(const conv_shape *s, const double *x, const double *weight, int64_t n,
                                    const int64_t *at, int64_t k) {
    const conv_axis *d = &s->axis[0], *h = &s->axis[1], *w = &s->axis[2];
    const int64_t first = k / (s->kg > 0 ? s->kg : 1) * s->cg;
    const double *tap = weight + k * d->taps * h->taps * w->taps * s->cg;
    conv_sum sum = { 0 };
    for (int64_t t = 0; t < d->taps; t++)
        for (int64_t r = 0; r < h->taps; r++)
            for (int64_t j = 0; j < w->taps; j++, tap += s->cg) {
                const int64_t z = conv_source(d, at[0], t), y = conv_source(h, at[1], r), v = conv_source(w, at[2], j);
                const bool there = z >= 0 && y >= 0 && v >= 0;
                const double *from = there ? x + (((n * d->in + z) * h->in + y) * w->in + v) * s->c + first : NULL;
                for (int64_t l = 0; l < s->cg; l++) conv_add(s, &sum, from ? from[l] : 0, tap[l]);
            }
    return sum;
}

/* y of a convolution, whose axes are told. */
static inline void conv_reference(trine_ref *ref, const conv_shape *s) {
    const double *x = trine_ref_value(ref, "x"), *weight = trine_ref_value(ref, "weight"),
                 *bias = trine_ref_value(ref, "bias");
    const conv_axis *d = &s->axis[0], *h = &s->axis[1], *w = &s->axis[2];
    const int64_t pixels = d->out * h->out * w->out;
    const double count = (double)d->taps * (double)h->taps * (double)w->taps * (double)s->cg;
    for (int64_t i = 0; i < s->n * pixels; i++) {
        const int64_t at[] = { i % pixels / (h->out * w->out), i / w->out % h->out, i % w->out };
        for (int64_t k = 0; k < s->k; k++) {
            const conv_sum sum = conv_forward(s, x, weight, i / pixels, at, k);
            conv_put(ref, "y", i * s->k + k, s, &sum, count, bias ? bias[k] : 0, s->type);
        }
    }
}

#endif
