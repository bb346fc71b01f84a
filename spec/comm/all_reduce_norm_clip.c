/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_norm_clip: the table and the reference. */
#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_all_reduce_norm_clip_args

/* Bounds, with w = 2^-53 and c ranks: those of global_norm_clip (spec/optimizer/global_norm_clip.c), whose sum here has
 * c (n + g) terms: off by that many w of itself. The square root halves the error and adds w, the quotient w again. The
 * coefficient is rounded to f32 before it multiplies x, and the product before it becomes y. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *other = trine_ref_value(ref, "other_squares");
    const int64_t g = other ? trine_ref_dim(ref, "g") : 0;
    double sum = 0;
    for (int64_t i = 0; i < ranks * n; i++) sum += x[i] * x[i];
    for (int64_t i = 0; i < ranks * g; i++) sum += other[i];
    const double norm = sqrt(sum), quotient = args->max_norm / norm,
                 coefficient = args->max_norm == 0 || quotient >= 1 ? 1 : quotient;
    double *norm_out = trine_ref_value(ref, "norm"), *coefficient_out = trine_ref_value(ref, "coefficient"),
           *y = trine_ref_value(ref, "y");
    for (int64_t r = 0; r < ranks; r++) {
        if (norm_out) norm_out[r] = trine_ref_magnitude(ref, "norm")[r] = norm;
        if (coefficient_out) coefficient_out[r] = trine_ref_magnitude(ref, "coefficient")[r] = coefficient;
    }
    for (int64_t i = 0; y && i < ranks * n; i++) {
        y[i] = coefficient == 1 ? x[i] : coefficient * x[i];
        if (isinf(y[i]) && coefficient < 0x1p-149) trine_ref_magnitude(ref, "y")[i] = INFINITY;
        if (!isfinite(y[i]) || coefficient == 1) continue;
        trine_ref_magnitude(ref, "y")[i] = fabs(y[i]);
        trine_ref_slack(ref, "y")[i] = fabs(y[i]) * (double)(ranks * (n + g) + 4) * 0x1p-53 + 0x1p-150 * fabs(x[i]);
    }
}

const trine_spec trine_spec_all_reduce_norm_clip = {
    SPEC(all_reduce_norm_clip),
    .summary = "Clipping by the norm of a tensor whose parts the ranks have",
    .formula = "norm = sqrt(sum_q (sum_i x[q,i]^2 + sum_j other_squares[q,j])) over all ranks q; coefficient = "
               "min(1, max_norm/norm), 1 if max_norm is left out; y = coefficient x",
    .source = "Pascanu et al. 2013, algorithm 1; Rajbhandari et al. 2020 (ZeRO), section 5",
    .tensors = { TENSOR(x, IN, "T", "ranks n"), TENSOR(y, OUT | OPTIONAL, "T", "ranks n", .terms = "2"),
                 TENSOR(other_squares, IN | OPTIONAL, "f64", "ranks g", .fill = "positive"),
                 TENSOR(norm, OUT | OPTIONAL, "f32", "ranks 1", .terms = "ranks*(n + g) + 2", .accumulate = "f64"),
                 TENSOR(coefficient, OUT | OPTIONAL, "f32", "ranks 1", .terms = "ranks*(n + g) + 4",
                        .accumulate = "f64") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(max_norm, F32, .values = "1 0 0.01 1e30", .min = 0, .unset = "no limit",
                      .doc = "largest norm let through") },
    .types = { "T=f32|bf16|f16" },
    .require = { "ranks > 0", "ranks <= 64", "y | norm | coefficient" },
    .alias = { "y=x" },
    .flops = "3*ranks*n",
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 64 1000 16385 70000", "g: 0 1 3 100 700" },
    .cases = { "f32, 2 ranks: T=f32 ranks=2 n=8388608 max_norm=1 +y", "f32: T=f32 ranks=4 n=4194304 max_norm=1 +y",
               "bf16: T=bf16 ranks=4 n=4194304 max_norm=1 +y",
               "of sums: T=f32 ranks=4 n=0 g=300 max_norm=1 +other_squares +coefficient" },
    .reference = reference,
};
