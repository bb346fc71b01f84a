/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up machines for tests: numbers that follow from others. */
#ifndef TRINE_SPEC_TSETLIN_MIXED_H
#define TRINE_SPEC_TSETLIN_MIXED_H

#include "spec/spec.h"

static inline uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static inline uint32_t mixed_values(const double *x, int64_t count) {
    uint32_t sum = 1;
    for (int64_t i = 0; i < count && i < 64; i++) sum = mixed(sum + (uint32_t)(int64_t)x[i]);
    return sum;
}

#endif
