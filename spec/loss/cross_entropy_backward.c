/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward: the table and the reference. */
#include <trine/loss.h>

#include "cross_entropy.h"

#define ARGS trine_cross_entropy_backward_args

/* The bound is row_gradient()'s, of an lse that is exact; where it is COARSE_LSE or more in size, of the row's own
 * log_sum, whose error counts as in cross_entropy. Invariant: sum_k dlogits[i,k] = dloss[i] logit_scale 2 z_loss
 * lse[i], whatever the smoothing and the weights. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const int64_t ignore = args->ignore_index_set ? args->ignore_index : -100;
    const double *logits = trine_ref_value(ref, "logits"), *labels = trine_ref_value(ref, "labels");
    const double *lse = trine_ref_value(ref, "lse"), *dloss = trine_ref_value(ref, "dloss");
    const class_weights weights = class_weights_of(trine_ref_value(ref, "class_weight"), v);
    double *dlogits = trine_ref_value(ref, "dlogits"), *magnitude = trine_ref_magnitude(ref, "dlogits"),
           *slack = trine_ref_slack(ref, "dlogits");
    for (int64_t i = 0; i < r; i++) {
        const int64_t label = (int64_t)labels[i];
        logit_row row = { .x = logits + i * v, .v = v, .scale = args->logit_scale, .log_sum = lse[i] };
        if (fabs(lse[i]) >= COARSE_LSE) row = logit_row_of(logits + i * v, v, args->logit_scale);
        const gradient_row g = { args->label_smoothing,        args->z_loss, dloss[i], row_lse(&row),
                                 label == ignore ? -1 : label, &weights };
        row_gradient(&g, &row, dlogits + i * v, magnitude + i * v, slack + i * v);
    }
}

static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    for (int64_t i = 0; i < r; i++) {
        const logit_row row = logit_row_of(trine_ref_value(ref, "logits") + i * v, v, args->logit_scale);
        trine_ref_value(ref, "lse")[i] = row_lse(&row);
    }
}

const trine_spec trine_spec_cross_entropy_backward = {
    SPEC(cross_entropy_backward),
    .summary = "Gradient of cross_entropy",
    .formula = "dlogits[i,k] = dloss[i] logit_scale (p[i,k] ((1-e) w[y] + (e/v) sum_j w[j] + 2 z_loss lse[i]) - (1-e) "
               "w[y] [k = y] - (e/v) w[k]), p[i,k] = exp(logit_scale logits[i,k] - lse[i]), y = labels[i], w = "
               "class_weight or 1, e = label_smoothing; 0 where labels[i] is the ignored label. Where |lse[i]| >= 1024 "
               "it is log sum_k "
               "exp(logit_scale logits[i,k]) itself, not what f32 "
               "has of it",
    .source = "Szegedy et al. 2016, section 7 (label smoothing); Chowdhery et al. 2022, section 5 (z-loss)",
    .tensors = { TENSOR(logits, IN, "T", "r v"), TENSOR(labels, IN, "L", "r", .fill = "ids v ignore_index -100"),
                 TENSOR(lse, IN, "f32", "r", .fill = "derived"), TENSOR(dloss, IN, "f32", "r"),
                 TENSOR(dlogits, OUT, "G", "r v", .terms = "20"), TENSOR(class_weight, IN | OPTIONAL, "f32", "v") },
    .params = { CROSS_ENTROPY_PARAMS },
    .types = CROSS_ENTROPY_TYPES,
    .alias = { "dlogits=logits" },
    .flops = "5*r*v",
    .independent = "r",
    .sizes = { "r: 0 1 3 17", "v: 1 2 7 31 64 257 1000 4099 32000" },
    .cases = { "llama2 f32: T=f32 L=i64 r=512 v=32000", "llama2: T=bf16 L=i64 r=1024 v=32000",
               "llama3: T=bf16 L=i64 r=256 v=128256", "llama2 f32 to bf16: T=f32 G=bf16 L=i64 r=512 v=32000",
               "llama3 smoothed: T=bf16 L=i64 r=256 v=128256 label_smoothing=0.1 z_loss=1e-4",
               "bytes: T=f32 L=i32 r=65536 v=256" },
    .reference = reference,
    .prepare = prepare,
};
