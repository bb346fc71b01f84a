/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of routing: the choice of experts, the sort by them, and the sums of what they made. */
#include "mutant.h"

#include <math.h>

/* Of logits that are equal the later expert is taken for the larger. */
static void ties_turned(trine_ref *ref, void *args) {
    (void)args;
    const int64_t e = D("e");
    for (int64_t i = 0; i < D("t"); i++) {
        double *x = V("logits") + i * e;
        for (int64_t j = e - 1; j > 0; j--)
            if (x[j] == x[0]) {
                x[j] = nextafter(x[j], INFINITY);
                break;
            }
    }
}

/* The bias is a part of the weights. */
static void bias_in_weights(trine_ref *ref) {
    const int64_t k = D("k");
    for (int64_t i = 0; V("bias") && i < D("t") * k; i++)
        if (V("experts")[i] >= 0) V("weights")[i] += V("bias")[(int64_t)V("experts")[i]];
}

/* One of the best groups is lost. */
static void group_less(trine_ref *ref, void *args) {
    (void)ref;
    trine_moe_route_args *a = args;
    if (a->groups_kept > 1) a->groups_kept--;
}

/* Numbers of slots run along experts, not along tokens. */
static void slots_turned(trine_ref *ref) {
    const int64_t t = D("t"), k = D("k");
    for (int64_t i = 0; i < D("m") * D("b"); i++) {
        const int64_t slot = (int64_t)V("rows")[i];
        if (slot >= 0) V("rows")[i] = (double)(slot % k * t + slot / k);
    }
}

/* The last slot of all is not seen. */
static void last_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t slots = D("t") * D("k");
    if (slots > 0) V("experts")[slots - 1] = -1;
}

/* An expert that is out of range is taken for the last. */
static void clamped(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("t") * D("k"); i++)
        if (V("experts")[i] >= (double)D("e") && D("e") > 0) V("experts")[i] = (double)(D("e") - 1);
}

static void narrow_experts(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("t") * D("k"); i++) V("experts")[i] = (double)(int32_t)(int64_t)V("experts")[i];
}

/* A slot without a place counts the first row. */
static void first_for_none(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("t") * D("k"); i++)
        if (V("places")[i] < 0) V("places")[i] = 0;
}

/* Of two slots at the same place one counts. */
static void once_each(trine_ref *ref, void *args) {
    (void)args;
    const int64_t k = D("k");
    for (int64_t i = 0; i < D("t") * k; i++)
        if (i % k > 0 && V("places")[i] == V("places")[i - 1]) V("places")[i] = -1;
}

/* The gradient of a weight that is made to sum to 1 does not go to the other experts. */
static void alone(trine_ref *ref) {
    const trine_moe_route_backward_args *args = ref->args;
    const int64_t k = D("k"), e = D("e");
    for (int64_t i = 0; args->renormalise && !V("dscores") && k == 2 && i < D("t"); i++) {
        const int64_t a = (int64_t)V("experts")[i * k], b = (int64_t)V("experts")[i * k + 1];
        if (a >= 0 && a < e && b >= 0 && b < e && a != b) V("dlogits")[i * e + b] = 0;
    }
}

/* Of sigmoids the derivative is taken for that of a softmax, s itself. */
static void other_gate(trine_ref *ref, void *args) {
    (void)ref;
    trine_moe_route_backward_args *a = args;
    a->gate = TRINE_GATE_SOFTMAX;
}

/* A slot without an expert counts for the first. */
static void first_expert(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("t") * D("k"); i++)
        if (V("experts")[i] < 0) V("experts")[i] = 0;
}

/* Of slots that name one place the last counts. */
static void last_slot(trine_ref *ref, void *args) {
    (void)args;
    double *places = V("places");
    for (int64_t i = 0; i < D("t") * D("k"); i++)
        for (int64_t j = 0; j < i; j++)
            if (places[j] == places[i]) places[j] = -1;
}

