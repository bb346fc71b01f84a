/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm_clip: the table and the reference. */
#include <math.h>

#include <trine/optimizer.h>

#include "spec/spec.h"

#define ARGS trine_global_norm_clip_args

/* Bounds, with u = 2^-24 and w = 2^-53. The squares of f32 elements are exact in f64 and cannot overflow there, so a
 * sum of n of them and g others in any order is off by (n + g - 1)w of itself. sum_squares is that, rounded. The square
 * root halves the error and adds w, the quotient w again. The coefficient is rounded to f32 before it multiplies x, and
 * the product is rounded to f32 before it becomes y: 2u of |y|, and (n + g + 4)w, and where the coefficient is
 * subnormal 2^-150 |x|. One that may be rounded to 0 makes NaN of an Inf, whose square then is not in the norm. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *other = trine_ref_value(ref, "other_squares");
    const int64_t g = other ? trine_ref_dim(ref, "g") : 0;
    double own = 0, rest = 0;
    for (int64_t i = 0; i < n; i++) own += x[i] * x[i];
    for (int64_t i = 0; i < g; i++) rest += other[i];
    const double norm = sqrt(other && args->own_included ? rest : own + rest), quotient = args->max_norm / norm;
    const double coefficient = args->max_norm == 0 || quotient >= 1 ? 1 : quotient;

    double *sum_squares = trine_ref_value(ref, "sum_squares"), *norm_out = trine_ref_value(ref, "norm");
    double *coefficient_out = trine_ref_value(ref, "coefficient"), *y = trine_ref_value(ref, "y");
    if (sum_squares) {
        sum_squares[0] = own;
        trine_ref_magnitude(ref, "sum_squares")[0] = own;
    }
    if (norm_out) {
        norm_out[0] = norm;
        trine_ref_magnitude(ref, "norm")[0] = norm;
    }
    if (coefficient_out) {
        coefficient_out[0] = coefficient;
        trine_ref_magnitude(ref, "coefficient")[0] = coefficient;
    }
    if (!y) return;
    for (int64_t i = 0; i < n; i++) {
        y[i] = coefficient == 1 ? x[i] : coefficient * x[i];
        if (isinf(y[i]) && coefficient < 0x1p-149) trine_ref_magnitude(ref, "y")[i] = INFINITY;
        if (!isfinite(y[i]) || coefficient == 1) continue;
        trine_ref_magnitude(ref, "y")[i] = fabs(y[i]);
        trine_ref_slack(ref, "y")[i] = fabs(y[i]) * (double)(n + g + 4) * 0x1p-53 + 0x1p-150 * fabs(x[i]);
    }
}

const trine_spec trine_spec_global_norm_clip = {
    SPEC(global_norm_clip),
    .summary = "Clipping by the global norm",
    .formula = "sum_squares = sum_i x[i]^2; norm = sqrt(sum_squares + sum_j other_squares[j]), without sum_squares if "
               "own_included; coefficient = min(1, max_norm/norm), 1 if max_norm is left out; "
               "y = coefficient x",
    .source = "Pascanu et al. 2013, algorithm 1",
    .tensors = { TENSOR(x, IN, "T", "n"), TENSOR(y, OUT | OPTIONAL, "T", "n", .terms = "2"),
                 TENSOR(other_squares, IN | OPTIONAL, "Q", "g", .fill = "positive"),
                 TENSOR(sum_squares, OUT | OPTIONAL, "Q", "1", .terms = "n", .accumulate = "f64"),
                 TENSOR(norm, OUT | OPTIONAL, "f32", "1", .terms = "n + g + 2", .accumulate = "f64"),
                 TENSOR(coefficient, OUT | OPTIONAL, "f32", "1", .terms = "n + g + 4", .accumulate = "f64") },
    .params = { PARAM(max_norm, F32, .values = "1 0 0.01 1e30", .min = 0, .unset = "no limit",
                      .doc = "largest norm let through"),
                PARAM(own_included, BOOL, .values = "0 1", .doc = "1: other_squares, if given, has the sum of x too") },
    .types = { "T=f32|bf16|f16 Q=f32|f64" },
    .require = { "y | sum_squares | norm | coefficient" },
    .alias = { "y=x" },
    .flops = "3*n",
    .sizes = { "n: 0 1 7 31 64 1000 16384 16385 100003", "g: 0 1 3 100" },
    .cases = { "f32: T=f32 Q=f32 n=33554432 max_norm=1 +y", "bf16: T=bf16 Q=f32 n=67108864 max_norm=1 +y",
               "sum only: T=f32 Q=f64 n=33554432 +sum_squares" },
    .reference = reference,
};
