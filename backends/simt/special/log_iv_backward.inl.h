/* SPDX-License-Identifier: Apache-2.0 */
/* log_iv_backward on devices. */
#include "special.h"
#include "spec/places/log_iv_backward.h"

template <class T> struct log_iv_backward_op {
    static DEVICE void step(const walk_call<trine_log_iv_backward_args> &p, const unit &u) {
        const double v = element<T>(p.walk, LOG_IV_BACKWARD_V, u), x = element<T>(p.walk, LOG_IV_BACKWARD_X, u);
        const double dy = element<T>(p.walk, LOG_IV_BACKWARD_DY, u);
        put_element<T>(p.walk, LOG_IV_BACKWARD_DX, u, dy * special_log_iv_slope(v, x));
    }
};

SPECIAL_ENTRIES(log_iv_backward)
