/* SPDX-License-Identifier: Apache-2.0 */
/* kl_div: the table and the reference. */
#include <trine/loss.h>

#include "divergence.h"

#define ARGS trine_kl_div_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    for (int64_t i = 0; i < r; i++) {
        const near_row input = near_row_of(trine_ref_value(ref, "input") + i * v, v, args->logits, false,
                                           args->logit_scale),
                       target = near_row_of(trine_ref_value(ref, "target") + i * v, v, args->logits,
                                            args->target_probabilities, args->logit_scale);
        near_sum sum = { 0 };
        for (int64_t k = 0; k < v; k++) {
            const near_class q = near_class_of(&input, k), p = near_class_of(&target, k);
            near_add(&sum, kl_term(&p, &q));
        }
        put_loss(ref, i, &sum);
    }
}

const trine_spec trine_spec_kl_div = {
    SPEC(kl_div),
    .summary = "Kullback-Leibler divergence of rows, from log-probabilities or logits",
    .formula = "loss[i] = weight[i] sum_k p[i,k] (log p[i,k] - log q[i,k]), log q = input and log p = target, with "
               "logits log_softmax(logit_scale x) of both, with target_probabilities p = target; a term with p = 0 is "
               "0; 0 where weight is 0",
    .source =
        "Kullback and Leibler 1951; Hinton et al. 2015, section 2, as torch.nn.functional.kl_div and Liger-Kernel "
        "have it",
    .tensors = { TENSOR(input, IN, "T", "r v"), TENSOR(target, IN, "T", "r v", .fill = "positive"),
                 TENSOR(weight, IN | OPTIONAL, "f32", "r"), TENSOR(loss, OUT, "f32", "r", .terms = "v + 32") },
    .params = { PARAM(logits, BOOL, .values = "0 1", .doc = "input and target are logits"),
                PARAM(target_probabilities, BOOL, .values = "0 1", .doc = "target is probabilities"),
                PARAM(logit_scale, F32, .values = "1 0.7 2.5", .fallback = 1, .min = 0x1p-20, .max = 0x1p20,
                      .doc = "multiplies logits: one over the temperature") },
    .types = { "T=f32|bf16|f16" },
    .flops = "12*r*v",
    .independent = "r",
    .sizes = DIVERGENCE_SIZES,
    .cases = { "llama2 logits: T=bf16 r=1024 v=32000 logits=1", "llama3 logits: T=bf16 r=256 v=128256 logits=1",
               "llama2 f32: T=f32 r=512 v=32000", "llama2 probabilities: T=bf16 r=1024 v=32000 target_probabilities=1",
               "small: T=f32 r=65536 v=256 logits=1" },
    .reference = reference,
};
