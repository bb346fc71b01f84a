/* SPDX-License-Identifier: Apache-2.0 */
/* jsd: the table and the reference. */
#include <trine/loss.h>

#include "divergence.h"

#define ARGS trine_jsd_args

/* A class's part of the sum. */
static near term_of(const near_class *p, const near_class *q, double beta) {
    if (beta == 0) return kl_term(p, q);
    if (beta == 1) return kl_term(q, p);
    const near m = near_mixture(p, q, beta), a = jsd_part(p, m, beta), b = jsd_part(q, m, 1 - beta);
    return near_nan(a) || near_nan(b) ? near_of(NAN) : near_plus(a, b);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    for (int64_t i = 0; i < r; i++) {
        const near_row input = near_row_of(trine_ref_value(ref, "input") + i * v, v, args->logits, false,
                                           args->logit_scale),
                       target = near_row_of(trine_ref_value(ref, "target") + i * v, v, args->logits, false,
                                            args->logit_scale);
        near_sum sum = { 0 };
        for (int64_t k = 0; k < v; k++) {
            const near_class q = near_class_of(&input, k), p = near_class_of(&target, k);
            near_add(&sum, term_of(&p, &q, args->beta));
        }
        put_loss(ref, i, &sum);
    }
}

const trine_spec trine_spec_jsd = {
    SPEC(jsd),
    .summary = "Generalised Jensen-Shannon divergence of rows, from log-probabilities or logits",
    .formula = "m = beta p + (1 - beta) q; loss[i] = weight[i] sum_k (beta p (log p - log m) + (1 - beta) q (log q - "
               "log m)); beta 0: weight[i] sum_k p (log p - log q); beta 1: weight[i] sum_k q (log q - log p); log q = "
               "input and log p = target, with logits log_softmax(logit_scale x) of both; a term whose p or q is 0 is "
               "0; 0 where weight is 0",
    .source = "Lin 1991; Agarwal et al. 2024 (GKD), section 3, as Liger-Kernel has it",
    .tensors = { TENSOR(input, IN, "T", "r v"), TENSOR(target, IN, "T", "r v"),
                 TENSOR(weight, IN | OPTIONAL, "f32", "r"), TENSOR(loss, OUT, "f32", "r", .terms = "v + 32") },
    .params = { PARAM(logits, BOOL, .values = "1 0", .doc = "input and target are logits"),
                PARAM(beta, F32, .values = "0.5 0 1 0.1", .min = 0, .max = 1,
                      .doc = "what target counts in the mixture"),
                PARAM(logit_scale, F32, .values = "1 0.7 2.5", .fallback = 1, .min = 0x1p-20, .max = 0x1p20,
                      .doc = "multiplies logits: one over the temperature") },
    .types = { "T=f32|bf16|f16" },
    .flops = "20*r*v",
    .independent = "r",
    .sizes = DIVERGENCE_SIZES,
    .cases = { "llama2 logits: T=bf16 r=1024 v=32000 logits=1 beta=0.5",
               "llama3 logits: T=bf16 r=256 v=128256 logits=1 beta=0.5", "llama2 f32: T=f32 r=512 v=32000 beta=0.5",
               "reverse: T=bf16 r=1024 v=32000 logits=1 beta=1", "small: T=f32 r=65536 v=256 logits=1 beta=0.1" },
    .reference = reference,
};
