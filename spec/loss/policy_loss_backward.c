/* SPDX-License-Identifier: Apache-2.0 */
/* policy_loss_backward: the table and the reference. */
#include <trine/loss.h>

#include "policy_loss.h"

#define ARGS trine_policy_loss_backward_args

/* The mean of the slopes of a sequence's tokens. */
static near shared_slope(const policy *p) {
    near_sum sum = { 0 };
    for (int64_t t = 0; t < p->steps; t++)
        if (policy_counts(p, t)) near_add(&sum, policy_slope(p, p->shared, policy_advantage(p, t)));
    return p->count > 0 ? near_over(near_total(&sum, p->count + 8), near_of((double)p->count)) : near_of(0);
}

static void put_sequence(trine_ref *ref, const policy *p, near g) {
    const near shared = p->one_ratio ? shared_slope(p) : near_of(0);
    for (int64_t t = 0; t < p->steps; t++) {
        near y = near_of(0);
        if (policy_counts(p, t)) {
            const near c = p->one_ratio ? shared : policy_slope(p, policy_ratio(p, t), policy_advantage(p, t));
            y = near_times(g, near_plus(c, policy_divergence_slope(p, t)));
        }
        near_put(ref, "dlogp", p->first + t, y.of, y.off / U, 0);
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const double *dloss = trine_ref_value(ref, "dloss"), *cu = trine_ref_value(ref, "cu_seqlens");
    for (int64_t i = 0; i < policy_sequences(ref); i++) {
        const policy p = policy_of(ref, i, args->clip_low, args->clip_high, args->kl_weight, args->sequence_ratio);
        const near g = near_of(dloss[i]);
        put_sequence(ref, &p, args->mean && p.count > 0 ? near_over(g, near_of((double)p.count)) : g);
    }
    for (int64_t at = cu ? (int64_t)cu[policy_sequences(ref)] : 0; cu && at < trine_ref_dim(ref, "t"); at++)
        near_put(ref, "dlogp", at, 0, 0, 0);
}

const trine_spec trine_spec_policy_loss_backward = {
    SPEC(policy_loss_backward),
    .summary = "Gradient of policy_loss with respect to logp",
    .formula = "dlogp[t] = g (c[t] + kl_weight (1 - exp(d))), c[t] = 0 if A > 0 and ratio > 1 + clip_high or A < 0 and "
               "ratio < 1 - clip_low, else -ratio A; with sequence_ratio c is its mean over the sequence's tokens; g = "
               "dloss[i], with mean divided by their number; 0 where mask is 0 and behind the last sequence; all else "
               "as in policy_loss",
    .source = "the derivative of policy_loss's formula",
    .tensors = { TENSOR(logp, IN, "T", "[b] t"), TENSOR(old_logp, IN | OPTIONAL, "T", "[b] t"),
                 TENSOR(ref_logp, IN | OPTIONAL, "T", "[b] t"), TENSOR(advantages, IN | OPTIONAL, "T", "[b] t"),
                 TENSOR(returns, IN | OPTIONAL, "f32", "s"),
                 TENSOR(mask, IN | OPTIONAL, "u8", "[b] t", .fill = "sparse"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"), TENSOR(dloss, IN, "f32", "s"),
                 TENSOR(dlogp, OUT, "T", "[b] t", .terms = "1") },
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
