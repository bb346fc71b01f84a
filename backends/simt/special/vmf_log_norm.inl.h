/* SPDX-License-Identifier: Apache-2.0 */
/* vmf_log_norm on devices. */
#include "special.h"
#include "spec/places/vmf_log_norm.h"

template <class T> struct vmf_log_norm_op {
    static DEVICE void step(const walk_call<trine_vmf_log_norm_args> &p, const unit &u) {
        const double v = (double)p.args.dimension * 0.5 - 1, kappa = element<T>(p.walk, VMF_LOG_NORM_KAPPA, u);
        put_element<T>(p.walk, VMF_LOG_NORM_Y, u, special_vmf_log_norm(v, kappa));
    }
};

SPECIAL_ENTRIES(vmf_log_norm)
