/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on devices. */
#include "dropout.h"
#include "philox.h"
#include "walk.h"

template <class T> struct dropout_op {
    template <int N> static DEVICE void step(const dropout_params &p, const unit &u) {
        float x[N];
        unit_load<T>(x, p.walk, 0, u);
        const uint32_t bits = kept<N>(p.dropout, (uint64_t)u.index);
        uint8_t mask[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            mask[i] = bits >> i & 1;
            x[i] = mask[i] ? x[i] * p.dropout.scale : 0.0f;
        }
        unit_store<T>(x, p.walk, 1, u);
        if (p.walk.data[2]) unit_store_bits(mask, p.walk, 2, u);
    }
};

EACH_FLOAT_1(WALK_1, dropout, dropout_params)
