/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the losses and of their gradients. */
#include "mutant.h"

typedef trine_cross_entropy_args forward;
typedef trine_cross_entropy_backward_args backward;

static double ignored(bool set, int64_t index) { return set ? (double)index : -100; }

static void ignored_counts(trine_ref *ref, double label) {
    for (int64_t i = 0; i < D("r"); i++)
        if (V("labels")[i] == label) V("labels")[i] = 0;
}

/* Rows with the ignored label count as of class 0. */
static void forward_ignored_counts(trine_ref *ref, void *args) {
    ignored_counts(ref, ignored(((forward *)args)->ignore_index_set, ((forward *)args)->ignore_index));
    ((forward *)args)->ignore_index = -9, ((forward *)args)->ignore_index_set = 1;
}

static void backward_ignored_counts(trine_ref *ref, void *args) {
    ignored_counts(ref, ignored(((backward *)args)->ignore_index_set, ((backward *)args)->ignore_index));
    ((backward *)args)->ignore_index = -9, ((backward *)args)->ignore_index_set = 1;
}

/* e is spread over the classes but the target's, which keeps 1 - e: as if e were larger. */
static float over_others(trine_ref *ref, float e) { return D("v") > 1 ? e * (float)D("v") / (float)(D("v") - 1) : e; }

static void forward_over_others(trine_ref *ref, void *args) {
    ((forward *)args)->label_smoothing = over_others(ref, ((forward *)args)->label_smoothing);
}

static void backward_over_others(trine_ref *ref, void *args) {
    ((backward *)args)->label_smoothing = over_others(ref, ((backward *)args)->label_smoothing);
}

static void last_label_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t v = D("v");
    for (int64_t i = 0; v >= 4096 && i < D("r"); i++)
        if (V("labels")[i] == (double)(v - 1)) V("labels")[i] = (double)(v - 2);
}

static void dloss_of_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("dloss") && i < D("r"); i++) V("dloss")[i] = V("dloss")[0];
}

static void divide(double *x, int64_t count, double by) {
    for (int64_t k = 0; x && by != 0 && k < count; k++) x[k] /= by;
}

static void forward_unscaled(trine_ref *ref) {
    divide(V("dlogits"), D("r") * D("v"), (double)((const forward *)ref->args)->logit_scale);
}

static void backward_unscaled(trine_ref *ref) {
    divide(V("dlogits"), D("r") * D("v"), (double)((const backward *)ref->args)->logit_scale);
}

/* Class weights count by their mean. */
static void weights_of_mean_1(trine_ref *ref, void *args) {
    (void)args;
    double *weights = V("class_weight"), sum = 0;
    for (int64_t k = 0; weights && k < D("v"); k++) sum += weights[k];
    divide(weights, D("v"), sum / (double)D("v"));
}

static void forward_z_loss_weighted(trine_ref *ref) {
    const forward *args = ref->args;
    const int64_t index = args->ignore_index_set ? args->ignore_index : -100;
    for (int64_t i = 0; V("class_weight") && V("lse") && i < D("r"); i++) {
        const double lse = V("lse")[i], square = args->z_loss > 0 ? args->z_loss * lse * lse : 0;
        const int64_t label = (int64_t)V("labels")[i];
        if (label != index) V("loss")[i] += (V("class_weight")[label] - 1) * square;
    }
}

/* The weight of the label is that of the whole smoothed target. */
static void label_weight_for_all(trine_ref *ref) {
    const double e = ((const backward *)ref->args)->label_smoothing, *weights = V("class_weight");
    for (int64_t i = 0; weights && i < D("r"); i++)
        for (int64_t k = 0, label = (int64_t)V("labels")[i]; k < D("v") && label >= 0; k++)
            V("dlogits")[i * D("v") + k] += e / (double)D("v") * (weights[label] - weights[k]) * V("dloss")[i];
}

static void f16_by_bf16(trine_ref *ref) {
    double *x = V("dlogits");
    for (int64_t k = 0; x && trine_ref_type(ref, "G") == TRINE_F16 && k < D("r") * D("v"); k++)
        x[k] = trine_round(x[k], TRINE_BF16, false);
}

