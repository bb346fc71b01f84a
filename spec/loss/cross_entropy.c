/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy: the table and the reference. */
#include "cross_entropy.h"

#define ARGS trine_cross_entropy_args

/* Bound, with u = 2^-24, z = scale*x, m = max z, S = sum_k exp(z_k - m) >= 1, p_k = exp(z_k - m)/S, lse = m + log S.
 *
 * lse. A kernel has z_k and its distance from m (or from a running or estimated maximum at most 16 below, which adds 16u) in up to three roundings, one
 * more constant for exp2 included: each exponent is off by at most d_k = 3u(|z_k| + |m|), which moves lse by at most sum_k p_k (e^d_k - 1) (Jensen below,
 * log(1+a) <= a above). exp to 4 ulp is 8u of S; S, a sum of positive terms in any order, is off by (v-1)u of itself (Jeannerod and Rump 2013), and each
 * time an accumulator is rescaled to a new maximum costs it 10u more: a kernel's additions plus ten times its rescalings along one accumulator stay below
 * v + 8. So log S is off by (v + 32)u, second order included up to v = 2^18; flushed exponentials are v 2^-126. log to 4 ulp is 8u |log S|, and
 * m + log S, or its form in base 2, adds 2u(|m| + |log S|).
 *
 * loss = lse - (1-e) z_y - (e/v) sum_k z_k + w lse^2. The error of lse enters (1 + 2w(|lse| + 1)) times; the mean is a sum of v terms rounded once each;
 * and the eight remaining roundings are each of something no larger than the sum A of the four terms' absolute values.
 *
 * dlogits. As of cross_entropy_backward (row_gradient), from an lse that is off by all that lse may be, (v + 32)u and its slack, and by its own rounding. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const int64_t ignore = args->ignore_index_set ? args->ignore_index : -100;
    const double *logits = trine_ref_value(ref, "logits"), *labels = trine_ref_value(ref, "labels");
    const double scale = args->logit_scale, e = args->label_smoothing, w = args->z_loss;
    const double u = trine_unit_roundoff(TRINE_F32), largest = trine_largest(TRINE_F32);
    double *loss = trine_ref_value(ref, "loss"), *loss_magnitude = trine_ref_magnitude(ref, "loss"), *loss_slack = trine_ref_slack(ref, "loss");
    double *lse_out = trine_ref_value(ref, "lse"), *dlogits = trine_ref_value(ref, "dlogits");
    const double *dloss = trine_ref_value(ref, "dloss");

    for (int64_t i = 0; i < r; i++) {
        const double *x = logits + i * v;
        const double max = row_max(x, v, scale), lse = row_lse(x, v, scale);
        double sum = 0, total = 0, total_abs = 0, shift = 0;
        bool overflow = 2 * fabs(scale) > largest; /* 2: kernels may work to base 2 */
        for (int64_t k = 0; k < v; k++) {
            const double z = scale * x[k];
            overflow |= isfinite(x[k]) && 2 * fabs(z) > largest;
            sum += exp(z - max);
            total += z;
            if (isfinite(z)) total_abs += fabs(z);
            shift += exp_shift(z - max, 3 * u * (fabs(z) + fabs(max)));
        }
        const double log_sum = log(sum);
        const double lse_slack = shift / sum + u * (2 * fabs(max) + 10 * log_sum) + (double)v * trine_smallest_normal(TRINE_F32);
        if (lse_out) {
            lse_out[i] = lse;
            if (isfinite(lse)) {
                trine_ref_magnitude(ref, "lse")[i] = overflow ? INFINITY : 1;
                trine_ref_slack(ref, "lse")[i] = lse_slack;
            }
        }
        const bool ignored = (int64_t)labels[i] == ignore;
        if (dlogits) {
            const double lse_error = (double)(v + 32) * u + lse_slack + u * fabs(lse);
            const gradient_row g = { scale, e, w, dloss ? dloss[i] : 1, lse, lse_error, ignored ? -1 : (int64_t)labels[i], overflow };
            row_gradient(&g, x, v, dlogits + i * v, trine_ref_magnitude(ref, "dlogits") + i * v, trine_ref_slack(ref, "dlogits") + i * v);
        }
        if (ignored) {
            loss[i] = 0;
            continue;
        }
        const double zy = scale * x[(int64_t)labels[i]], mean = e > 0 ? e * (total / (double)v) : 0, square = w > 0 ? w * lse * lse : 0;
        loss[i] = lse - (1 - e) * zy - mean + square;
        /* An infinity in the sum beside finite terms that may overflow to the other one. */
        if (isinf(loss[i]) && e > 0 && total_abs > largest) loss_magnitude[i] = INFINITY;
        if (!isfinite(loss[i])) continue;
        const double gain = 1 + 2 * w * (fabs(lse) + 1), mean_abs = e > 0 ? e * (total_abs / (double)v) : 0;
        if ((e > 0 && total_abs > largest) || square > largest || (w > 0 && lse * lse > largest)) overflow = true;
        loss_magnitude[i] = overflow ? INFINITY : gain + mean_abs;
        loss_slack[i] = gain * (lse_slack + u * fabs(lse)) + u * (9 * (1 - e) * fabs(zy) + 8 * (fabs(lse) + mean_abs + square));
    }
}

