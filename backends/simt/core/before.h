/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of a block before each one have, taken together. */
#ifndef TRINE_SIMT_BEFORE_H
#define TRINE_SIMT_BEFORE_H

#include "simt.h"

struct of_all {
    template <class Value> DEVICE Value operator()(Value a, Value b) const { return a + b; }
};
struct largest_of {
    template <class Value> DEVICE Value operator()(Value a, Value b) const { return a > b ? a : b; }
};

/* `none` combines with x to x. All threads of a block of SIMT_THREADS come here; *all_out: what all have. */
template <class Value, class Combine>
DEVICE Value before_thread(Value own, Value none, Combine combine, Value *all_out) {
    constexpr int LANES = 32, PARTS = SIMT_THREADS / LANES;
    SHARED Value part[PARTS];
    const int lane = thread_index() % LANES, number = thread_index() / LANES;
    Value before = none, total = own;
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2) {
        const Value other = shuffle_xor(total, mask);
        if (lane & mask) before = combine(other, before);
        total = combine(total, other);
    }
    if (lane == 0) part[number] = total;
    sync_block();
    Value all = none;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        if (i == number) before = combine(all, before);
        all = combine(all, part[i]);
    }
    sync_block();
    *all_out = all;
    return before;
}

/* The sum of what the threads before have. */
DEVICE uint32_t sum_before(uint32_t own) {
    uint32_t all;
    return before_thread(own, 0u, of_all(), &all);
}

#endif
