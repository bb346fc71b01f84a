/* SPDX-License-Identifier: Apache-2.0 */
/* kl_div_backward: the table and the reference. */
#include <trine/loss.h>

#include "divergence.h"

#define ARGS trine_kl_div_backward_args

/* The sum of p, to v + 8 roundings; of logits it is 1. */
static near probability_sum(const near_row *target, int64_t v) {
    near_sum sum = { 0 };
    if (target->logits) return near_of(1);
    for (int64_t k = 0; k < v; k++) {
        const near_class p = near_class_of(target, k);
        near_add(&sum, p.p);
    }
    return near_sum_of(&sum, v + 8);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const double scale = args->logits ? args->logit_scale : 1;
    for (int64_t i = 0; i < r; i++) {
        const near_row input = near_row_of(trine_ref_value(ref, "input") + i * v, v, args->logits, false, scale),
                       target = near_row_of(trine_ref_value(ref, "target") + i * v, v, args->logits,
                                            args->target_probabilities, scale);
        const near total = args->logits ? probability_sum(&target, v) : near_of(0);
        for (int64_t k = 0; k < v; k++) {
            const near_class q = near_class_of(&input, k), p = near_class_of(&target, k);
            const near up = args->logits ? near_part(q.p, total) : near_of(0);
            near g = { up.of - p.p.of, up.off + p.p.off };
            if (isnan(g.of) && isinf(up.of)) g.off = INFINITY;
            if (near_nan(p.p)) g = p.p;
            put_gradient(ref, i, i * v + k, scale, g, trine_finite_abs(up.of) + trine_finite_abs(p.p.of));
        }
    }
}

const trine_spec trine_spec_kl_div_backward = {
    SPEC(kl_div_backward),
    .summary = "Gradient of kl_div with respect to input",
    .formula = "dinput[i,k] = -dloss[i] weight[i] p[i,k], with logits dloss[i] weight[i] logit_scale (q[i,k] sum_j "
               "p[i,j] - p[i,k]), p and q as in kl_div; 0 where weight is 0",
    .source = "the derivative of kl_div's formula",
    .tensors = { TENSOR(input, IN, "T", "r v"), TENSOR(target, IN, "T", "r v", .fill = "positive"),
                 TENSOR(weight, IN | OPTIONAL, "f32", "r"), TENSOR(dloss, IN, "f32", "r"),
                 TENSOR(dinput, OUT, "T", "r v", .terms = "8") },
    .params = { PARAM(logits, BOOL, .values = "0 1", .doc = "input and target are logits"),
                PARAM(target_probabilities, BOOL, .values = "0 1", .doc = "target is probabilities"),
                PARAM(logit_scale, F32, .values = "1 0.7 2.5", .fallback = 1, .min = 0x1p-20, .max = 0x1p20,
                      .doc = "multiplies logits: one over the temperature") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dinput=input", "dinput=target" },
    .flops = "12*r*v",
    .independent = "r",
    .sizes = DIVERGENCE_SIZES,
    .cases = { "llama2 logits: T=bf16 r=1024 v=32000 logits=1", "llama3 logits: T=bf16 r=256 v=128256 logits=1",
               "llama2 f32: T=f32 r=512 v=32000", "soft targets: T=bf16 r=1024 v=32000 logits=1 target_probabilities=1",
               "small: T=f32 r=65536 v=256 logits=1" },
    .reference = reference,
};
