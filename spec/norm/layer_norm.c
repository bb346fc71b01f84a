/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm: the table and the reference. */
#include <trine/norm.h>

#include "norm.h"

#define ARGS trine_layer_norm_args

/* Bound, with D = sum_depth(n), E_j what h_j is off by (norm_h), a = mean|h - mean|, s^2 = mean (h - mean)^2, v = s^2 +
 * eps, w = weight + weight_offset.
 *
 * A kernel sums h for a first mean m0, off by at most e0 = (D + 2)u mean|h| + mean E + g, g = norm_lost(v). It then
 * sums d = h - m0 and d^2; the mean is m0 + mean d, with one rounding, and is off by
 *     u|mean| + (D + 4)u (a + e0) + mean E + g:
 * the large (D + 2)u mean|h| is gone (Chan, Golub and LeVeque 1983). Welford's and pairwise merging of means do as
 * well. mean d^2, with or without (mean d)^2 taken off, is off by
 *     (D + 6)u (s + 2 e0)^2 + e0^2 + mean(2|h - mean| E + E^2) + norm_squares_lost(v)  =:  ((D + 6)u k + q) v,
 *       k = (s + 2 e0)^2/v.
 * While that is below v/2 it bounds the relative change of rstd = 1/sqrt(v) too; sqrt and division add 8u. y = (h -
 * mean) rstd w + b then rounds five more times:
 *     |y - y64| <= (D + 16)u [ |w| (|xhat|(1 + k) + rstd (a + e0)) + |b| ] + |w| ( |xhat| q + rstd (u|mean| + mean E +
 *       E_j + g) ) (1 + q).
 * TRINE_ROUND_BEFORE_WEIGHT: xhat, off by as much without w and b, is rounded to T, in the reference as well: the two
 * may differ by the steps of T that lie within that error, nearly always none. Where E_j is the largest of f32 and
 * more, h itself may overflow, and its row then is NaN; and where a spread is lost in the rounding of the mean, it may
 * be any. */
typedef struct row_stats {
    double mean, rstd;
    double k, q;
    double near;                    /* a + e0 */
    double moved;                   /* u|mean| + mean E + g */
    double lost;                    /* g */
    bool overflow, unknown, finite; /* unknown: rstd */
} row_stats;

static row_stats statistics(const norm_input *in, int64_t at, int64_t n, double eps) {
    const double count = (double)n, depth = sum_depth(count);
    double sum = 0, sum_abs = 0, sum_e = 0, a = 0, squares = 0, moved = 0, e;
    bool overflow = false;
    for (int64_t j = 0; j < n; j++) {
        const double h = norm_h(in, at + j, &e);
        overflow |= e > trine_largest(TRINE_F32);
        sum += h;
        sum_abs += trine_finite_abs(h);
        sum_e += U * e;
    }
    const double mean = sum / count;
    for (int64_t j = 0; j < n; j++) {
        const double d = norm_h(in, at + j, &e) - mean;
        a += fabs(d);
        squares += d * d;
        moved += U * e * (2 * fabs(d) + U * e);
    }
    const double v = squares / count + eps, lost = norm_lost(v);
    row_stats r = { .mean = mean, .rstd = 1 / sqrt(v), .lost = lost, .overflow = overflow, .finite = isfinite(v) };
    if (!r.finite) return r;
    const double e0 = (depth + 2) * U * sum_abs / count + sum_e / count + (sum_abs > 0 ? lost : 0);
    const double s = sqrt(squares / count) + 2 * e0, off = e0 * e0 + moved / count + norm_squares_lost(v);
    r.k = s > 0 ? s * s / v : 0, r.q = off > 0 ? off / v : 0;
    r.near = a / count + e0, r.moved = U * fabs(mean) + sum_e / count + lost;
    r.unknown = !((depth + 6) * U * r.k + r.q < 0.4);
    return r;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const trine_dtype type = trine_ref_type(ref, "T");
    norm_input in = {
        trine_ref_value(ref, "x"), trine_ref_value(ref, "residual"), args->dropout, args->seed, args->offset, ref->first
    };
    trine_ref_philox(ref, &in.seed, &in.offset);
    const double *weight = trine_ref_value(ref, "weight"), *bias = trine_ref_value(ref, "bias"),
                 coefficient = (sum_depth((double)n) + 16) * U;
    double *y = trine_ref_value(ref, "y"), *y_magnitude = trine_ref_magnitude(ref, "y"),
           *y_slack = trine_ref_slack(ref, "y");
    double *h_out = trine_ref_value(ref, "residual_out"), *mean_out = trine_ref_value(ref, "mean"),
           *rstd_out = trine_ref_value(ref, "rstd");
    const bool round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT;
    for (int64_t i = 0; i < r; i++) {
        const row_stats row = statistics(&in, i * n, n, args->eps);
        const bool any = row.overflow || row.unknown;
        if (mean_out) {
            mean_out[i] = row.mean;
            trine_ref_magnitude(ref, "mean")[i] = row.overflow ? INFINITY : row.near;
            trine_ref_slack(ref, "mean")[i] = row.moved;
        }
        if (rstd_out) {
            rstd_out[i] = row.rstd;
            trine_ref_magnitude(ref, "rstd")[i] = any                                ? INFINITY
                                                  : isfinite(row.rstd) && row.finite ? row.rstd * (1 + row.k)
                                                                                     : 0;
            trine_ref_slack(ref, "rstd")[i] = any || !row.finite || !isfinite(row.rstd) ? 0 : row.rstd * row.q;
        }
        for (int64_t t = i * n; t < (i + 1) * n; t++) {
            double e;
            const double h = norm_h(&in, t, &e), w = norm_weight(weight, t - i * n, args->weight_offset),
                         b = bias ? bias[t - i * n] : 0;
            const double hat = (h - row.mean) * row.rstd;
            if (h_out) {
                h_out[t] = h;
                trine_ref_magnitude(ref, "residual_out")[t] = e > trine_largest(TRINE_F32) ? INFINITY : e;
                trine_ref_slack(ref, "residual_out")[t] = FLUSH;
            }
            y[t] = (round ? trine_round(hat, type, false) : hat) * w + b;
            if (any) y_magnitude[t] = INFINITY;
            if (row.unknown && isnan(y[t])) y[t] = 0;
            if (!isfinite(y[t]) || !isfinite(row.rstd) || any) continue;
            const double inner = fabs(hat) * (1 + row.k) + row.rstd * row.near;
            const double off = (fabs(hat) * row.q + row.rstd * (row.moved + U * e + row.lost)) * (1 + row.q);
            const double spread = round ? round_spread(hat, inner * coefficient + off, type) : off;
            y_magnitude[t] = isfinite(spread) ? inner * fabs(w) + fabs(b) : INFINITY;
            y_slack[t] = isfinite(spread) ? spread * fabs(w) + FLUSH * (1 + fabs(w)) : 0;
        }
    }
}

