/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the ops of x + bias. */
#include "mutant.h"

static void bias_missing(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("r") * D("n"); k++) V("x")[k] -= V("bias")[k % D("n")];
}

/* The biases of a row begin one later. */
static void bias_shifted(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t j = 0; V("bias") && j + 1 < D("n"); j++) V("bias")[j] = V("bias")[j + 1];
}

static void other_form(trine_ref *ref, void *args) {
    const trine_plan *plan = ref->plan;
    int32_t *form = (int32_t *)((char *)args + plan->spec->params[trine_plan_find_param(plan, "form")].offset);
    *form = *form == TRINE_GELU_TANH ? TRINE_GELU_ERF : TRINE_GELU_TANH;
}

/* h sigmoid(1.702 h), that other approximation. */
static void quick(trine_ref *ref) {
    for (int64_t k = 0; k < D("r") * D("n"); k++) {
        const double h = V("x")[k] + V("bias")[k % D("n")];
        V("y")[k] = h / (1 + exp(-1.702 * h));
    }
}

/* dbias leaves out the last row. */
static void dbias_short(trine_ref *ref) {
    const int64_t n = D("n"), last = (D("r") - 1) * n;
    for (int64_t j = 0; V("dbias") && last >= 0 && j < n; j++) V("dbias")[j] -= V("dx")[last + j];
}

/* dbias sums what dx was rounded to. */
static void dbias_of_rounded(trine_ref *ref) {
    const trine_dtype dtype = trine_ref_type(ref, "T");
    for (int64_t j = 0; V("dbias") && j < D("n"); j++) {
        V("dbias")[j] = 0;
        for (int64_t i = 0; i < D("r"); i++) V("dbias")[j] += trine_round(V("dx")[i * D("n") + j], dtype, false);
    }
}

/* Of what is kept, the bias is added behind the scale. */
static void bias_unscaled(trine_ref *ref) {
    const trine_dropout_add_args *args = ref->args;
    const double scale = trine_dropout_scale(args->p);
    for (int64_t k = 0; V("bias") && !V("philox") && k < D("r") * D("n"); k++)
        if (trine_dropout_keep(args->seed, args->offset, ref->first + (uint64_t)k, args->p))
            V("y")[k] += V("bias")[k % D("n")] * (1 - scale);
}

/* The mask is that of each row by itself. */
static void mask_of_row(trine_ref *ref) {
    const trine_dropout_add_args *args = ref->args;
    for (int64_t k = 0; !V("philox") && k < D("r") * D("n"); k++) {
        const double h = V("x")[k] + (V("bias") ? V("bias")[k % D("n")] : 0),
                     rest = V("residual") ? V("residual")[k] : 0;
        const bool keep = trine_dropout_keep(args->seed, args->offset, (uint64_t)(k % D("n")), args->p);
        V("y")[k] = (keep ? h * trine_dropout_scale(args->p) : 0) + rest;
    }
}

static void dx_unscaled(trine_ref *ref) {
    const double scale = trine_dropout_scale(((const trine_dropout_add_backward_args *)ref->args)->p);
    for (int64_t k = 0; scale > 0 && k < D("r") * D("n"); k++) V("dx")[k] /= scale;
}

const mutant mutants_bias[] = {
    { "gelu_bias", "ignores_bias", "bias is not added", .before = bias_missing },
    { "gelu_bias", "bias_shifted", "biases are read one element late", .before = bias_shifted },
    { "gelu_bias", "other_form", "tanh and erf are exchanged", .before = other_form },
    { "gelu_bias", "quick", "the approximation by a sigmoid", .after = quick },
    { "gelu_bias_backward", "ignores_bias", "bias is not added", .before = bias_missing },
    { "gelu_bias_backward", "bias_shifted", "biases are read one element late", .before = bias_shifted },
    { "gelu_bias_backward", "other_form", "tanh and erf are exchanged", .before = other_form },
    { "gelu_bias_backward", "dbias_short", "dbias leaves out the last row", .after = dbias_short },
    { "gelu_bias_backward", "dbias_of_rounded", "dbias sums a rounded dx", .after = dbias_of_rounded,
      .types = "T=bf16 W=f32" },
    { "dropout_add", "ignores_bias", "bias is not added", .without = "bias" },
    { "dropout_add", "ignores_residual", "the residual is not added", .without = "residual" },
    { "dropout_add", "ignores_philox", "dropout's key is 0", .without = "philox" },
    { "dropout_add", "low_seed", "dropout's stream is not used", .param = "offset" },
    { "dropout_add", "bias_unscaled", "the bias is not scaled", .after = bias_unscaled },
    { "dropout_add", "mask_of_row", "each row has the first one's mask", .after = mask_of_row },
    { "dropout_add_backward", "ignores_philox", "dropout's key is 0", .without = "philox" },
    { "dropout_add_backward", "ignores_dropout", "nothing is dropped", .param = "p" },
    { "dropout_add_backward", "dx_unscaled", "dx is masked, but not scaled", .after = dx_unscaled },
    { "dropout_add_backward", "dbias_short", "dbias leaves out the last row", .after = dbias_short },
    { 0 },
};
