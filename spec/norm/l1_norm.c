/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm: the table and the reference. */
#include <trine/norm.h>

#include "norm.h"

#define ARGS trine_l1_norm_args

/* Bound, with u = 2^-24, D = sum_depth(n), a = mean|x - mean|, v = a + eps, l = 2^-148.
 *
 * As in layer_norm, a kernel sums x for a first mean, off by at most e0 = (D + 2)u mean|x| + l, and x less that for the
 * rest of it; the mean is then off by e = u|mean| + (D + 4)u (a + e0) + l. Each |x - mean| is off by that and by its
 * rounding, their mean by (D + 3)u (a + e) + e, which is q v. While q < 0.4, 1/v changes by 1.7 q of itself; the sum
 * with eps and the quotient are 3u. y = (x - mean) rmad w + b then rounds four more times:
 *     |y - y64| <= (D + 16)u [ |w| rmad (|x - mean| + e) + |b| ] + |w| rmad (1.7 q |x - mean| + (1 + 1.7 q) e).
 * Where q is larger a spread is lost in the rounding of the mean: anything may come out. */
typedef struct row_stats {
    double mean, rmad, e, q;
    bool any;
} row_stats;

static row_stats statistics(const double *x, int64_t n, double eps) {
    const double count = (double)n, depth = sum_depth(count);
    double sum = 0, sum_abs = 0, a = 0;
    bool finite = true;
    for (int64_t j = 0; j < n; j++) {
        sum += x[j];
        sum_abs += trine_finite_abs(x[j]);
        finite &= isfinite(x[j]) != 0;
    }
    const double mean = sum / count;
    for (int64_t j = 0; j < n; j++) a += fabs(x[j] - mean) / count;
    const double lost = sum_abs > 0 ? 0x1p-148 : 0, v = n > 0 ? a + eps : NAN;
    row_stats r = { .mean = mean, .rmad = 1 / v };
    const double e0 = (depth + 2) * U * sum_abs / count + lost;
    r.e = finite ? U * fabs(mean) + (depth + 4) * U * (a + e0) + lost : 0;
    const double off = (depth + 3) * U * (a + r.e) + r.e;
    r.q = finite && off > 0 ? off / v : 0;
    r.any = n > 0 && finite &&
            (!(r.q < 0.4) || 4 * sum_abs > trine_largest(TRINE_F32) || v == 0 || r.rmad > trine_largest(TRINE_F32) / 2);
    return r;
}

static void put_row(trine_ref *ref, const row_stats *row, int64_t i, int64_t n) {
    const double *x = trine_ref_value(ref, "x") + i * n, *weight = trine_ref_value(ref, "weight"),
                 *bias = trine_ref_value(ref, "bias");
    double *y = trine_ref_value(ref, "y") + i * n, *magnitude = trine_ref_magnitude(ref, "y") + i * n,
           *slack = trine_ref_slack(ref, "y") + i * n;
    for (int64_t j = 0; j < n; j++) {
        const double d = x[j] - row->mean, w = norm_weight(weight, j, 0), b = bias ? bias[j] : 0,
                     inner = fabs(w) * row->rmad;
        y[j] = d * row->rmad * w + b;
        if (row->any) {
            magnitude[j] = INFINITY;
            if (isnan(y[j])) y[j] = 0;
        }
        if (!isfinite(y[j]) || row->any) continue;
        const double size = inner * (fabs(d) + row->e) + fabs(b);
        magnitude[j] = size < trine_largest(TRINE_F32) ? size : INFINITY;
        slack[j] = inner * (1.7 * row->q * fabs(d) + (1 + 1.7 * row->q) * row->e) + FLUSH * (2 + fabs(w));
        if (!isfinite(magnitude[j])) slack[j] = 0;
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    double *mean = trine_ref_value(ref, "mean"), *rmad = trine_ref_value(ref, "rmad");
    for (int64_t i = 0; i < r; i++) {
        const row_stats row = statistics(trine_ref_value(ref, "x") + i * n, n, args->eps);
        put_row(ref, &row, i, n);
        if (mean) {
            mean[i] = row.mean;
            trine_ref_magnitude(ref, "mean")[i] = row.any || isinf(row.mean) ? INFINITY : 0;
            trine_ref_slack(ref, "mean")[i] = row.any || isinf(row.mean) ? 0 : row.e;
        }
        if (rmad) {
            rmad[i] = row.rmad;
            trine_ref_magnitude(ref, "rmad")[i] = row.any ? INFINITY : isfinite(row.rmad) ? row.rmad : 0;
            trine_ref_slack(ref, "rmad")[i] = row.any || !isfinite(row.rmad) ? 0 : row.rmad * 1.7 * row.q + FLUSH;
        }
    }
}

const trine_spec trine_spec_l1_norm = {
    SPEC(l1_norm),
    .summary = "Normalization by the mean absolute deviation",
    .formula = "mean[i] = mean_j x[i,j]; rmad[i] = 1/(mean_j |x[i,j] - mean[i]| + eps); y[i,j] = (x[i,j] - mean[i]) "
               "rmad[i] weight[j] + bias[j]",
    .source = "arXiv 2411.10948 (ShiftQuant); Wu et al. 2018",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(weight, IN | OPTIONAL, "W", "n"),
                 TENSOR(bias, IN | OPTIONAL, "W", "n"), TENSOR(y, OUT, "T", "r n", .terms = SUM_DEPTH(n) " + 16"),
                 TENSOR(mean, OUT | OPTIONAL, "f32", "r", .terms = "1"),
                 TENSOR(rmad, OUT | OPTIONAL, "f32", "r", .terms = "4") },
    .params = { PARAM(eps, F32, .values = "1e-5 -0", .fallback = 1e-5, .min = 0, .max = 0x1.fffffep127,
                      .doc = "added to the mean deviation") },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .alias = { "y=x" },
    .flops = "7*r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64", NORM_LENGTHS },
    .cases = { "gpt2-xl: T=bf16 W=bf16 r=8192 n=1600 +weight +bias", "square f32: T=f32 r=4096 n=4096 +weight +bias",
               "square: T=bf16 W=bf16 r=4096 n=4096 +weight +bias",
               "training: T=bf16 W=f32 r=4096 n=4096 +weight +bias +mean +rmad" },
    .reference = reference,
};
