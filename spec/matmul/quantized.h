/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of products with quantized weights share: the weights of a row, and an element of the product
 * with its errors. Their bound is derived in spec/matmul/matmul_quantized.c. */
#ifndef TRINE_SPEC_QUANTIZED_H
#define TRINE_SPEC_QUANTIZED_H

#include "product.h"
#include "spec/quantize/codes.h"

typedef struct weight {
    double w, size, reach; /* the weight, W, and the same with factors of 1 at least */
    bool nan;              /* is it made of one? */
} weight;

static inline weight weight_of(int32_t offset, double code, double scale, double zero, double min) {
    const double step = code - offset, whole = fabs(step) + fabs(zero);
    return (weight){ .w = (step - zero) * scale + min,
                     .size = whole * fabs(scale) + fabs(min),
                     .reach = fmax(whole, 1) * fmax(fabs(scale), 1) + fabs(min),
                     .nan = isnan(scale) || isnan(zero) || isnan(min) };
}

/* The k weights of row j of the codes. */
static inline void weights_of_row(weight *row, const trine_ref *ref, const codes *kind, int32_t offset, int64_t j) {
    const int64_t k = trine_ref_dim(ref, "k"), groups = trine_ref_dim(ref, "groups"),
                  bytes = trine_ref_dim(ref, "bytes"), group = groups > 0 ? k / groups : 0;
    const double *codes = trine_ref_value(ref, "codes"), *scales = trine_ref_value(ref, "scales"),
                 *zeros = trine_ref_value(ref, "zeros"), *mins = trine_ref_value(ref, "mins");
    for (int64_t l = 0; l < k; l++) {
        const int64_t g = j * groups + l / group;
        row[l] = weight_of(offset, codes_get(kind, codes + g * bytes, l % group), scales[g], zeros ? zeros[g] : 0,
                           mins ? mins[g] : 0);
    }
}

typedef struct quantized_result {
    double value, magnitude, slack;
} quantized_result;

/* factor act(sum_l x_l w_l + bias), where bias and factor may be NULL. */
static inline quantized_result quantized_element(const trine_ref *ref, const double *x, const weight *row,
                                                 const double *bias, int32_t activation, const double *factor) {
    const int64_t k = trine_ref_dim(ref, "k");
    const trine_dtype in = trine_ref_type(ref, "T"), out = trine_ref_type(ref, "O");
    const double least = trine_smallest_normal(in), lost = in == TRINE_BF16 ? 0x1p-126 : 0x1p-148,
                 unformed = in == TRINE_F16 ? 0x1p-25 : lost, times = factor ? *factor : 1, whole = fabs(times);
    const bool curved = activation > TRINE_ACTIVATION_RELU;
    long double sum = bias ? *bias : 0;
    double size = bias ? trine_finite_abs(*bias) : 0, reach = size, slipped = 0;
    bool beyond = (bias && !isfinite(*bias)) || !isfinite(times), nan = (bias && isnan(*bias)) || isnan(times);
    for (int64_t l = 0; l < k; l++) {
        const double a = x[l], b = fabs(a);
        sum += (long double)a * row[l].w;
        beyond |= !isfinite(a) || !(row[l].reach < trine_largest(in));
        nan |= isnan(a) || row[l].nan;
        size += (b > 0 ? fmax(b, least) : 0) * (row[l].size > 0 ? fmax(row[l].size, least) : 0);
        reach += b * (1 + row[l].reach);
        slipped += (b + 1) * unformed + row[l].size * lost;
    }
    quantized_result r = { .value = (double)(times * activate(activation, sum)),
                           .magnitude = size * whole * (curved ? 1.13 : 1) * (1 + trine_unit_roundoff(out)),
                           .slack = trine_smallest_normal(out) * trine_unit_roundoff(out) + 2 * slipped * whole };
    if (curved && isfinite((double)sum)) r.slack += 12 * 0x1p-24 * fabs((double)sum) * whole;
    if (factor) r.slack += 6 * lost * fmax(1, whole);
    if (beyond || !(reach * fmax(1, whole) < trine_largest(TRINE_F32))) r.magnitude = INFINITY, r.slack = 0;
    if (isnan(r.value) && !nan) r.value = INFINITY;
    return r;
}

#endif
