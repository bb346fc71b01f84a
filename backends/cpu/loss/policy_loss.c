/* SPDX-License-Identifier: Apache-2.0 */
/* policy_loss on the CPU. */
#include "policy_loss.h"
#include "spec/places/policy_loss.h"

static void sequences(const void *context, int64_t first, int64_t last, int thread) {
    const policy *a = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        policy_row r = policy_row_of(a, i);
        const int64_t count = policy_count(&r);
        vf sum = vzero();
        POLICY_EACH(r.steps, j, m, {
            const policy_vector x = policy_vector_of(&r, j, m);
            sum += policy_where(policy_counts(&r, j, m), policy_surrogate(&r, &x) + policy_divergence(&r, j, m));
        });
        a->loss[i] = a->mean && count > 0 ? vhsum(sum) / (float)count : vhsum(sum);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_policy_loss_args *args = call->args;
    const policy a = { POLICY_FIELDS(call, args, POLICY_LOSS), .loss = call->tensor[POLICY_LOSS_LOSS].data };
    return policy_run(&a, sequences);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, POLICY_LOSS_DIM_T, VL);
}

CPU_KERNELS(policy_loss) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