const trine_spec trine_spec_layer_norm = {
    SPEC(layer_norm),
    .summary = "Layer normalization, with optional dropout and residual addition before it",
    .formula =
        "h = dropout(x) + residual; mean[i] = mean_j h[i,j]; rstd[i] = 1/sqrt(mean_j (h[i,j] - mean[i])^2 + eps); "
        "y[i,j] = (h[i,j] - mean[i]) rstd[i] (weight[j] + weight_offset) + bias[j]; residual_out = h",
    .source = "Ba, Kiros and Hinton 2016, eq. 4; dropout by Philox4x32-10, Salmon et al. 2011",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(weight, IN | OPTIONAL, "W", "n"),
                 TENSOR(bias, IN | OPTIONAL, "W", "n"), TENSOR(residual, IN | OPTIONAL, "R", "r n"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2"), TENSOR(y, OUT, "T", "r n", .terms = SUM_DEPTH(n) " + 16"),
                 TENSOR(residual_out, OUT | OPTIONAL, "R", "r n", .terms = "1"),
                 TENSOR(mean, OUT | OPTIONAL, "f32", "r", .terms = SUM_DEPTH(n) " + 4"),
                 TENSOR(rstd, OUT | OPTIONAL, "f32", "r", .terms = SUM_DEPTH(n) " + 16") },
    .params = { PARAM(eps, F32, .values = "1e-5 -0", .fallback = 1e-5, .min = 0, .max = 0x1.fffffep127,
                      .doc = "added to the variance"),
                PARAM(weight_offset, F32, .values = "0 1", .doc = "added to weight, where that is given"),
                PARAM(rounding, ENUM, .values = "once before_weight",
                      .doc = "where y is rounded to its type: at the end, or before the weight as well"),
                PARAM(dropout, F32, .values = "0 0.1 0.5", .min = 0, .max = 0x1.fffffep-1,
                      .doc = "probability of dropping an element of x"),
                PARAM(seed, U64, .values = "1 1234567890123456789", .doc = "dropout's key"),
                PARAM(offset, U64, .values = "0 12884901893", .doc = "dropout's stream") },
    .types = { "T=f32 R=f32 W=f32", "T=bf16 R=bf16|f32 W=bf16|f32", "T=f16 R=f16|f32 W=f16|f32" },
    .require = { "philox instead of seed" },
    .alias = { "y=x", "residual_out=residual" },
    .flops = "8*r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64", NORM_LENGTHS },
    .cases = { "gpt2-xl: T=bf16 R=bf16 W=bf16 r=8192 n=1600 +weight +bias",
               "square f32: T=f32 r=4096 n=4096 +weight +bias",
               "square: T=bf16 R=bf16 W=bf16 r=4096 n=4096 +weight +bias",
               "residual: T=bf16 R=bf16 W=bf16 r=4096 n=4096 +weight +bias +residual +residual_out",
               "training: T=bf16 R=f32 W=f32 r=4096 n=4096 dropout=0.1 seed=1 +weight +bias +residual +residual_out "
               "+mean +rstd" },
    .reference = reference,
};
