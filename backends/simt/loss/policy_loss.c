/* SPDX-License-Identifier: Apache-2.0 */
/* policy_loss on devices: the host side. */
#include "policy_loss_host.h"
#include "spec/places/policy_loss.h"

static trine_status launch(const trine_call *call) {
    const trine_policy_loss_args *args = call->args;
    const policy_params p = { POLICY_FIELDS(call, args, POLICY_LOSS), .loss = call->tensor[POLICY_LOSS_LOSS].data };
    return simt_launch(call, &(simt_function){ 0 }, p.sequences, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, POLICY_LOSS_DIM_T, SIMT_THREADS);
}

SIMT_KERNELS(policy_loss) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
