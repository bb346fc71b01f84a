/* SPDX-License-Identifier: Apache-2.0 */
/* vmf_log_norm on the CPU. */
#include "special.h"
#include "spec/places/vmf_log_norm.h"

static void row(const run *r) {
    const double v = (double)((const trine_vmf_log_norm_args *)r->call->args)->dimension / 2 - 1;
    special_run(r, SPECIAL_NONE, v, VMF_LOG_NORM_KAPPA, SPECIAL_NONE, VMF_LOG_NORM_Y, special_vmf_log_norm);
}

WALK_KERNELS(vmf_log_norm, special_edges);
