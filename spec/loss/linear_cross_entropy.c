/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy: the table and the reference. */
#include <trine/loss.h>

#include "linear_cross_entropy.h"

#define ARGS trine_linear_cross_entropy_args

/* Bound. Logits as head_logits(); loss, lse and the logits' gradient as cross_entropy's of logits that are off by so
 * much (cross_entropy.h); dx, dweight and dbias as head_gradients(). */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t t = trine_ref_dim(ref, "t"), v = trine_ref_dim(ref, "v");
    const int64_t ignore = args->ignore_index_set ? args->ignore_index : -100;
    const double *labels = trine_ref_value(ref, "labels"), *dloss = trine_ref_value(ref, "dloss");
    const double e = args->label_smoothing, w = args->z_loss;
    const class_weights weights = class_weights_of(trine_ref_value(ref, "class_weight"), v);
    const bool gradient =
        trine_ref_value(ref, "dx") || trine_ref_value(ref, "dweight") || trine_ref_value(ref, "dbias");
    double *loss = trine_ref_value(ref, "loss"), *lse_out = trine_ref_value(ref, "lse");
    double *loss_magnitude = trine_ref_magnitude(ref, "loss"), *loss_slack = trine_ref_slack(ref, "loss");
    double *buffer = calloc((size_t)(4 * v + 2 * t * v + 1), sizeof *buffer), *logits = buffer, *off = logits + v,
           *magnitude = off + v, *slack = magnitude + v, *g = slack + v, *g_off = g + t * v;

    for (int64_t i = 0; i < t; i++) {
        const int64_t label = (int64_t)labels[i] == ignore ? -1 : (int64_t)labels[i];
        head_logits(ref, i, logits, off);
        const logit_row row = logit_row_near(logits, off, v, args->logit_scale);
        const double lse = row_lse(&row);
        const bool unsure = isinf(row.most_off);
        if (lse_out) {
            lse_out[i] = unsure && isnan(lse) && !any_nan(logits, v) ? INFINITY : lse;
            trine_ref_magnitude(ref, "lse")[i] = unsure ? INFINITY : isfinite(lse);
            trine_ref_slack(ref, "lse")[i] = unsure ? 0 : row.slack;
        }
        loss[i] = label < 0 ? 0 : row_loss(&row, label, e, w, &weights, &loss_magnitude[i], &loss_slack[i]);
        if (unsure && label >= 0) {
            loss_magnitude[i] = INFINITY, loss_slack[i] = 0;
            if (isnan(loss[i]) && !any_nan(logits, v)) loss[i] = INFINITY;
        }
        if (!gradient) continue;
        const gradient_row wanted = { e, w, dloss ? dloss[i] : 1, lse, label, &weights };
        for (int64_t j = 0; j < v; j++) magnitude[j] = slack[j] = 0;
        row_gradient(&wanted, &row, g + i * v, magnitude, slack);
        for (int64_t j = 0; j < v; j++)
            g_off[i * v + j] = unsure && label >= 0 ? INFINITY : gradient_off(g[i * v + j], magnitude[j], slack[j]);
    }
    if (gradient) head_gradients(ref, g, g_off);
    free(buffer);
}

const trine_spec trine_spec_linear_cross_entropy = {
    SPEC(linear_cross_entropy),
    .summary = "Cross-entropy of a linear layer's outputs, with its gradients, without a matrix of all logits",
    .formula = "z = logit_scale (x weight' + bias); lse[i] = log sum_j exp(z[i,j]); loss[i] = (1-e) w[y] (lse[i] - "
               "z[i,y]) + (e/v) sum_j w[j] (lse[i] - z[i,j]) + z_loss lse[i]^2 with y = labels[i], w = class_weight or "
               "1, e = label_smoothing; g[i,j] = dloss[i] logit_scale (exp(z[i,j] - lse[i]) ((1-e) w[y] + (e/v) sum_l "
               "w[l] + 2 z_loss lse[i]) - (1-e) w[y] [j = y] - (e/v) w[j]); dx = g weight; dweight = g' x; dbias[j] = "
               "sum_i g[i,j]; loss[i] and g[i,j] are 0 where y is the ignored label",
    .source = "Hsu et al. 2024 (Liger Kernel), section 3.2; Szegedy et al. 2016, section 7 (label smoothing); "
              "Chowdhery et al. 2022, section 5 (z-loss)",
    .tensors = { TENSOR(x, IN, "T", "t k"), TENSOR(weight, IN, "T", "v k"),
                 TENSOR(labels, IN, "L", "t", .fill = "ids v ignore_index -100"), TENSOR(bias, IN | OPTIONAL, "B", "v"),
                 TENSOR(loss, OUT, "f32", "t", .terms = "v + 32"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "t", .terms = "v + 32"),
                 TENSOR(dloss, IN | OPTIONAL | BROADCAST, "f32", "t"),
                 TENSOR(dx, OUT | OPTIONAL, "T", "t k", .terms = HEAD_TERMS_DX),
                 TENSOR(dweight, OUT | OPTIONAL, "D", "v k", .terms = HEAD_TERMS_DWEIGHT),
                 TENSOR(dbias, OUT | OPTIONAL, "B", "v", .terms = HEAD_TERMS_DBIAS),
                 TENSOR(class_weight, IN | OPTIONAL, "f32", "v") },
    .params = HEAD_PARAMS,
    .types = HEAD_TYPES,
    .flops = "6*t*v*k",
    .independent = "t",
    .sizes = HEAD_SIZES,
    .cases = HEAD_CASES,
    .reference = reference,
};