/* A place that no slot names keeps what its row was. */
static void not_cleared(trine_ref *ref) {
    for (int64_t q = 0; q < D("p"); q++) {
        bool named = false;
        for (int64_t i = 0; i < D("t") * D("k"); i++) named |= V("places")[i] == (double)q;
        for (int64_t j = 0; !named && j < D("n"); j++) V("dx")[q * D("n") + j] = V("x")[q * D("n") + j];
    }
}

/* Gate and up are exchanged. */
static void halves_exchanged(trine_ref *ref, void *args) {
    (void)args;
    const int64_t f = D("f"), h = D("h");
    for (int64_t j = 0; j < D("e"); j++)
        for (int64_t i = 0; i < f * h; i++) {
            double *gate = V("w_gate_up") + j * 2 * f * h + i, *up = gate + f * h, swap = *gate;
            *gate = *up, *up = swap;
        }
}

const mutant mutants_moe[] = {
    { "moe_route", "ignores_bias", "the bias steers nothing", .without = "bias" },
    { "moe_route", "ignores_gate", "softmax in any case", .param = "gate" },
    { "moe_route", "ignores_renormalise", "weights are the scores", .param = "renormalise" },
    { "moe_route", "ignores_scale", "weights are not scaled", .param = "scale", .value = 1 },
    { "moe_route", "ignores_groups", "experts are chosen from all groups", .param = "groups" },
    { "moe_route", "group_less", "a group less is kept", .before = group_less },
    { "moe_route", "bias_in_weights", "the bias is added to the weights", .after = bias_in_weights },
    { "moe_route", "ties_turned", "of equals a later one comes first", .before = ties_turned },
    { "moe_align", "ignores_capacity", "no slot is dropped", .param = "capacity" },
    { "moe_align", "slots_turned", "slots are numbered the other way round", .after = slots_turned },
    { "moe_align", "last_lost", "the last slot has no expert", .before = last_lost },
    { "moe_align", "clamped", "an expert beyond the last is the last", .before = clamped },
    { "moe_align", "narrow_experts", "only the low 32 bits of an expert are read", .before = narrow_experts },
    { "moe_combine", "ignores_weights", "all weights are 1", .without = "weights" },
    { "moe_combine", "first_for_none", "a slot that was dropped counts row 0", .before = first_for_none },
    { "moe_combine", "once_each", "neighbours with the same place count once", .before = once_each },
    { "moe_route_backward", "ignores_dscores", "scores have no gradient", .without = "dscores" },
    { "moe_route_backward", "ignores_renormalise", "weights are the scores", .param = "renormalise" },
    { "moe_route_backward", "ignores_scale", "weights are not scaled", .param = "scale", .value = 1 },
    { "moe_route_backward", "other_gate", "softmax in any case", .before = other_gate },
    { "moe_route_backward", "alone", "a weight's gradient is its own expert's alone", .after = alone },
    { "moe_route_backward", "first_expert", "a slot without an expert counts for the first", .before = first_expert },
    { "moe_combine_backward", "ignores_weights", "all weights are 1", .without = "weights" },
    { "moe_combine_backward", "last_slot", "of slots at one place the last counts", .before = last_slot },
    { "moe_combine_backward", "not_cleared", "a place without a slot has its row of x", .after = not_cleared },
    { "moe_combine_backward", "dweights_doubled", "weights have twice their gradient", .output = "dweights",
      .factor = 2 },
    { "moe_mlp", "ignores_shared", "what all tokens go to is not added", .without = "shared" },
    { "moe_mlp", "ignores_gated", "SwiGLU in any case", .param = "gated" },
    { "moe_mlp", "ignores_bias_gate_up", "gate and up have no bias", .without = "bias_gate_up" },
    { "moe_mlp", "ignores_bias_down", "experts have no bias at their end", .without = "bias_down" },
    { "moe_mlp", "halves_exchanged", "up goes through the gate", .before = halves_exchanged },
    { "moe_mlp", "first_expert", "a slot without an expert goes to the first", .before = first_expert },
    { 0 },
};
