/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward: the table and the reference. */
#include "cross_entropy.h"

#define ARGS trine_cross_entropy_backward_args

/* Bound, with u = 2^-24, z = scale*x, p = exp(z - lse), F = 1 + 2w|lse|. The exponent is off by d = 3u(|z| + |lse|): the product, the difference, and
 * a constant for exp2. So p is off by p(e^d - 1), which is slack, and by exp to 4 ulp, 8u p. Then 1 + 2 w lse (3u F), the product with p (1u), the two
 * differences (2u of the parts' absolute values; 1-e and e/v have been rounded once), g*scale and the product with it (3u): 17u on p F, 6u on the others,
 * for which 20u on p F and on a third of the others is safe. An exponential below 2^-126 may be flushed, one above
 * 2^127 may overflow.
 * Invariant: sum_k dlogits[i,k] = dloss[i] logit_scale 2 z_loss lse[i], whatever the smoothing. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const int64_t ignore = args->ignore_index_set ? args->ignore_index : -100;
    const double *logits = trine_ref_value(ref, "logits"), *labels = trine_ref_value(ref, "labels");
    const double *lse = trine_ref_value(ref, "lse"), *dloss = trine_ref_value(ref, "dloss");
    const double scale = args->logit_scale, e = args->label_smoothing, w = args->z_loss;
    const double u = trine_unit_roundoff(TRINE_F32), largest = trine_largest(TRINE_F32), tiny = trine_smallest_normal(TRINE_F32);
    double *dlogits = trine_ref_value(ref, "dlogits"), *magnitude = trine_ref_magnitude(ref, "dlogits"), *slack = trine_ref_slack(ref, "dlogits");

    for (int64_t i = 0; i < r; i++) {
        const bool ignored = (int64_t)labels[i] == ignore;
        const double gain = dloss[i] * scale, factor = w > 0 ? 1 + 2 * w * lse[i] : 1, factor_abs = w > 0 ? 1 + 2 * w * fabs(lse[i]) : 1;
        for (int64_t k = 0; k < v; k++) {
            const int64_t at = i * v + k;
            if (ignored) {
                dlogits[at] = 0;
                continue;
            }
            const double z = scale * logits[at], p = exp(z - lse[i]), target = (k == (int64_t)labels[i] ? 1 - e : 0) + e / (double)v;
            dlogits[at] = gain * (p * factor - target);
            const double shift = exp_shift(z - lse[i], 3 * u * (fabs(z) + fabs(lse[i])));
            const double size = fabs(gain) * ((p + shift) * factor_abs + target);
            const bool finite_inputs = isfinite(logits[at]) && isfinite(lse[i]) && isfinite(dloss[i]);
            const bool finite_overflow = 2 * fabs(scale) > largest || 2 * trine_finite_abs(z) > largest || 2 * trine_finite_abs(lse[i]) > largest ||
                                         trine_finite_abs(gain) > largest || trine_finite_abs(factor_abs) > largest;
            const bool overflow = finite_overflow || p + shift > 0x1p127 || (p + shift) * factor_abs > largest || size > largest;
            const double unsure = 20 * u * (p * factor_abs + target / 3) + shift * factor_abs;
            if (isinf(dloss[i]) && fabs(p * factor - target) <= unsure) { /* Inf of either sign, or Inf * 0 */
                dlogits[at] = magnitude[at] = INFINITY;
                continue;
            }
            if (!isfinite(dlogits[at]) && !finite_inputs && !finite_overflow) continue;
            magnitude[at] = overflow ? INFINITY : fabs(gain) * (p * factor_abs + target / 3);
            slack[at] = fabs(gain) * factor_abs * (shift + tiny) + tiny * (p * factor_abs + target);
        }
    }
}

static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    for (int64_t i = 0; i < r; i++) trine_ref_value(ref, "lse")[i] = row_lse(trine_ref_value(ref, "logits") + i * v, v, args->logit_scale);
}

const trine_spec trine_spec_cross_entropy_backward = {
    SPEC(cross_entropy_backward),
    .summary = "Gradient of cross_entropy",
    .formula =
        "dlogits[i,k] = dloss[i] logit_scale (p[i,k] (1 + 2 z_loss lse[i]) - (1-e) [k = labels[i]] - e/v), p[i,k] = exp(logit_scale logits[i,k] - lse[i]), "
        "e = label_smoothing; 0 where labels[i] is the ignored label",
    .source = "Szegedy et al. 2016, section 7 (label smoothing); Chowdhery et al. 2022, section 5 (z-loss)",
    .tensors = { TENSOR(logits, IN, "T", "r v"), TENSOR(labels, IN, "L", "r", .fill = "ids v ignore_index -100"),
                 TENSOR(lse, IN, "f32", "r", .fill = "derived"), TENSOR(dloss, IN, "f32", "r"), TENSOR(dlogits, OUT, "T", "r v", .terms = "20") },
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
    .cases = { "llama2 f32: T=f32 L=i64 r=512 v=32000", "llama2: T=bf16 L=i64 r=1024 v=32000", "llama3: T=bf16 L=i64 r=256 v=128256",
               "llama3 smoothed: T=bf16 L=i64 r=256 v=128256 label_smoothing=0.1 z_loss=1e-4", "bytes: T=f32 L=i32 r=65536 v=256" },
    .reference = reference,
    .prepare = prepare,
};
