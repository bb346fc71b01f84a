/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of chains of many calls in one launch: which one a block is for, and where its tensors are. */
#ifndef TRINE_SIMT_CHAIN_ITEM_H
#define TRINE_SIMT_CHAIN_ITEM_H

#include "backends/simt/core/simt.h"
#include "chain.h"

/* The last item whose first block is not behind this one. */
DEVICE const uint32_t *chain_item_of(const chain_calls &list, int64_t block) {
    int low = 0, high = list.count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (list.item[middle * list.words] <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return list.item + low * list.words;
}

/* An address, which is told in two words. */
DEVICE void *chain_address(const uint32_t *word) { return (void *)(uintptr_t)((uint64_t)word[1] << 32 | word[0]); }

#endif
