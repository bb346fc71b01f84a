/* SPDX-License-Identifier: Apache-2.0 */
/* vmf_log_norm_backward on devices. */
#include "special.h"
#include "spec/places/vmf_log_norm_backward.h"

template <class T> struct vmf_log_norm_backward_op {
    static DEVICE void step(const walk_call<trine_vmf_log_norm_backward_args> &p, const unit &u) {
        const double v = (double)p.args.dimension * 0.5 - 1;
        const double dy = element<T>(p.walk, VMF_LOG_NORM_BACKWARD_DY, u),
                     kappa = element<T>(p.walk, VMF_LOG_NORM_BACKWARD_KAPPA, u);
        put_element<T>(p.walk, VMF_LOG_NORM_BACKWARD_DKAPPA, u, dy * special_vmf_slope(v, kappa));
    }
};

SPECIAL_ENTRIES(vmf_log_norm_backward)
