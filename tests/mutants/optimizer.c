/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the optimizers and global_norm_clip. */
#include "mutant.h"

/* Decay as of Adam: by way of the gradient. */
static void decay_coupled(trine_ref *ref, void *args) {
    trine_adamw_args *a = args;
    for (int64_t i = 0; i < D("n"); i++)
        V("grad")[i] += (double)a->weight_decay * V("param")[i] / (V("grad_scale") ? V("grad_scale")[0] : 1);
    a->weight_decay = 0;
}

static void late_step(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_adamw_args *)args)->step++;
}

static void one_beta(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_adamw_args *)args)->beta2 = ((trine_adamw_args *)args)->beta1;
}

/* eps is added before the root of v's correction. */
static void eps_uncorrected(trine_ref *ref, void *args) {
    (void)ref;
    trine_adamw_args *a = args;
    a->eps /= (float)sqrt(1 - pow((double)a->beta2, (double)a->step));
}

static void copy_of_m(trine_ref *ref) {
    const int64_t n = D("n");
    if (V("copy") && n > 0) V("copy")[n - 1] = V("m")[n - 1];
}

static void skips_on_one(trine_ref *ref, void *args) {
    (void)args;
    if (V("found_inf") && V("found_inf")[0] != 1) V("found_inf")[0] = 0;
}

static void first_step(trine_ref *ref, void *args) {
    (void)args;
    if (V("step_tensor")) V("step_tensor")[0] = 1;
}

static void copy_of_skipped(trine_ref *ref) {
    for (int64_t i = 0; V("copy") && V("found_inf") && V("found_inf")[0] != 0 && i < D("n"); i++) V("copy")[i] = 0;
}

static void last_lost(trine_ref *ref, void *args) {
    (void)args;
    if (D("n") > 0) V("x")[D("n") - 1] = 0;
}

/* The sum of this part alone holds those of the others. */
static void sum_of_all(trine_ref *ref) {
    for (int64_t j = 0; V("sum_squares") && V("other_squares") && j < D("g"); j++)
        V("sum_squares")[0] += V("other_squares")[j];
}

/* The coefficient may be above 1. */
static void scales_up(trine_ref *ref) {
    const double most = (double)((const trine_global_norm_clip_args *)ref->args)->max_norm;
    const double norm = V("norm") ? V("norm")[0] : 0, coefficient = most / norm;
    if (most == 0 || !(norm > 0) || coefficient <= 1) return;
    if (V("coefficient")) V("coefficient")[0] = coefficient;
    for (int64_t i = 0; V("y") && i < D("n"); i++) V("y")[i] *= coefficient;
}

static void lion_coupled(trine_ref *ref, void *args) {
    trine_lion_args *a = args;
    for (int64_t i = 0; i < D("n"); i++)
        V("grad")[i] += (double)a->weight_decay * V("param")[i] / (V("grad_scale") ? V("grad_scale")[0] : 1);
    a->weight_decay = 0;
}

static void lion_one_beta(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_lion_args *)args)->beta2 = ((trine_lion_args *)args)->beta1;
}

static void betas_exchanged(trine_ref *ref, void *args) {
    (void)ref;
    trine_lion_args *a = args;
    const float first = a->beta1;
    a->beta1 = a->beta2;
    a->beta2 = first;
}

static void quantized_late(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_adamw_quantized_args *)args)->step++;
}

/* Values of the signed codes are taken for v's too: 1 in the middle. */
static void v_signed(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("n"); i++) V("v")[i] = V("v")[i] < 128 ? 0 : 2 * V("v")[i] - 255;
}

/* Codes are those below, not the nearest. */
static void m_below(trine_ref *ref) {
    for (int64_t i = 0; i < D("n"); i++)
        if (V("m")[i] > 128 && V("m")[i] < 255) V("m")[i] -= 1;
}

/* Largest values have their block's neighbour's place. */
static void most_of_first(trine_ref *ref) {
    for (int64_t i = 256; i < D("n"); i += 256) V("m_most")[i / 256] = V("m_most")[0];
}

static void adafactor_late(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_adafactor_args *)args)->step++;
}

/* The step is lr's own, not that of the parameter's size. */
static void adafactor_unscaled(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_adafactor_args *)args)->eps2 = 1;
}

static void adafactor_unclipped(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_adafactor_args *)args)->clip = 0x1p126f;
}

static void rows_transposed(trine_ref *ref) {
    for (int64_t i = 0; V("row_var") && i < D("r") && i < D("c"); i++) V("row_var")[i] = V("col_var")[i];
}

/* Of more rows than columns the sides are exchanged in the scale. */
static void wide_scale(trine_ref *ref, void *args) {
    trine_muon_args *a = args;
    const double m = (double)D("m"), n = (double)D("n");
    if (a->adjust == TRINE_MUON_ORIGINAL && m > 0 && n > 0)
        a->lr = (float)((double)a->lr * sqrt(fmax(1, n / m) / fmax(1, m / n)));
}

