/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of softmax, rms_norm, layer_norm and their gradients. */
#include "mutant.h"

/* Is the last column visible to row i? */
static bool last_visible(const trine_ref *ref, bool causal, int64_t i) { return !causal || i >= D("s") - 1; }

/* The sum of y dy of each row leaves out its last column. */
static void last_term_missing(trine_ref *ref) {
    const trine_softmax_backward_args *args = ref->args;
    const int64_t s = D("s"), n = D("n"), rows = D("g") * s;
    const double *y = V("y"), *dy = V("dy");
    for (int64_t i = 0; i < rows && n > 0; i++)
        for (int64_t j = 0; last_visible(ref, args->causal, i % s) && j < n; j++)
            V("dx")[i * n + j] += (double)args->scale * y[i * n + j] * y[i * n + n - 1] * dy[i * n + n - 1];
}

static void rstd_unbiased(trine_ref *ref) {
    const double n = (double)D("n");
    for (int64_t i = 0; V("rstd") && n > 1 && i < D("r"); i++) V("rstd")[i] *= sqrt((n - 1) / n);
}

static void dx_scaled_back(trine_ref *ref, float p) {
    for (int64_t k = 0; k < D("r") * D("n"); k++) V("dx")[k] /= (double)trine_dropout_scale(p);
}

static void rms_dx_unscaled(trine_ref *ref) {
    dx_scaled_back(ref, ((const trine_rms_norm_backward_args *)ref->args)->dropout);
}

static void layer_dx_unscaled(trine_ref *ref) {
    dx_scaled_back(ref, ((const trine_layer_norm_backward_args *)ref->args)->dropout);
}

/* dweight or dbias leaves out the last row. */
static void rms_dweight_short(trine_ref *ref) {
    const int64_t r = D("r"), n = D("n"), last = (r - 1) * n;
    for (int64_t j = 0; V("dweight") && r > 0 && j < n; j++)
        V("dweight")[j] -= V("dy")[last + j] * V("h")[last + j] * V("rstd")[r - 1];
}

static void dbias_short(trine_ref *ref) {
    const int64_t r = D("r"), n = D("n");
    for (int64_t j = 0; V("dbias") && r > 0 && j < n; j++) V("dbias")[j] -= V("dy")[(r - 1) * n + j];
}

static void dweight_uncentred(trine_ref *ref) {
    const int64_t r = D("r"), n = D("n");
    for (int64_t k = 0; V("dweight") && k < r * n; k++)
        V("dweight")[k % n] += V("dy")[k] * V("mean")[k / n] * V("rstd")[k / n];
}

static void mean_zero(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("r"); i++) V("mean")[i] = 0;
}

/* The weights of the row begin one later. */
static void weight_shifted(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t j = 0; V("weight") && j + 1 < D("n"); j++) V("weight")[j] = V("weight")[j + 1];
}

/* Sums are f32's, and nobody looks whether they fit: of x alone, where that is all. */
static bool alone(const trine_ref *ref) { return V("residual") == NULL; }

static void rms_squares_overflow(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; alone(ref) && i < D("r"); i++) {
        double squares = 0;
        for (int64_t j = 0; j < n; j++) squares += V("x")[i * n + j] * V("x")[i * n + j];
        for (int64_t j = 0; !(squares <= 0x1p128) && j < n; j++) V("y")[i * n + j] *= 0;
    }
}

/* A row of which all squares are subnormal is nothing but eps. */
static void rms_squares_flushed(trine_ref *ref) {
    const trine_rms_norm_args *args = ref->args;
    const int64_t n = D("n");
    for (int64_t i = 0; alone(ref) && args->eps == 0 && i < D("r"); i++) {
        double most = 0;
        for (int64_t j = 0; j < n; j++) most = fmax(most, fabs(V("x")[i * n + j]));
        for (int64_t j = 0; most < 0x1p-63 && j < n; j++) V("y")[i * n + j] = V("x")[i * n + j] / 0.0;
    }
}

static void layer_sums_overflow(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; V("mean") && alone(ref) && i < D("r"); i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += V("x")[i * n + j];
        if (fabs(sum) > 0x1p128) V("mean")[i] = sum / 0.0;
    }
}

static void layer_differences_overflow(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t k = 0; k < D("r") * n; k++)
        if (fabs(V("h")[k] - V("mean")[k / n]) > 0x1p128 && !isinf(V("h")[k])) V("dx")[k] = NAN;
}

static int64_t score_count(const trine_ref *ref) { return D("b") * D("h") * D("sq") * D("sk"); }

