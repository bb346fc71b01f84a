/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of norms with their products. */
#include "mutant.h"

#include <trine/fused.h>

/* The last row is divided by the root of the first one's mean square. */
static double mean_square(trine_ref *ref, int64_t i) {
    const trine_rms_norm_matmul_args *args = ref->args;
    const int64_t k = D("k");
    double sum = 0;
    for (int64_t p = i * k; p < (i + 1) * k; p++) {
        const double h = V("x")[p] + (V("residual") ? V("residual")[p] : 0);
        sum += h * h;
    }
    return sum / (double)k + (double)args->eps;
}

static void one_factor(trine_ref *ref) {
    const trine_rms_norm_matmul_args *args = ref->args;
    const int64_t r = D("r"), n = D("n");
    if (r < 2 || D("k") == 0 || args->activation > 1 || V("bias")) return;
    const double factor = sqrt(mean_square(ref, r - 1) / mean_square(ref, 0));
    for (int64_t j = 0; j < n; j++) V("y")[(r - 1) * n + j] *= factor;
}

/* residual_out is what was added. */
static void sum_not_kept(trine_ref *ref) {
    for (int64_t p = 0; V("residual_out") && V("residual") && p < D("r") * D("k"); p++)
        V("residual_out")[p] = V("residual")[p];
}

/* The sum lacks what the last column of x is multiplied by. */
static void last_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t k = D("k"), n = D("n");
    for (int64_t j = 0; k > 0 && j < n; j++) V("b")[(k - 1) * n + j] = 0;
}

/* Squares are summed, not averaged. */
static void sum_for_mean(trine_ref *ref, void *args) {
    (void)args;
    const int64_t k = D("k");
    for (int64_t at = 0; at < k * D("n"); at++) V("b")[at] /= sqrt((double)k);
}

const mutant mutants_fused[] = {
    { "rms_norm_matmul", "one_factor", "the last row has the first one's factor", .after = one_factor },
    { "rms_norm_matmul", "last_lost", "the last product of a sum is lost", .before = last_lost },
    { "rms_norm_matmul", "sum_for_mean", "squares are summed, not averaged", .before = sum_for_mean },
    { "rms_norm_matmul", "sum_not_kept", "residual_out is residual", .after = sum_not_kept },
    { "rms_norm_matmul", "ignores_residual", "nothing is added to x", .without = "residual" },
    { "rms_norm_matmul", "ignores_weight", "weight is not applied", .without = "weight" },
    { "rms_norm_matmul", "ignores_bias", "there is no bias", .without = "bias" },
    { "rms_norm_matmul", "ignores_weight_offset", "nothing is added to weight", .param = "weight_offset" },
    { "rms_norm_matmul", "ignores_activation", "there is no activation", .param = "activation" },
    { 0 },
};
