/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy_backward: the table and the reference. */
#include <trine/loss.h>

#include "linear_cross_entropy.h"

#define ARGS trine_linear_cross_entropy_backward_args

/* Bound: as linear_cross_entropy's, but of an lse that is exact; where it is COARSE_LSE or more in size, of the row's
 * own log_sum, as in cross_entropy_backward. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t t = trine_ref_dim(ref, "t"), v = trine_ref_dim(ref, "v");
    const int64_t ignore = args->ignore_index_set ? args->ignore_index : -100;
    const double *labels = trine_ref_value(ref, "labels"), *lse = trine_ref_value(ref, "lse"),
                 *dloss = trine_ref_value(ref, "dloss");
    const class_weights weights = class_weights_of(trine_ref_value(ref, "class_weight"), v);
    double *buffer = calloc((size_t)(4 * v + 2 * t * v + 1), sizeof *buffer), *logits = buffer, *off = logits + v,
           *magnitude = off + v, *slack = magnitude + v, *g = slack + v, *g_off = g + t * v;

    for (int64_t i = 0; i < t; i++) {
        const int64_t label = (int64_t)labels[i] == ignore ? -1 : (int64_t)labels[i];
        head_logits(ref, i, logits, off);
        logit_row row = logit_row_near(logits, off, v, args->logit_scale);
        const bool unsure = isinf(row.most_off);
        if (!(fabs(lse[i]) >= COARSE_LSE)) row.top = 0, row.log_sum = lse[i], row.slack = 0;
        const gradient_row wanted = { args->label_smoothing, args->z_loss, dloss[i], row_lse(&row), label, &weights };
        for (int64_t j = 0; j < v; j++) magnitude[j] = slack[j] = 0;
        row_gradient(&wanted, &row, g + i * v, magnitude, slack);
        for (int64_t j = 0; j < v; j++)
            g_off[i * v + j] = unsure && label >= 0 ? INFINITY : gradient_off(g[i * v + j], magnitude[j], slack[j]);
    }
    head_gradients(ref, g, g_off);
    free(buffer);
}

static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t t = trine_ref_dim(ref, "t"), v = trine_ref_dim(ref, "v");
    double *logits = calloc((size_t)(2 * v + 1), sizeof *logits);
    for (int64_t i = 0; i < t; i++) {
        head_logits(ref, i, logits, logits + v);
        const logit_row row = logit_row_of(logits, v, args->logit_scale);
        trine_ref_value(ref, "lse")[i] = row_lse(&row);
    }
    free(logits);
}

const trine_spec trine_spec_linear_cross_entropy_backward = {
    SPEC(linear_cross_entropy_backward),
    .summary = "Gradient of linear_cross_entropy",
    .formula = "z = logit_scale (x weight' + bias); g[i,j] = dloss[i] logit_scale (exp(z[i,j] - lse[i]) ((1-e) w[y] + "
               "(e/v) sum_l w[l] + 2 z_loss lse[i]) - (1-e) w[y] [j = y] - (e/v) w[j]), y = labels[i], w = "
               "class_weight or 1, e = label_smoothing; 0 where labels[i] is the ignored label. "
               "dx = g weight; dweight = g' x; dbias[j] = sum_i g[i,j]. Where |lse[i]| >= 1024 it is log sum_j "
               "exp(z[i,j]) itself, not what f32 has of it",
    .source = "Hsu et al. 2024 (Liger Kernel), section 3.2; Szegedy et al. 2016, section 7 (label smoothing); "
              "Chowdhery et al. 2022, section 5 (z-loss)",
    .tensors = { TENSOR(x, IN, "T", "t k"), TENSOR(weight, IN, "T", "v k"),
                 TENSOR(labels, IN, "L", "t", .fill = "ids v ignore_index -100"), TENSOR(bias, IN | OPTIONAL, "B", "v"),
                 TENSOR(lse, IN, "f32", "t", .fill = "derived"), TENSOR(dloss, IN, "f32", "t"),
                 TENSOR(dx, OUT | OPTIONAL, "T", "t k", .terms = HEAD_TERMS_DX),
                 TENSOR(dweight, OUT | OPTIONAL, "D", "v k", .terms = HEAD_TERMS_DWEIGHT),
                 TENSOR(dbias, OUT | OPTIONAL, "B", "v", .terms = HEAD_TERMS_DBIAS),
                 TENSOR(class_weight, IN | OPTIONAL, "f32", "v") },
    .params = HEAD_PARAMS,
    .types = HEAD_TYPES,
    .require = { "dx | dweight | dbias" },
    .flops = "6*t*v*k",
    .independent = "t",
    .sizes = HEAD_SIZES,
    .cases = HEAD_CASES,
    .reference = reference,
    .prepare = prepare,
};