typedef trine_linear_cross_entropy_args head;
typedef trine_linear_cross_entropy_backward_args head_backward;

static void ignored_as_first(trine_ref *ref, int32_t *set, int64_t *index) {
    for (int64_t i = 0; i < D("t"); i++)
        if (V("labels")[i] == ignored(*set, *index)) V("labels")[i] = 0;
    *index = -9, *set = 1;
}

static void head_ignored_counts(trine_ref *ref, void *args) {
    head *a = args;
    ignored_as_first(ref, &a->ignore_index_set, &a->ignore_index);
}

static void head_backward_ignored_counts(trine_ref *ref, void *args) {
    head_backward *a = args;
    ignored_as_first(ref, &a->ignore_index_set, &a->ignore_index);
}

static void head_dloss_of_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("dloss") && i < D("t"); i++) V("dloss")[i] = V("dloss")[0];
}

static void head_scale_lost(trine_ref *ref) {
    divide(V("dx"), D("t") * D("k"), (double)((const head *)ref->args)->logit_scale);
}

/* What comes after the first chunk takes the place of the sum. */
static void last_chunk_alone(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("dweight") && D("t") > 256 && i < (D("t") + 1) / 2 * D("k"); i++) V("x")[i] = 0;
}

/* Input and target change places. */
static void divergence_turned(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("r") * D("v"); k++) {
        const double x = V("input")[k];
        V("input")[k] = V("target")[k], V("target")[k] = x;
    }
}

/* beta is that of input. */
static void beta_turned(trine_ref *ref, void *args) {
    float *beta = (float *)((char *)args + ref->plan->spec->params[trine_plan_find_param(ref->plan, "beta")].offset);
    *beta = 1 - *beta;
}

/* The last class is left out. */
static void last_class_lost(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0, v = D("v"); v > 1 && i < D("r"); i++) V("target")[i * v + v - 1] = V("target")[i * v + v - 2];
}

/* "batchmean" and "mean" by elements are confused. */
static void mean_of_classes(trine_ref *ref) { divide(V("loss"), D("r"), (double)D("v")); }

static void weight_of_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("weight") && i < D("r"); i++) V("weight")[i] = V("weight")[0];
}

static void clips_turned(trine_ref *ref, void *args) {
    const trine_plan *plan = ref->plan;
    float *low = (float *)((char *)args + plan->spec->params[trine_plan_find_param(plan, "clip_low")].offset),
          *high = (float *)((char *)args + plan->spec->params[trine_plan_find_param(plan, "clip_high")].offset);
    const float x = *low;
    *low = *high, *high = x;
}

/* The divergence's direction: d is turned round. */
static void reference_turned(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = D("b") * D("t");
    for (int64_t k = 0; V("ref_logp") && k < count; k++) V("ref_logp")[k] = 2 * V("logp")[k] - V("ref_logp")[k];
}

static void returns_of_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("returns") && i < D("s"); i++) V("returns")[i] = V("returns")[0];
}