/* The decay is not multiplied by lr. */
static void decay_alone(trine_ref *ref, void *args) {
    trine_muon_args *a = args;
    (void)ref;
    if (a->lr > 0) a->weight_decay /= a->lr;
}

/* Momentum as of SGD, the gradient's weight being 1. */
static void heavy_gradient(trine_ref *ref, void *args) {
    const trine_muon_args *a = args;
    for (int64_t i = 0; i < D("m") * D("n"); i++) V("grad")[i] /= 1 - (double)a->momentum;
}

const mutant mutants_optimizer[] = {
    { "adamw", "uncorrected", "no correction of the bias", .param = "step", .value = 1 << 30 },
    { "adamw", "late_step", "the correction of the step after", .before = late_step },
    { "adamw", "decay_coupled", "weight decay goes by way of the gradient", .before = decay_coupled },
    { "adamw", "one_beta", "v decays by beta1", .before = one_beta },
    { "adamw", "eps_uncorrected", "eps is added before v is corrected", .before = eps_uncorrected,
      .types = "T=f32 S=f32" },
    { "adamw", "ignores_found_inf", "a step is never skipped", .without = "found_inf" },
    { "adamw", "skips_on_one", "found_inf is taken for a flag of 1", .before = skips_on_one },
    { "adamw", "ignores_lr_tensor", "lr_tensor is not read", .without = "lr_tensor" },
    { "adamw", "first_step", "step_tensor is not read", .before = first_step },
    { "adamw", "copy_of_skipped", "the copy of a step that is skipped is 0", .after = copy_of_skipped },
    { "adamw", "ignores_grad_scale", "grad_scale is not read", .without = "grad_scale" },
    { "adamw", "copy_of_m", "the copy's last element is m's", .after = copy_of_m },
    { "lion", "one_beta", "m decays by beta1", .before = lion_one_beta },
    { "lion", "betas_exchanged", "m decays by beta1, and the sign is of beta2", .before = betas_exchanged },
    { "lion", "sign_of_gradient", "the sign is that of the gradient", .param = "beta1" },
    { "lion", "decay_coupled", "weight decay goes by way of the gradient", .before = lion_coupled },
    { "lion", "ignores_weight_decay", "nothing decays", .param = "weight_decay" },
    { "lion", "ignores_grad_scale", "grad_scale is not read", .without = "grad_scale" },
    { "lion", "ignores_lr_tensor", "lr_tensor is not read", .without = "lr_tensor" },
    { "lion", "ignores_found_inf", "a step is never skipped", .without = "found_inf" },
    { "lion", "skips_on_one", "found_inf is taken for a flag of 1", .before = skips_on_one },
    { "lion", "copy_of_skipped", "the copy of a step that is skipped is 0", .after = copy_of_skipped },
    { "lion", "copy_of_m", "the copy's last element is m's", .after = copy_of_m },
    { "adamw_quantized", "late_step", "the correction of the step after", .before = quantized_late },
    { "adamw_quantized", "v_signed", "v has m's values", .before = v_signed },
    { "adamw_quantized", "m_below", "codes of positive m are those before", .after = m_below },
    { "adamw_quantized", "most_of_first", "all blocks have the first one's largest m", .after = most_of_first },
    { "adamw_quantized", "ignores_grad_scale", "grad_scale is not read", .without = "grad_scale" },
    { "adamw_quantized", "ignores_found_inf", "a step is never skipped", .without = "found_inf" },
    { "adamw_quantized", "skips_on_one", "found_inf is taken for a flag of 1", .before = skips_on_one },
    { "adamw_quantized", "copy_of_skipped", "the copy of a step that is skipped is 0", .after = copy_of_skipped },
    { "adafactor", "late_step", "the weight of the step after", .before = adafactor_late },
    { "adafactor", "unscaled", "the step does not grow with the parameter", .before = adafactor_unscaled,
      .types = "T=f32" },
    { "adafactor", "unclipped", "updates are not clipped", .before = adafactor_unclipped, .types = "T=f32" },
    { "adafactor", "rows_transposed", "rows have the variances of columns", .after = rows_transposed },
    { "adafactor", "ignores_weight_decay", "nothing decays", .param = "weight_decay" },
    { "adafactor", "ignores_grad_scale", "grad_scale is not read", .without = "grad_scale" },
    { "adafactor", "ignores_found_inf", "a step is never skipped", .without = "found_inf" },
    { "adafactor", "skips_on_one", "found_inf is taken for a flag of 1", .before = skips_on_one },
    { "global_norm_clip", "ignores_others", "other_squares is not read", .without = "other_squares" },
    { "global_norm_clip", "own_twice", "own_included is not read", .param = "own_included" },
    { "global_norm_clip", "own_never", "other_squares always has the own sum", .param = "own_included", .value = 1 },
    { "global_norm_clip", "ignores_max_norm", "nothing is clipped", .param = "max_norm" },
    { "global_norm_clip", "last_lost", "the last element is left out", .before = last_lost },
    { "global_norm_clip", "sum_of_all", "sum_squares holds other_squares", .after = sum_of_all },
    { "global_norm_clip", "scales_up", "the coefficient is not held to 1", .after = scales_up },
    { "muon", "ignores_nesterov", "the moment is made orthogonal", .param = "update", .value = TRINE_MUON_MOMENT },
    { "muon", "wide_scale", "the scale counts columns for rows", .before = wide_scale },
    { "muon", "decay_alone", "the decay is not multiplied by lr", .before = decay_alone },
    { "muon", "heavy_gradient", "the gradient counts whole in the moment", .before = heavy_gradient },
    { "muon", "one_step", "there is one step", .param = "ns_steps", .value = 1, .dims = "m=2 n=2" },
    { "muon", "ignores_ns_c", "the polynomial is of the third degree", .param = "ns_c", .value = 0 },
    { "adamw", "ignores_stochastic", "to the nearest in any case", .param = "stochastic", .types = "T=bf16" },
    { "adamw", "ignores_seed", "the key is 0", .param = "seed", .types = "T=bf16" },
    { "adamw", "ignores_stream", "the stream is 0", .param = "stream", .types = "T=bf16" },
    { "adamw", "ignores_philox", "the key is the parameter's", .without = "philox", .types = "T=bf16" },
    { "lion", "ignores_stochastic", "to the nearest in any case", .param = "stochastic", .types = "T=bf16" },
    { "lion", "ignores_seed", "the key is 0", .param = "seed", .types = "T=bf16" },
    { "lion", "ignores_stream", "the stream is 0", .param = "stream", .types = "T=bf16" },
    { "lion", "ignores_philox", "the key is the parameter's", .without = "philox", .types = "T=bf16" },
    { "adafactor", "ignores_stochastic", "to the nearest in any case", .param = "stochastic", .types = "T=bf16" },
    { "adafactor", "ignores_seed", "the key is 0", .param = "seed", .types = "T=bf16" },
    { "adafactor", "ignores_stream", "the stream is 0", .param = "stream", .types = "T=bf16" },
    { "adafactor", "ignores_philox", "the key is the parameter's", .without = "philox", .types = "T=bf16" },
    { "adamw_quantized", "ignores_stochastic", "to the nearest in any case", .param = "stochastic", .types = "T=bf16" },
    { "adamw_quantized", "ignores_seed", "the key is 0", .param = "seed", .types = "T=bf16" },
    { "adamw_quantized", "ignores_stream", "the stream is 0", .param = "stream", .types = "T=bf16" },
    { "adamw_quantized", "ignores_philox", "the key is the parameter's", .without = "philox", .types = "T=bf16" },
    { "sgd", "ignores_stochastic", "to the nearest in any case", .param = "stochastic", .types = "T=bf16" },
    { "sgd", "ignores_seed", "the key is 0", .param = "seed", .types = "T=bf16" },
    { "sgd", "ignores_stream", "the stream is 0", .param = "stream", .types = "T=bf16" },
    { "sgd", "ignores_philox", "the key is the parameter's", .without = "philox", .types = "T=bf16" },
    { "muon", "ignores_stochastic", "to the nearest in any case", .param = "stochastic", .types = "T=bf16",
      .dims = "m=2 n=64" },
    { "muon", "ignores_seed", "the key is 0", .param = "seed", .types = "T=bf16", .dims = "m=2 n=64" },
    { "muon", "ignores_stream", "the stream is 0", .param = "stream", .types = "T=bf16", .dims = "m=2 n=64" },
    { "muon", "ignores_philox", "the key is the parameter's", .without = "philox", .types = "T=bf16",
      .dims = "m=2 n=64" },
    { "sgd", "ignores_nesterov", "the step is the moment's", .param = "nesterov" },
    { "sgd", "ignores_dampening", "the gradient enters whole", .param = "dampening" },
    { "sgd", "ignores_weight_decay", "nothing decays", .param = "weight_decay" },
    { "sgd", "ignores_scale", "the scale is 1", .param = "scale", .value = 1 },
    { "sgd", "ignores_momentum", "the moment is that of this gradient", .param = "momentum" },
    { "sgd", "ignores_found_inf", "a step is never skipped", .without = "found_inf" },
    { "sgd", "ignores_lr_tensor", "lr_tensor is not read", .without = "lr_tensor" },
    { "sgd", "ignores_grad_scale", "grad_scale is not read", .without = "grad_scale" },
    { "muon", "ignores_found_inf", "a step is never skipped", .without = "found_inf", .dims = "m=2 n=2" },
    { "muon", "ignores_lr_tensor", "lr_tensor is not read", .without = "lr_tensor", .dims = "m=2 n=2" },
    { "muon", "ignores_grad_scale", "grad_scale is not read", .without = "grad_scale" },
    { 0 },
};
