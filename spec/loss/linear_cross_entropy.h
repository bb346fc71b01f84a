/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of linear_cross_entropy and linear_cross_entropy_backward share: logits and how far a kernel's
 * may be off, and the products of their gradient. */
#ifndef TRINE_SPEC_LINEAR_CROSS_ENTROPY_H
#define TRINE_SPEC_LINEAR_CROSS_ENTROPY_H

#include <stdlib.h>

#include "cross_entropy.h"

/* A dot product of n terms a_p b_p, a_p being off by off_p in a kernel (NULL: not at all). `size`: what the roundings
 * of its sum are relative to, infinite where partial sums may overflow, or where the errors decide whether it is NaN;
 * `slack`: what it is off by besides. */
typedef struct product {
    double value, size, slack;
} product;

typedef struct series {
    const double *at;
    int64_t step;
    const double *off;
} series;

/* Bound: that of matmul, whose comment derives it. The sum of |a b|, for bf16 and f16 2.25 times that with operands
 * taken as the smallest normal where they are smaller; the errors of a pass on times |b|. A product may lose what
 * underflows; of bf16 all of itself, where an operand is subnormal. */
static inline product product_of(series a, series b, int64_t n, trine_dtype dtype) {
    const bool narrow = dtype != TRINE_F32;
    const double least = narrow ? trine_smallest_normal(dtype) : 0, lost = dtype == TRINE_BF16 ? 0x1p-126 : 0x1p-150;
    long double sum = 0;
    product r = { .slack = 2 * (double)(n + 4) * lost };
    bool unsure = false, nan = false;
    for (int64_t p = 0; p < n; p++) {
        const double x = a.at[p * a.step], y = b.at[p * b.step], off = a.off ? a.off[p * a.step] : 0;
        sum += (long double)x * y;
        unsure |= isinf(off) || (isinf(y) && off > 0 && fabs(x) <= off);
        nan |= isnan(y) || (isnan(x) && off == 0);
        if (!isfinite(x) || !isfinite(y)) continue;
        const double most = fabs(x) + off;
        if (most != 0 && y != 0) r.size += fmax(most, least) * fmax(fabs(y), least);
        r.slack += off * fabs(y);
        if (dtype == TRINE_BF16 && (fabs(x) < 0x1p-126 || fabs(y) < 0x1p-126)) r.slack += 2 * most * fabs(y);
    }
    r.value = (double)sum;
    unsure |= !(r.size < trine_largest(TRINE_F32)) || !(r.slack < trine_largest(TRINE_F32));
    if (narrow) r.size *= 2.25;
    if (unsure) r.size = INFINITY, r.slack = 0;
    if (unsure && isnan(r.value) && !nan) r.value = INFINITY; /* NaN is not certain */
    return r;
}

/* A row of logits, and how far off a kernel's are, which rounds them to f32: (k + 4)u of the products' size and the
 * bias, and once more of what they are. */
static inline void head_logits(trine_ref *ref, int64_t i, double *logits, double *off) {
    const int64_t k = trine_ref_dim(ref, "k"), v = trine_ref_dim(ref, "v");
    const double *x = trine_ref_value(ref, "x"), *weight = trine_ref_value(ref, "weight"),
                 *bias = trine_ref_value(ref, "bias");
    const double u = trine_unit_roundoff(TRINE_F32);
    for (int64_t j = 0; j < v; j++) {
        const product s = product_of((series){ x + i * k, 1, NULL }, (series){ weight + j * k, 1, NULL }, k,
                                     trine_ref_type(ref, "T"));
        const double b = bias ? bias[j] : 0, size = s.size + trine_finite_abs(b);
        logits[j] = s.value + b;
        off[j] = size < trine_largest(TRINE_F32)
                     ? u * (1 + u) * (double)(k + 4) * size + u * trine_finite_abs(logits[j]) + s.slack
                     : INFINITY;
        if (isinf(off[j]) && isnan(logits[j]) && !isnan(s.value) && !isnan(b)) logits[j] = INFINITY;
    }
}

static inline bool any_nan(const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i])) return true;
    return false;
}

/* How far a kernel's gradient of a logit may be off, by the bound that row_gradient() writes; infinite where it may
 * overflow. */
static inline double gradient_off(double g, double magnitude, double slack) {
    const double u = trine_unit_roundoff(TRINE_F32);
    if (isinf(magnitude) || isinf(slack)) return INFINITY;
    return isfinite(g) ? 20 * u * magnitude + slack + u * fabs(g) : 0;
}