const mutant mutants_loss[] = {
    { "cross_entropy", "ignored_counts", "rows to leave out count as of class 0", .before = forward_ignored_counts },
    { "cross_entropy", "over_others", "smoothing is spread over v - 1 classes", .before = forward_over_others },
    { "cross_entropy", "ignores_z_loss", "z_loss is not added", .param = "z_loss" },
    { "cross_entropy", "dloss_of_first", "all rows have the first one's dloss", .before = dloss_of_first },
    { "cross_entropy", "gradient_unscaled", "dlogits lacks the factor logit_scale", .after = forward_unscaled },
    { "cross_entropy", "last_label", "the last of 4096 classes and more is taken for the one before",
      .before = last_label_lost },
    { "cross_entropy", "ignores_class_weight", "classes have no weights", .without = "class_weight" },
    { "cross_entropy", "weights_of_mean_1", "class weights count by their mean", .before = weights_of_mean_1 },
    { "cross_entropy", "z_loss_weighted", "z_loss is weighted as well", .after = forward_z_loss_weighted },
    { "cross_entropy", "f16_by_bf16", "gradients in f16 are rounded to bf16 first", .after = f16_by_bf16 },
    { "cross_entropy", "narrow_labels", "only the low 32 bits of a label are read", .ids = "labels" },
    { "cross_entropy_backward", "ignored_counts", "rows to leave out count as of class 0",
      .before = backward_ignored_counts },
    { "cross_entropy_backward", "over_others", "smoothing is spread over v - 1 classes",
      .before = backward_over_others },
    { "cross_entropy_backward", "ignores_z_loss", "z_loss has no gradient", .param = "z_loss" },
    { "cross_entropy_backward", "unscaled", "dlogits lacks the factor logit_scale", .after = backward_unscaled },
    { "cross_entropy_backward", "last_label", "the last of 4096 classes and more is taken for the one before",
      .before = last_label_lost },
    { "cross_entropy_backward", "ignores_class_weight", "classes have no weights", .without = "class_weight" },
    { "cross_entropy_backward", "label_weight_for_all", "the smoothed target has the weight of the label",
      .after = label_weight_for_all },
    { "cross_entropy_backward", "f16_by_bf16", "gradients in f16 are rounded to bf16 first", .after = f16_by_bf16 },
    { "cross_entropy_backward", "narrow_labels", "only the low 32 bits of a label are read", .ids = "labels" },
    { "linear_cross_entropy", "ignored_counts", "tokens to leave out count as of class 0",
      .before = head_ignored_counts },
    { "linear_cross_entropy", "ignores_bias", "the bias is not added", .without = "bias" },
    { "linear_cross_entropy", "ignores_z_loss", "z_loss is not added", .param = "z_loss" },
    { "linear_cross_entropy", "ignores_class_weight", "classes have no weights", .without = "class_weight" },
    { "linear_cross_entropy", "weights_of_mean_1", "class weights count by their mean", .before = weights_of_mean_1 },
    { "linear_cross_entropy", "ignores_smoothing", "the target is not smoothed", .param = "label_smoothing" },
    { "linear_cross_entropy", "dloss_of_first", "all tokens have the first one's dloss",
      .before = head_dloss_of_first },
    { "linear_cross_entropy", "dx_unscaled", "dx lacks the factor logit_scale", .after = head_scale_lost },
    { "linear_cross_entropy", "dbias_doubled", "dbias is added twice", .output = "dbias", .factor = 2 },
    { "linear_cross_entropy", "last_chunk_alone", "chunks after the first are not added to it",
      .before = last_chunk_alone, .edge = "t", .size = 256 },
    { "linear_cross_entropy", "narrow_labels", "only the low 32 bits of a label are read", .ids = "labels" },
    { "linear_cross_entropy_backward", "ignored_counts", "tokens to leave out count as of class 0",
      .before = head_backward_ignored_counts },
    { "linear_cross_entropy_backward", "ignores_bias", "the bias is not added", .without = "bias" },
    { "linear_cross_entropy_backward", "ignores_class_weight", "classes have no weights", .without = "class_weight" },
    { "linear_cross_entropy_backward", "ignores_z_loss", "z_loss has no gradient", .param = "z_loss" },
    { "linear_cross_entropy_backward", "dweight_slightly", "dweight is off by a thousandth", .output = "dweight",
      .factor = 1.001, .types = "T=f32" },
    { "linear_cross_entropy_backward", "narrow_labels", "only the low 32 bits of a label are read", .ids = "labels" },
    { "kl_div", "turned", "input and target change places", .before = divergence_turned },
    { "kl_div", "ignores_weight", "rows have no weights", .without = "weight" },
    { "kl_div", "weight_of_first", "all rows have the first one's weight", .before = weight_of_first },
    { "kl_div", "ignores_scale", "logits are not scaled", .param = "logit_scale", .value = 1 },
    { "kl_div", "not_logits", "logits are taken for log-probabilities", .param = "logits" },
    { "kl_div", "not_probabilities", "probabilities are taken for their logarithms", .param = "target_probabilities" },
    { "kl_div", "last_class_lost", "the last class is the one before", .before = last_class_lost },
    { "kl_div", "mean_of_classes", "the mean over the classes", .after = mean_of_classes },
    { "kl_div_backward", "turned", "input and target change places", .before = divergence_turned },
    { "kl_div_backward", "ignores_weight", "rows have no weights", .without = "weight" },
    { "kl_div_backward", "weight_of_first", "all rows have the first one's weight", .before = weight_of_first },
    { "kl_div_backward", "ignores_scale", "logits are not scaled", .param = "logit_scale", .value = 1 },
    { "kl_div_backward", "not_logits", "logits are taken for log-probabilities", .param = "logits" },
    { "kl_div_backward", "not_probabilities", "probabilities are taken for their logarithms",
      .param = "target_probabilities" },
    { "kl_div_backward", "last_class_lost", "the last class is the one before", .before = last_class_lost },
    { "jsd", "turned", "input and target change places", .before = divergence_turned },
    { "jsd", "ignores_weight", "rows have no weights", .without = "weight" },
    { "jsd", "weight_of_first", "all rows have the first one's weight", .before = weight_of_first },
    { "jsd", "ignores_scale", "logits are not scaled", .param = "logit_scale", .value = 1 },
    { "jsd", "not_logits", "logits are taken for log-probabilities", .param = "logits" },
    { "jsd", "beta_turned", "beta is what input counts", .before = beta_turned },
    { "jsd", "last_class_lost", "the last class is the one before", .before = last_class_lost },
    { "jsd", "mean_of_classes", "the mean over the classes", .after = mean_of_classes },
    { "jsd_backward", "turned", "input and target change places", .before = divergence_turned },
    { "jsd_backward", "ignores_weight", "rows have no weights", .without = "weight" },
    { "jsd_backward", "weight_of_first", "all rows have the first one's weight", .before = weight_of_first },
    { "jsd_backward", "ignores_scale", "logits are not scaled", .param = "logit_scale", .value = 1 },
    { "jsd_backward", "not_logits", "logits are taken for log-probabilities", .param = "logits" },
    { "jsd_backward", "beta_turned", "beta is what input counts", .before = beta_turned },
    { "jsd_backward", "last_class_lost", "the last class is the one before", .before = last_class_lost },
    { "policy_loss", "ignores_mask", "all tokens count", .without = "mask" },
    { "policy_loss", "ignores_old", "the ratio is 1", .without = "old_logp" },
    { "policy_loss", "ignores_kl", "the divergence does not count", .param = "kl_weight" },
    { "policy_loss", "clips_turned", "the two clips change places", .before = clips_turned },
    { "policy_loss", "reference_turned", "the divergence is the other one", .before = reference_turned },
    { "policy_loss", "returns_of_first", "all sequences have the first one's advantage", .before = returns_of_first },
    { "policy_loss", "not_sequence_ratio", "each token has its ratio", .param = "sequence_ratio" },
    { "policy_loss", "sums", "sums in the place of means", .param = "mean" },
    { "policy_loss_backward", "ignores_mask", "all tokens count", .without = "mask" },
    { "policy_loss_backward", "ignores_old", "the ratio is 1", .without = "old_logp" },
    { "policy_loss_backward", "ignores_kl", "the divergence does not count", .param = "kl_weight" },
    { "policy_loss_backward", "clips_turned", "the two clips change places", .before = clips_turned },
    { "policy_loss_backward", "reference_turned", "the divergence is the other one", .before = reference_turned },
    { "policy_loss_backward", "returns_of_first", "all sequences have the first one's advantage",
      .before = returns_of_first },
    { "policy_loss_backward", "not_sequence_ratio", "each token has its ratio", .param = "sequence_ratio" },
    { "policy_loss_backward", "sums", "sums in the place of means", .param = "mean" },
    { 0 },
};
