/* SPDX-License-Identifier: Apache-2.0 */
/* vmf_log_norm_backward on the CPU. */
#include "special.h"
#include "spec/places/vmf_log_norm_backward.h"

static void row(const run *r) {
    const double v = (double)((const trine_vmf_log_norm_backward_args *)r->call->args)->dimension / 2 - 1;
    special_run(r, SPECIAL_NONE, v, VMF_LOG_NORM_BACKWARD_KAPPA, VMF_LOG_NORM_BACKWARD_DY, VMF_LOG_NORM_BACKWARD_DKAPPA,
                special_vmf_slope);
}

WALK_KERNELS(vmf_log_norm_backward, special_edges);
