/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of what optimizer steps share. */
#ifndef TRINE_SIMT_OPTIMIZER_INL_H
#define TRINE_SIMT_OPTIMIZER_INL_H

#include "optimizer.h"
#include "by_chance.inl.h"
#include "backends/simt/core/list.inl.h"
#include "backends/simt/core/walk.h"

/* The copy of a parameter, in a walk. */
template <int N>
DEVICE void optimizer_copy(const float (&param)[N], const simt_walk &w, int t, bool bf, const unit &u) {
    if (bf)
        unit_store<bf16>(param, w, t, u);
    else
        unit_store<f16>(param, w, t, u);
}

/* A parameter of a list, stored: those of bf16 may be rounded by chance, with streams of their own. */
template <int N>
DEVICE void optimizer_list_param(float (&param)[N], const optimizer_item &item, const by_chance &chances, bool on,
                                 const lane &l) {
    if (on && item.param_type == SIMT_LIST_BF16) {
        by_chance own = chances;
        own.words.offset[0] = (uint32_t)item.stream;
        own.words.offset[1] = (uint32_t)(item.stream >> 32);
        by_chance_round(param, own, (uint64_t)l.at);
    }
    list_store(param, item.param, item.param_type, l);
}

/* The thread's elements of its block's item. */
DEVICE lane optimizer_lane(const optimizer_item &item) {
    const uint64_t addresses =
        (uint64_t)item.param | (uint64_t)item.grad | (uint64_t)item.m | (uint64_t)item.v | (uint64_t)item.copy;
    const int64_t block = block_index() - item.first;
    return { (block * SIMT_THREADS + thread_index()) * OPTIMIZER_LIST_VECTOR, item.n, addresses % 16 == 0 };
}

#endif
