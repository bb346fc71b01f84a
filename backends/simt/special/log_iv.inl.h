/* SPDX-License-Identifier: Apache-2.0 */
/* log_iv on devices. */
#include "special.h"
#include "spec/places/log_iv.h"

template <class T> struct log_iv_op {
    static DEVICE void step(const walk_call<trine_log_iv_args> &p, const unit &u) {
        const double v = element<T>(p.walk, LOG_IV_V, u), x = element<T>(p.walk, LOG_IV_X, u);
        put_element<T>(p.walk, LOG_IV_Y, u, special_log_iv(v, x));
    }
};

SPECIAL_ENTRIES(log_iv)
