/* SPDX-License-Identifier: Apache-2.0 */
/* policy_loss: the table and the reference. */
#include <trine/loss.h>

#include "policy_loss.h"

#define ARGS trine_policy_loss_args

/* A sum of so many terms in any order, each off by what near.h says, and with mean a quotient. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    for (int64_t i = 0; i < policy_sequences(ref); i++) {
        const policy p = policy_of(ref, i, args->clip_low, args->clip_high, args->kl_weight, args->sequence_ratio);
        near_sum sum = { 0 };
        for (int64_t t = 0; t < p.steps; t++)
            if (policy_counts(&p, t))
                near_add(&sum, near_plus(policy_surrogate(&p, policy_ratio(&p, t), policy_advantage(&p, t)),
                                         policy_divergence(&p, t)));
        const double by = args->mean && p.count > 0 ? (double)p.count : 1, size = sum.size + sum.off;
        near_put(ref, "loss", i, sum.of / by, size > 0x1p126 ? INFINITY : size / by, sum.off / by + FLUSH);
    }
}

const trine_spec trine_spec_policy_loss = {
    SPEC(policy_loss),
    .summary = "The clipped policy loss of the GRPO family, by sequences, from log-probabilities of tokens",
    .formula = "l[t] = -min(ratio A, min(max(ratio, 1 - clip_low), 1 + clip_high) A) + kl_weight (exp(d) - d - 1), "
               "ratio = exp(logp[t] - old_logp[t]), with sequence_ratio exp of the mean of that, 1 without old_logp, A "
               "= advantages[t] + returns[i], d = ref_logp[t] - logp[t]; loss[i] = sum_t l[t] over the tokens of "
               "sequence i whose mask is not 0, with mean divided by their number n or 1",
    .source = "Schulman et al. 2017, equation 7; Shao et al. 2024, equation 3; Yu et al. 2025 (DAPO); Liu et al. 2025 "
              "(Dr. GRPO); Zheng et al. 2025, equation 5 (GSPO)",
    .tensors = { TENSOR(logp, IN, "T", "[b] t"), TENSOR(old_logp, IN | OPTIONAL, "T", "[b] t"),
                 TENSOR(ref_logp, IN | OPTIONAL, "T", "[b] t"), TENSOR(advantages, IN | OPTIONAL, "T", "[b] t"),
                 TENSOR(returns, IN | OPTIONAL, "f32", "s"),
                 TENSOR(mask, IN | OPTIONAL, "u8", "[b] t", .fill = "sparse"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(loss, OUT, "f32", "s", .terms = "t + 8") },
    .params = POLICY_PARAMS,
    .types = { "T=f32" },
    .require = POLICY_REQUIRE,
    .flops = "20*b*t",
    .sizes = POLICY_SIZES,
    .cases = { "grpo: T=f32 b=512 t=4096 s=512 mean=1 clip_low=0.2 clip_high=0.2 kl_weight=0.04 +old_logp +ref_logp "
               "+returns "
               "+mask",
               "dapo: T=f32 b=512 t=4096 s=512 clip_low=0.2 clip_high=0.28 +old_logp +returns +mask",
               "gspo packed: T=f32 b=1 t=1048576 nseq=256 s=256 mean=1 sequence_ratio=1 clip_low=3e-4 clip_high=4e-4 "
               "+old_logp +returns +cu_seqlens" },
    .reference = reference,
};
