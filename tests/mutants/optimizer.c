/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of adamw and global_norm_clip. */
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
    { "global_norm_clip", "ignores_others", "other_squares is not read", .without = "other_squares" },
    { "global_norm_clip", "own_twice", "own_included is not read", .param = "own_included" },
    { "global_norm_clip", "own_never", "other_squares always has the own sum", .param = "own_included", .value = 1 },
    { "global_norm_clip", "ignores_max_norm", "nothing is clipped", .param = "max_norm" },
    { "global_norm_clip", "last_lost", "the last element is left out", .before = last_lost },
    { "global_norm_clip", "sum_of_all", "sum_squares holds other_squares", .after = sum_of_all },
    { "global_norm_clip", "scales_up", "the coefficient is not held to 1", .after = scales_up },
    { 0 },
};
