/* SPDX-License-Identifier: Apache-2.0 */
/* softmax: the table and the reference. */
#include <trine/norm.h>

#include "norm.h"

#define ARGS trine_softmax_args

/* Bound, with d_j = scale*(x_j - the visible x that makes it largest) <= 0 and l = sum_k exp(d_k) >= 1, so that y_j =
 * exp(d_j)/l.
 *
 * A kernel has d_j with a relative error of at most 5u: from one difference and one product, or from a fused
 * multiply-add with a constant that holds log2(e), whose rounding of the maximum cancels. That changes exp(d_j) by a
 * factor within exp(+-5u|d_j|), and l by the mean of such factors under the weights y. exp to 4 ulp gives 8u on each;
 * the sum of l at most sum_depth(n) u; a rescaling of online statistics, once for 1024 elements and up to five times in
 * merging, 10u each (exp, product, and what it moves); the division 3u. Exponentials below 2^-126 may be flushed to
 * zero, n of them in l. Of a subnormal x, or scale, half and log2(e) times round to 2^-149. */
static void row(const double *x, double *y, double *magnitude, double *slack, int64_t n, double scale) {
    double top = x[0];
    for (int64_t j = 1; j < n; j++)
        if (scale * x[j] > scale * top || isnan(x[j])) top = x[j];
    const double relative = 5 * U + (scale == 0 ? 0 : 0x1p-150 / fabs(scale)), absolute = 0x1p-148 * fabs(scale);
    double sum = 0, moved = 0;
    for (int64_t j = 0; j < n; j++) {
        const double d = scale * (x[j] - top);
        sum += y[j] = exp(d);
        if (y[j] > 0) moved += y[j] * (relative * fabs(d) + absolute);
    }
    for (int64_t j = 0; j < n; j++) {
        const double e = y[j];
        y[j] = e / sum;
        if (!isfinite(sum)) continue;
        magnitude[j] = y[j];
        slack[j] =
            y[j] * moved / sum + (e > 0 ? y[j] * (relative * -log(e) + absolute) : 0) + ((double)n * y[j] + 2) * FLUSH;
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t g = trine_ref_dim(ref, "g"), s = trine_ref_dim(ref, "s"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    for (int64_t i = 0; i < g * s; i++) {
        int64_t visible = args->causal ? i % s + n - s + 1 : n;
        if (visible < 0) visible = 0;
        const int64_t at = i * n;
        if (visible > 0) row(x + at, y + at, magnitude + at, slack + at, visible, args->scale);
        for (int64_t j = visible; j < n; j++) y[at + j] = 0;
    }
}

const trine_spec trine_spec_softmax = {
    SPEC(softmax),
    .summary = "Softmax over the last dimension, with scale and causal mask",
    .formula = "y[g,i,j] = exp(scale x[g,i,j]) / sum_k exp(scale x[g,i,k]) over the visible k; 0 where j is masked. "
               "causal: j is visible iff "
               "j <= i + n - s",
    .source = "Milakov and Gimelshein 2018 (online statistics)",
    .tensors = { TENSOR(x, IN, "T", "[g] s n"), TENSOR(y, OUT, "T", "[g] s n", .terms = SUM_DEPTH(n) " + n/64 + 72") },
    .params = { PARAM(scale, F32, .values = "1 0.125 -2", .fallback = 1, .min = -0x1p126, .max = 0x1p126,
                      .doc = "multiplies x"),
                PARAM(causal, BOOL, .values = "0 1",
                      .doc = "1: element j of row i is visible iff j <= i + n - s; a row with none visible is 0") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "y=x" },
    .flops = "5*g*s*n",
    .masked = "s n",
    .independent = "g",
    .sizes = { "g: 1 0 3", "s: 1 0 2 7 33", "n: 1 0 3 31 64 127 1000 4097 20008" },
    .cases = { "square f32: T=f32 s=4096 n=4096", "square: T=bf16 s=4096 n=4096", "square f16: T=f16 s=4096 n=4096",
               "heads causal: T=bf16 g=32 s=1024 n=1024 scale=0.125 causal=1",
               "heads f32: T=f32 g=32 s=512 n=512 scale=0.125", "vocabulary f32: T=f32 s=64 n=128256",
               "vocabulary: T=bf16 s=64 n=128256", "experts: T=f32 s=65536 n=64" },
    .reference = reference,
};
