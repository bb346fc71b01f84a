/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy: the table and the reference. */
#include <trine/loss.h>

#include "cross_entropy.h"

#define ARGS trine_cross_entropy_args

/* Bound, with u = 2^-24, z = scale x, d_k = z_k - max z <= 0, log_sum = log sum_k exp(d_k) >= 0, lse = max z + log_sum.
 *
 * lse. log_sum is off by (v + 32)u and its slack (logit_row_of); the sum with max z, which float64 holds, rounds once.
 *
 * loss. row_loss().
 *
 * dlogits. As of cross_entropy_backward (row_gradient). */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const int64_t ignore = args->ignore_index_set ? args->ignore_index : -100;
    const double *logits = trine_ref_value(ref, "logits"), *labels = trine_ref_value(ref, "labels"),
                 *dloss = trine_ref_value(ref, "dloss");
    const double e = args->label_smoothing, w = args->z_loss;
    const class_weights weights = class_weights_of(trine_ref_value(ref, "class_weight"), v);
    double *loss = trine_ref_value(ref, "loss"), *loss_magnitude = trine_ref_magnitude(ref, "loss"),
           *loss_slack = trine_ref_slack(ref, "loss");
    double *lse_out = trine_ref_value(ref, "lse"), *dlogits = trine_ref_value(ref, "dlogits");

    for (int64_t i = 0; i < r; i++) {
        const logit_row row = logit_row_of(logits + i * v, v, args->logit_scale);
        const double lse = row_lse(&row);
        const bool ignored = (int64_t)labels[i] == ignore;
        if (lse_out) {
            lse_out[i] = lse;
            trine_ref_magnitude(ref, "lse")[i] = isfinite(lse);
            trine_ref_slack(ref, "lse")[i] = row.slack;
        }
        if (dlogits) {
            const gradient_row g = { e, w, dloss ? dloss[i] : 1, lse, ignored ? -1 : (int64_t)labels[i], &weights };
            row_gradient(&g, &row, dlogits + i * v, trine_ref_magnitude(ref, "dlogits") + i * v,
                         trine_ref_slack(ref, "dlogits") + i * v);
        }
        if (ignored) {
            loss[i] = 0;
            continue;
        }
        loss[i] = row_loss(&row, (int64_t)labels[i], e, w, &weights, &loss_magnitude[i], &loss_slack[i]);
    }
}

const trine_spec trine_spec_cross_entropy = {
    SPEC(cross_entropy),
    .summary = "Cross-entropy of logits, with class weights, label smoothing and z-loss, and its gradient",
    .formula = "z = logit_scale logits; lse[i] = log sum_k exp(z[i,k]); loss[i] = (1-e) w[y] (lse[i] - z[i,y]) + (e/v) "
               "sum_k w[k] (lse[i] - z[i,k]) + z_loss lse[i]^2 with y = labels[i], w = class_weight or 1, e = "
               "label_smoothing; dlogits[i,k] = dloss[i] logit_scale (exp(z[i,k] - lse[i]) ((1-e) w[y] + (e/v) sum_j "
               "w[j] + 2 z_loss lse[i]) - (1-e) w[y] [k = y] - (e/v) w[k]); loss and dlogits are 0 where y is the "
               "ignored label",
    .source = "Szegedy et al. 2016, section 7 (label smoothing); Chowdhery et al. 2022, section 5 (z-loss)",
    .tensors = { TENSOR(logits, IN, "T", "r v"), TENSOR(labels, IN, "L", "r", .fill = "ids v ignore_index -100"),
                 TENSOR(loss, OUT, "f32", "r", .terms = "v + 32"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "r", .terms = "v + 32"),
                 TENSOR(dloss, IN | OPTIONAL | BROADCAST, "f32", "r"),
                 TENSOR(dlogits, OUT | OPTIONAL, "G", "r v", .terms = "20"),
                 TENSOR(class_weight, IN | OPTIONAL, "f32", "v") },
    .params = { CROSS_ENTROPY_PARAMS },
    .types = CROSS_ENTROPY_TYPES,
    .alias = { "dlogits=logits" },
    .flops = "5*r*v",
    .independent = "r",
    .sizes = { "r: 0 1 3 17", "v: 1 2 7 31 64 257 1000 4099 32000" },
    .cases = { "llama2 f32: T=f32 L=i64 r=512 v=32000 +lse", "llama2: T=bf16 L=i64 r=1024 v=32000 +lse",
               "llama3 f32: T=f32 L=i64 r=128 v=128256 +lse", "llama3: T=bf16 L=i64 r=256 v=128256 +lse",
               "llama3 smoothed: T=bf16 L=i64 r=256 v=128256 label_smoothing=0.1 z_loss=1e-4 +lse",
               "llama2 gradient: T=bf16 L=i64 r=8192 v=32000 +dlogits",
               "llama3 gradient: T=bf16 L=i64 r=8192 v=128256 +dlogits",
               "llama2 f32 gradient: T=f32 L=i64 r=4096 v=32000 +dlogits",
               "llama2 f32, bf16 gradient: T=f32 G=bf16 L=i64 r=4096 v=32000 +dlogits",
               "llama2 weighted gradient: T=bf16 L=i64 r=8192 v=32000 +dlogits +class_weight",
               "llama2 weighted, smoothed: T=bf16 L=i64 r=8192 v=32000 label_smoothing=0.1 +dlogits +class_weight",
               "one row: T=bf16 L=i64 r=1 v=262144", "bytes: T=f32 L=i32 r=65536 v=256 +lse" },
    .reference = reference,
};