const trine_spec trine_spec_cross_entropy = {
    SPEC(cross_entropy),
    .summary = "Cross-entropy of logits, with label smoothing and z-loss, and its gradient",
    .formula = "z = logit_scale logits; lse[i] = log sum_k exp(z[i,k]); loss[i] = lse[i] - (1-e) z[i,y] - (e/v) sum_k z[i,k] + z_loss lse[i]^2 with "
               "y = labels[i], e = label_smoothing; dlogits[i,k] = dloss[i] logit_scale (exp(z[i,k] - lse[i]) (1 + 2 z_loss lse[i]) - (1-e) [k = y] - e/v); "
               "loss and dlogits are 0 where y is the ignored label",
    .source = "Szegedy et al. 2016, section 7 (label smoothing); Chowdhery et al. 2022, section 5 (z-loss)",
    .tensors = { TENSOR(logits, IN, "T", "r v"), TENSOR(labels, IN, "L", "r", .fill = "ids v ignore_index -100"),
                 TENSOR(loss, OUT, "f32", "r", .terms = "v + 32"), TENSOR(lse, OUT | OPTIONAL, "f32", "r", .terms = "v + 32"),
                 TENSOR(dloss, IN | OPTIONAL | BROADCAST, "f32", "r"), TENSOR(dlogits, OUT | OPTIONAL, "T", "r v", .terms = "20") },
    .params = { PARAM(label_smoothing, F32, .values = "0 0.1 0.9", .min = 0, .max = 0x1.fffffep-1, .doc = "share of the target spread evenly over all classes"),
                PARAM(z_loss, F32, .values = "0 1e-4 0.01", .min = 0, .doc = "weight of lse^2"),
                PARAM(logit_scale, F32, .values = "1 0.7 -2", .fallback = 1, .doc = "multiplies the logits"),
                PARAM(ignore_index_set, BOOL, .values = "0 1", .doc = "1: ignore_index is read; 0: it is -100"),
                PARAM(ignore_index, I64, .values = "0 3 -7", .doc = "label of the rows to leave out") },
    .types = { "T=f32|bf16|f16 L=i64|i32" },
    .alias = { "dlogits=logits" },
    .flops = "5*r*v",
    .independent = "r",
    .sizes = { "r: 0 1 3 17", "v: 1 2 7 31 64 257 1000 4099 32000" },
    .cases = { "llama2 f32: T=f32 L=i64 r=512 v=32000 +lse", "llama2: T=bf16 L=i64 r=1024 v=32000 +lse", "llama3 f32: T=f32 L=i64 r=128 v=128256 +lse",
               "llama3: T=bf16 L=i64 r=256 v=128256 +lse", "llama3 smoothed: T=bf16 L=i64 r=256 v=128256 label_smoothing=0.1 z_loss=1e-4 +lse",
               "llama2 gradient: T=bf16 L=i64 r=8192 v=32000 +dlogits", "llama3 gradient: T=bf16 L=i64 r=8192 v=128256 +dlogits",
               "one row: T=bf16 L=i64 r=1 v=262144", "bytes: T=f32 L=i32 r=65536 v=256 +lse" },
    .reference = reference,
};