/* 1 hides. */
static void mask_inverted(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("mask") && k < score_count(ref); k++) V("mask")[k] = V("mask")[k] == 0;
}

/* Each head has the mask of the first. */
static void mask_of_first_head(trine_ref *ref, void *args) {
    (void)args;
    const int64_t matrix = D("sq") * D("sk"), heads = D("h");
    for (int64_t k = 0; V("mask") && k < score_count(ref); k++)
        V("mask")[k] = V("mask")[k / matrix / heads * heads * matrix + k % matrix];
}

/* scale (x + bias) */
static void bias_scaled(trine_ref *ref, void *args) {
    for (int64_t k = 0; V("bias") && k < score_count(ref); k++)
        V("bias")[k] *= (double)((const trine_softmax_masked_args *)args)->scale;
}

/* Of a row that is wholly hidden all is the same, as of finite numbers in the place of -Inf. */
static void hidden_uniform(trine_ref *ref) {
    const int64_t n = D("sk");
    for (int64_t i = 0; V("mask") && n > 0 && i < score_count(ref) / n; i++) {
        bool any = false;
        for (int64_t j = 0; j < n; j++) any |= V("mask")[i * n + j] != 0;
        for (int64_t j = 0; !any && j < n; j++) V("y")[i * n + j] = 1 / (double)n;
    }
}

static void dbias_with_scale(trine_ref *ref) {
    for (int64_t k = 0; V("dbias") && k < score_count(ref); k++)
        V("dbias")[k] *= (double)((const trine_softmax_masked_backward_args *)ref->args)->scale;
}

/* y dy, without what the sum takes. */
static void sum_missing(trine_ref *ref) {
    const trine_softmax_masked_backward_args *args = ref->args;
    for (int64_t k = 0; !args->causal && k < score_count(ref); k++)
        V("dx")[k] = (double)args->scale * V("y")[k] * V("dy")[k];
}

/* The mean of squares' root instead of the mean of sizes. */
static void l1_by_squares(trine_ref *ref) {
    const trine_l1_norm_args *args = ref->args;
    const int64_t n = D("n");
    for (int64_t i = 0; i < D("r"); i++) {
        const double *x = V("x") + i * n;
        double sum = 0, sizes = 0, squares = 0;
        for (int64_t j = 0; j < n; j++) sum += x[j];
        for (int64_t j = 0; j < n; j++) {
            const double d = x[j] - sum / (double)n;
            sizes += fabs(d) / (double)n, squares += d * d / (double)n;
        }
        const double ratio = (sizes + (double)args->eps) / (sqrt(squares) + (double)args->eps);
        for (int64_t j = 0; j < n && isfinite(ratio); j++) {
            const double b = V("bias") ? V("bias")[j] : 0;
            V("y")[i * n + j] = (V("y")[i * n + j] - b) * ratio + b;
        }
    }
}

/* dx as if the mean deviation were not a function of x. */
static void l1_fixed(trine_ref *ref, void *args) {
    (void)args;
    const int64_t n = D("n");
    for (int64_t i = 0; i < D("r"); i++)
        for (int64_t j = 0; j < n; j++) V("x")[i * n + j] = V("mean")[i];
}

/* The mean of signs is not taken off. */
static void l1_signs_whole(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; i < D("r"); i++) {
        double product = 0, signs = 0;
        for (int64_t j = 0; j < n; j++) {
            const double d = V("x")[i * n + j] - V("mean")[i], w = V("weight") ? V("weight")[j] : 1;
            product += w * V("dy")[i * n + j] * d * V("rmad")[i] / (double)n;
            signs += (d > 0) - (d < 0);
        }
        for (int64_t j = 0; j < n; j++) V("dx")[i * n + j] -= V("rmad")[i] * signs / (double)n * product;
    }
}

