/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_parallel_cross_entropy: the table and the reference. */
#include <stdlib.h>
#include <string.h>

#include <trine/comm.h>

#include "spec/loss/cross_entropy.h"

#define ARGS trine_vocab_parallel_cross_entropy_args

/* Bound: that of cross_entropy (spec/loss/cross_entropy.h) for a row of all ranks' classes, one behind the other. A
 * rank's sums have an origin of their own; what is added up over the ranks is moved to the largest of these, and summed
 * in float64. So each accumulator is rescaled once more, which costs 10u of the sum, and of its logarithm. */
static logit_row joined_row(const double *x, int64_t classes, double scale) {
    logit_row row = logit_row_of(x, classes, scale);
    if (isfinite(row.log_sum)) row.slack += 10 * trine_unit_roundoff(TRINE_F32);
    return row;
}

/* Row i of rank q, of which x are the logits of all ranks. */
static void rank_row(trine_ref *ref, int64_t q, int64_t i, const double *x, double *scratch) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v"),
                  at = q * r + i, ignore = args->ignore_index_set ? args->ignore_index : -100,
                  label = (int64_t)trine_ref_value(ref, "labels")[at];
    const double e = args->label_smoothing, w = args->z_loss, *dloss = trine_ref_value(ref, "dloss");
    const class_weights weights = class_weights_of(NULL, ranks * v);
    const logit_row row = joined_row(x, ranks * v, args->logit_scale);
    const double lse = row_lse(&row);
    double *lse_out = trine_ref_value(ref, "lse"), *loss = trine_ref_value(ref, "loss"),
           *dlogits = trine_ref_value(ref, "dlogits");
    if (lse_out) {
        lse_out[at] = lse;
        trine_ref_magnitude(ref, "lse")[at] = isfinite(lse);
        trine_ref_slack(ref, "lse")[at] = row.slack;
    }
    if (label == ignore)
        loss[at] = 0;
    else
        loss[at] = row_loss(&row, label, e, w, &weights, &trine_ref_magnitude(ref, "loss")[at],
                            &trine_ref_slack(ref, "loss")[at]);
    if (!dlogits) return;
    double *const part[] = { dlogits, trine_ref_magnitude(ref, "dlogits"), trine_ref_slack(ref, "dlogits") };
    memset(scratch, 0, (size_t)(3 * ranks * v) * sizeof *scratch);
    const gradient_row g = { e, w, dloss ? dloss[at] : 1, lse, label == ignore ? -1 : label, &weights };
    row_gradient(&g, &row, scratch, scratch + ranks * v, scratch + 2 * ranks * v);
    for (int k = 0; k < 3; k++) memcpy(part[k] + at * v, scratch + (k * ranks + q) * v, (size_t)v * sizeof *scratch);
}

static void reference(trine_ref *ref) {
    const int64_t ranks = trine_ref_dim(ref, "ranks"), r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const double *logits = trine_ref_value(ref, "logits");
    double *x = malloc((size_t)(4 * ranks * v + 1) * sizeof *x);
    for (int64_t i = 0; i < r; i++) {
        for (int64_t q = 0; q < ranks; q++) memcpy(x + q * v, logits + (q * r + i) * v, (size_t)v * sizeof *x);
        for (int64_t q = 0; q < ranks; q++) rank_row(ref, q, i, x, x + ranks * v);
    }
    free(x);
}

const trine_spec trine_spec_vocab_parallel_cross_entropy = {
    SPEC(vocab_parallel_cross_entropy),
    .summary = "Cross-entropy of logits whose classes the ranks have parts of, and its gradient",
    .formula =
        "z[q,i,k] = logit_scale logits[q,i,k], of class q v + k; lse[q,i] = log sum_s,k exp(z[s,i,k]); t[c,i] the "
        "z of class c; loss[q,i] = (1-e) (lse - t[y,i]) + (e/(ranks v)) sum_c (lse - t[c,i]) + z_loss lse^2 with "
        "y = labels[q,i], e = label_smoothing; dlogits[q,i,k] = dloss[q,i] logit_scale (exp(z[q,i,k] - lse) (1 + "
        "2 z_loss lse) - (1-e) [q v + k = y] - e/(ranks v)); loss and dlogits are 0 where y is the ignored label",
    .source = "Shoeybi et al. 2019 (Megatron-LM), section 3; Szegedy et al. 2016, section 7 (label smoothing)",
    .tensors = { TENSOR(logits, IN, "T", "ranks r v"),
                 TENSOR(labels, IN, "L", "ranks r", .fill = "ids ranks*v ignore_index -100 alike"),
                 TENSOR(loss, OUT, "f32", "ranks r", .terms = "ranks*v + 32"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "ranks r", .terms = "ranks*v + 32"),
                 TENSOR(dloss, IN | OPTIONAL, "f32", "ranks r"),
                 TENSOR(dlogits, OUT | OPTIONAL, "G", "ranks r v", .terms = "20") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"), CROSS_ENTROPY_PARAMS },
    .types = CROSS_ENTROPY_TYPES,
    .require = { "ranks > 0", "ranks <= 64" },
    .alias = { "dlogits=logits" },
    .flops = "5*ranks*r*v",
    .sizes = { "ranks: 2 1 3 4 8", "r: 3 0 1 17 300", "v: 31 1 2 7 64 257 1000 4099 9000" },
    .cases = { "llama3, 2 ranks: T=bf16 L=i64 ranks=2 r=2048 v=64128 +dlogits",
               "llama3: T=bf16 L=i64 ranks=4 r=2048 v=32064 +dlogits",
               "llama3 loss: T=bf16 L=i64 ranks=4 r=2048 v=32064 +lse",
               "llama2 f32: T=f32 L=i64 ranks=4 r=1024 v=8000 +dlogits",
               "a few rows: T=bf16 L=i64 ranks=4 r=8 v=32064 +dlogits" },
    .reference = reference,
};