/* The same once it is rounded to the type of x: a subnormal, in bf16, to zero. */
static inline double rounded_off(double g, double off, trine_dtype dtype) {
    if (dtype == TRINE_F32 || !isfinite(g)) return off;
    const double u = trine_unit_roundoff(dtype), least = trine_smallest_normal(dtype);
    if (!(fabs(g) + off < trine_largest(dtype) * (1 - u))) return INFINITY;
    return off + u * (fabs(g) + off) + least * (dtype == TRINE_F16 ? u : 1);
}

/* dx, dweight and dbias, from the gradients g [t v] of the logits, which are off by g_off.
 *
 * dx. A product over v, of gradients that were rounded to T.
 *
 * dweight. Products over the tokens of a chunk, each added to what came before: (c + 4)u for c tokens, as matmul has
 * it. Of more chunks than one each has at least 128 tokens, but the last, so that for all t + 4(t/128 + 2) are enough;
 * rounding to the type of dweight comes once.
 *
 * dbias. Sums of the gradients in f32, over the tokens of a chunk and over chunks, each as reduce_sum has it. */
static inline void head_gradients(trine_ref *ref, const double *g, double *g_off) {
    const int64_t t = trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"), v = trine_ref_dim(ref, "v");
    const double *x = trine_ref_value(ref, "x"), *weight = trine_ref_value(ref, "weight");
    double *dx = trine_ref_value(ref, "dx"), *dweight = trine_ref_value(ref, "dweight"),
           *dbias = trine_ref_value(ref, "dbias");
    const trine_dtype type = trine_ref_type(ref, "T");
    for (int64_t j = 0; dbias && j < v; j++) {
        double sum = 0, size = 0, off = 0;
        for (int64_t i = 0; i < t; i++) {
            sum += g[i * v + j];
            size += trine_finite_abs(g[i * v + j]) + g_off[i * v + j];
            off += g_off[i * v + j];
        }
        dbias[j] = isinf(off) && isnan(sum) ? INFINITY : sum;
        trine_ref_magnitude(ref, "dbias")[j] = size < trine_largest(TRINE_F32) ? size : INFINITY;
        trine_ref_slack(ref, "dbias")[j] = isinf(off) ? 0 : off + (double)(t + 2) * trine_smallest_normal(TRINE_F32);
    }
    for (int64_t at = 0; at < t * v; at++) g_off[at] = rounded_off(g[at], g_off[at], type);
    for (int64_t at = 0; dx && at < t * k; at++) {
        const int64_t i = at / k, p = at % k;
        const product s = product_of((series){ g + i * v, 1, g_off + i * v }, (series){ weight + p, k, NULL }, v, type);
        dx[at] = s.value;
        trine_ref_magnitude(ref, "dx")[at] = s.size;
        trine_ref_slack(ref, "dx")[at] = s.slack;
    }
    for (int64_t at = 0; dweight && at < v * k; at++) {
        const int64_t j = at / k, p = at % k;
        const product s = product_of((series){ g + j, v, g_off + j }, (series){ x + p, k, NULL }, t, type);
        dweight[at] = s.value;
        trine_ref_magnitude(ref, "dweight")[at] = s.size;
        trine_ref_slack(ref, "dweight")[at] = s.slack;
    }
}

#define HEAD_TERMS_DX "v + 4"
#define HEAD_TERMS_DWEIGHT "t + t/32 + 8"
#define HEAD_TERMS_DBIAS "2*min(t, 256) + t/512 + 32"

/* The tables' alike parts. */
#define HEAD_PARAMS { CROSS_ENTROPY_PARAMS }
#define HEAD_TYPES \
    { "T=f32 B=f32 D=f32 L=i64|i32", "T=bf16 B=bf16|f32 D=bf16|f32 L=i64|i32", "T=f16 B=f16|f32 D=f16|f32 L=i64|i32" }
#define HEAD_SIZES { "t: 0 1 3 17 40", "k: 1 0 2 7 16 33 64", "v: 1 2 7 31 64 257 1000" }
#define HEAD_CASES \
    { "smollm2 f32: T=f32 L=i64 t=1024 k=576 v=49152 +dx +dweight", \
      "smollm2: T=bf16 D=bf16 L=i64 t=1024 k=576 v=49152 +dx +dweight", \
      "llama3-1b: T=bf16 D=bf16 L=i64 t=8192 k=2048 v=128256 +dx +dweight", \
      "llama3-8b: T=bf16 D=bf16 L=i64 t=8192 k=4096 v=128256 +dx +dweight", \
      "llama3-8b, f32 gradient: T=bf16 D=f32 L=i64 t=8192 k=4096 v=128256 +dx +dweight", \
      "small: T=f32 L=i64 t=512 k=256 v=4096 +dx +dweight" }

#endif