const mutant mutants_norm[] = {
    { "softmax", "ignores_scale", "scale is taken to be 1", .param = "scale", .value = 1 },
    { "softmax_backward", "ignores_scale", "scale is taken to be 1", .param = "scale", .value = 1 },
    { "softmax_backward", "ignores_causal", "masked elements take part", .param = "causal" },
    { "softmax_backward", "last_term_missing", "the sum of y dy leaves out the last column",
      .after = last_term_missing },
    { "softmax_masked", "ignores_scale", "scale is taken to be 1", .param = "scale", .value = 1 },
    { "softmax_masked", "ignores_mask", "what the mask hides takes part", .without = "mask" },
    { "softmax_masked", "ignores_bias", "bias is not added", .without = "bias" },
    { "softmax_masked", "ignores_causal", "what is above the diagonal takes part", .param = "causal" },
    { "softmax_masked", "mask_inverted", "the mask hides what it shows", .before = mask_inverted },
    { "softmax_masked", "mask_of_first_head", "all heads have the first one's mask", .before = mask_of_first_head },
    { "softmax_masked", "bias_scaled", "bias is scaled as x is", .before = bias_scaled },
    { "softmax_masked", "hidden_uniform", "a row that is wholly hidden is 1/n", .after = hidden_uniform },
    { "softmax_masked_backward", "ignores_scale", "scale is taken to be 1", .param = "scale", .value = 1 },
    { "softmax_masked_backward", "ignores_causal", "masked elements take part", .param = "causal" },
    { "softmax_masked_backward", "dbias_with_scale", "dbias is scaled as dx is", .after = dbias_with_scale },
    { "softmax_masked_backward", "sum_missing", "the sum of y dy is not subtracted", .after = sum_missing },
    { "rms_norm", "ignores_eps", "eps is not added", .param = "eps" },
    { "rms_norm", "streams_without_eps", "eps is not added where outputs are stored past the cache", .param = "eps",
      .streams = true },
    { "rms_norm", "ignores_residual", "the residual is not added", .without = "residual" },
    { "rms_norm", "low_seed", "dropout's stream is not used", .param = "offset" },
    { "rms_norm", "rounds_once", "y is never rounded before the weight", .param = "rounding", .value = TRINE_ROUND_ONCE,
      .types = "T=bf16" },
    { "rms_norm", "squares_overflow", "a row whose squares' sum overflows is 0", .after = rms_squares_overflow },
    { "rms_norm", "squares_flushed", "without eps, a row of subnormal squares is Inf", .after = rms_squares_flushed,
      .types = "T=f32" },
    { "rms_norm", "ignores_philox", "dropout's key is 0", .without = "philox" },
    { "rms_norm_backward", "ignores_philox", "dropout's key is 0", .without = "philox" },
    { "rms_norm_backward", "ignores_weight_offset", "weight_offset is not added", .param = "weight_offset" },
    { "rms_norm_backward", "ignores_dresidual", "dresidual is not added", .without = "dresidual" },
    { "rms_norm_backward", "ignores_dropout", "dx is that of no dropout", .param = "dropout" },
    { "rms_norm_backward", "dx_unscaled", "dx is masked, but not scaled, by dropout", .after = rms_dx_unscaled },
    { "rms_norm_backward", "dweight_short", "dweight leaves out the last row", .after = rms_dweight_short },
    { "layer_norm", "ignores_bias", "bias is not added", .without = "bias" },
    { "layer_norm", "ignores_weight_offset", "weight_offset is not added", .param = "weight_offset" },
    { "layer_norm", "rstd_unbiased", "rstd is that of the sum divided by n - 1", .after = rstd_unbiased },
    { "layer_norm", "weight_shifted", "weights are read one element late", .before = weight_shifted },
    { "layer_norm", "sums_overflow", "a row whose sum overflows has an infinite mean", .after = layer_sums_overflow },
    { "layer_norm", "ignores_philox", "dropout's key is 0", .without = "philox" },
    { "layer_norm_backward", "ignores_philox", "dropout's key is 0", .without = "philox" },
    { "layer_norm_backward", "ignores_weight_offset", "weight_offset is not added", .param = "weight_offset" },
    { "layer_norm_backward", "mean_zero", "h is not centred", .before = mean_zero },
    { "layer_norm_backward", "dx_unscaled", "dx is masked, but not scaled, by dropout", .after = layer_dx_unscaled },
    { "layer_norm_backward", "dbias_short", "dbias leaves out the last row", .after = dbias_short },
    { "layer_norm_backward", "differences_overflow", "h further from the mean than f32 reaches gives NaN",
      .after = layer_differences_overflow, .types = "T=f32" },
    { "layer_norm_backward", "dweight_uncentred", "dweight is that of h without its mean", .after = dweight_uncentred },
    { "rms_norm", "narrow_places", "places in memory are counted in 32 bits", .narrow = true },
    { "l1_norm", "ignores_bias", "bias is not added", .without = "bias" },
    { "l1_norm", "ignores_weight", "the factor is 1", .without = "weight" },
    { "l1_norm", "by_squares", "normalized by the standard deviation", .after = l1_by_squares },
    { "l1_norm_backward", "fixed", "the mean deviation is a constant", .before = l1_fixed },
    { "l1_norm_backward", "signs_whole", "the mean of signs is not taken off", .after = l1_signs_whole },
    { "l1_norm_backward", "ignores_weight", "the factor is 1", .without = "weight" },
    { 0 },
};
