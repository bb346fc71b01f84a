/* SPDX-License-Identifier: Apache-2.0 */
/* log_kv on devices. */
#include "special.h"
#include "spec/places/log_kv.h"

template <class T> struct log_kv_op {
    static DEVICE void step(const walk_call<trine_log_kv_args> &p, const unit &u) {
        const double v = element<T>(p.walk, LOG_KV_V, u), x = element<T>(p.walk, LOG_KV_X, u);
        put_element<T>(p.walk, LOG_KV_Y, u, special_log_kv(v, x));
    }
};

SPECIAL_ENTRIES(log_kv)
