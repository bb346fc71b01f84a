/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm_backward: the table and the reference. */
#include <trine/norm.h>

#include "norm.h"

#define ARGS trine_l1_norm_backward_args

static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

/* Bound, as of layer_norm's gradient (norm_backward.h), with g = w dy, xhat = (x - mean) rmad, P1 = mean|g|, P2 =
 * mean|g xhat|: mean(g xhat) is off by (sum_depth(n) + 7)u P2, mean(g) by less of P1, and mean(s), a sum of integers,
 * by (sum_depth(n) + 1)u at most. The sign of x - mean is that of the saved mean, and is certain. dx = rmad (g -
 * mean(g) - (s - mean(s)) mean(g xhat)) has at most nine roundings more of something no larger than M = rmad (|g| + P1
 * + 2 P2): together (sum_depth(n) + 18)u M. */
static void put_row(trine_ref *ref, int64_t i, int64_t n) {
    const double *dy = trine_ref_value(ref, "dy") + i * n, *x = trine_ref_value(ref, "x") + i * n,
                 *weight = trine_ref_value(ref, "weight"), mean = trine_ref_value(ref, "mean")[i],
                 rmad = trine_ref_value(ref, "rmad")[i], largest = trine_largest(TRINE_F32), count = (double)n;
    double *dx = trine_ref_value(ref, "dx") + i * n, sum = 0, product = 0, signs = 0, sum_abs = 0, product_abs = 0;
    double most = 0, lost = 0;
    bool astray = false;
    for (int64_t j = 0; j < n; j++) {
        const double w = norm_weight(weight, j, 0), g = w * dy[j], d = x[j] - mean, hat = d * rmad;
        sum += g;
        product += g * hat;
        signs += sign(d);
        sum_abs += trine_finite_abs(g);
        product_abs += trine_finite_abs(g * hat);
        lost += FLUSH * (1 + trine_finite_abs(g) + trine_finite_abs(hat) * 2);
        most = fmax(most, fmax(trine_finite_abs(d), fmax(trine_finite_abs(g), trine_finite_abs(hat))));
        astray |= (isinf(g) && fabs(hat) <= FLUSH) || (isinf(hat) && fabs(g) <= FLUSH);
    }
    const double c1 = sum / count, c2 = product / count, c3 = signs / count;
    astray |= fmax(most, fmax(sum_abs, product_abs)) > largest || isinf(c2) || isinf(c1);
    for (int64_t j = 0; j < n; j++) {
        const double g = norm_weight(weight, j, 0) * dy[j],
                     inner = trine_finite_abs(g) + (sum_abs + 2 * product_abs) / count,
                     size = trine_finite_abs(rmad) * inner;
        dx[j] = rmad * (g - c1 - (sign(x[j] - mean) - c3) * c2);
        const bool large = astray || inner > largest || size > largest;
        trine_ref_magnitude(ref, "dx")[i * n + j] = large ? INFINITY : size;
        trine_ref_slack(ref, "dx")[i * n + j] =
            large ? 0 : trine_finite_abs(rmad) * (4 * FLUSH + 2 * lost / count) + FLUSH;
    }
}

/* dweight sums r products of three factors, (sum_depth(r) + 3)u; dbias r terms. */
static void put_column(trine_ref *ref, const char *name, bool bias, int64_t j) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *dy = trine_ref_value(ref, "dy"), *x = trine_ref_value(ref, "x"), *mean = trine_ref_value(ref, "mean"),
                 *rmad = trine_ref_value(ref, "rmad");
    double sum = 0, sum_abs = 0, most = 0, lost = FLUSH;
    bool astray = false;
    for (int64_t i = 0; i < r; i++) {
        const double d = bias ? 1 : x[i * n + j] - mean[i], hat = bias ? 1 : d * rmad[i], g = dy[i * n + j];
        sum += g * hat;
        sum_abs += trine_finite_abs(g * hat);
        most = fmax(most, fmax(trine_finite_abs(d), trine_finite_abs(hat)));
        lost += FLUSH * (1 + trine_finite_abs(g));
        astray |= !bias && isinf(g) && hat != 0 && fabs(hat) <= FLUSH;
    }
    trine_ref_value(ref, name)[j] = sum;
    trine_ref_magnitude(ref, name)[j] = astray || fmax(most, sum_abs) > trine_largest(TRINE_F32) ? INFINITY : sum_abs;
    trine_ref_slack(ref, name)[j] = lost;
}

static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    for (int64_t i = 0; i < r; i++) put_row(ref, i, n);
    for (int64_t j = 0; j < n; j++) {
        if (trine_ref_value(ref, "dweight")) put_column(ref, "dweight", false, j);
        if (trine_ref_value(ref, "dbias")) put_column(ref, "dbias", true, j);
    }
}

/* mean and rmad of x without eps, where it has a spread. */
static void prepare(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    for (int64_t i = 0; i < r; i++) {
        const double *x = trine_ref_value(ref, "x") + i * n;
        double sum = 0, spread = 0;
        for (int64_t j = 0; j < n; j++) sum += x[j];
        const double mean = sum / (double)n;
        for (int64_t j = 0; j < n; j++) spread += fabs(x[j] - mean) / (double)n;
        trine_ref_value(ref, "mean")[i] = mean;
        trine_ref_value(ref, "rmad")[i] = spread > 0 ? fmin(1 / spread, trine_largest(TRINE_F32)) : 1;
    }
}

const trine_spec trine_spec_l1_norm_backward = {
    SPEC(l1_norm_backward),
    .summary = "Gradient of l1_norm",
    .formula = "xhat = (x - mean) rmad; g = weight dy; s = sign(x - mean); dx = rmad (g - mean_j(g) - (s - mean_j(s)) "
               "mean_j(g xhat)); dweight[j] = sum_i dy[i,j] xhat[i,j]; dbias[j] = sum_i dy[i,j]",
    .source = "the derivative of l1_norm",
    .tensors = { TENSOR(dy, IN, "T", "r n"), TENSOR(x, IN, "T", "r n"), TENSOR(weight, IN | OPTIONAL, "W", "n"),
                 TENSOR(mean, IN, "f32", "r", .fill = "saved"), TENSOR(rmad, IN, "f32", "r", .fill = "positive saved"),
                 TENSOR(dx, OUT, "T", "r n", .terms = SUM_DEPTH(n) " + 18"),
                 TENSOR(dweight, OUT | OPTIONAL, "W", "n", .terms = SUM_DEPTH(r) " + 3"),
                 TENSOR(dbias, OUT | OPTIONAL, "W", "n", .terms = SUM_DEPTH(r)) },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .alias = { "dx=dy" },
    .flops = "13*r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64 1000", NORM_LENGTHS },
    .cases = { "gpt2-xl: T=bf16 W=bf16 r=8192 n=1600 +weight +dweight +dbias",
               "square f32: T=f32 r=4096 n=4096 +weight +dweight +dbias",
               "training: T=bf16 W=f32 r=4096 n=4096 +weight +dweight +dbias" },
    .reference = reference,
    .prepare = prepare,
};
