/* SPDX-License-Identifier: Apache-2.0 */
/* policy_loss_backward on the CPU. */
#include "policy_loss.h"
#include "spec/places/policy_loss_backward.h"

/* The mean of the slopes of a sequence's tokens. */
INLINE float shared_slope(const policy_row *r, int64_t count) {
    vf sum = vzero();
    POLICY_EACH(r->steps, j, m, {
        const policy_vector x = policy_vector_of(r, j, m);
        sum += policy_where(policy_counts(r, j, m), policy_slope(&x));
    });
    return count > 0 ? vhsum(sum) / (float)count : 0.0f;
}

static void sequences(const void *context, int64_t first, int64_t last, int thread) {
    const policy *a = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        policy_row r = policy_row_of(a, i);
        const int64_t count = policy_count(&r);
        const float g = a->mean && count > 0 ? a->dloss[i] / (float)count : a->dloss[i],
                    shared = r.one_ratio ? shared_slope(&r, count) : 0.0f;
        POLICY_EACH(r.steps, j, m, {
            const policy_vector x = policy_vector_of(&r, j, m);
            const vf slope = r.one_ratio ? vset(shared) : policy_slope(&x);
            const vf y = policy_where(policy_counts(&r, j, m), g * (slope + policy_divergence_slope(&r, j, m)));
            vstoren(r.dlogp, TRINE_F32, j, m, y);
        });
        const int64_t end = a->cu && i + 1 == a->sequences ? a->t - a->cu[i] : r.steps;
        if (end > r.steps) memset(r.dlogp + r.steps, 0, (size_t)(end - r.steps) * sizeof *r.dlogp);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_policy_loss_backward_args *args = call->args;
    const policy a = { POLICY_FIELDS(call, args, POLICY_LOSS_BACKWARD),
                       .dloss = call->tensor[POLICY_LOSS_BACKWARD_DLOSS].data,
                       .dlogp = &call->tensor[POLICY_LOSS_BACKWARD_DLOGP] };
    return policy_run(&a, sequences);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, POLICY_LOSS_BACKWARD_DIM_T, VL);
}

CPU_KERNELS(policy_loss_backward) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
