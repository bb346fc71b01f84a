/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of launches for many tensors: which one a block is for, and vectors of a type that the table tells. */
#ifndef TRINE_SIMT_LIST_INL_H
#define TRINE_SIMT_LIST_INL_H

#include "list.h"
#include "simt.h"

/* The place of the block's tensor: the last whose first block is not behind it. */
template <class Item> DEVICE int list_place(const Item *item, int count) {
    const int64_t block = block_index();
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (item[middle].first <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

template <int N> DEVICE void list_load(float (&v)[N], const void *data, int type, const lane &l) {
    if (type == SIMT_LIST_F32)
        load<f32>(v, data, l);
    else if (type == SIMT_LIST_BF16)
        load<bf16>(v, data, l);
    else
        load<f16>(v, data, l);
}
template <int N> DEVICE void list_store(const float (&v)[N], void *data, int type, const lane &l) {
    if (type == SIMT_LIST_F32)
        store<f32>(v, data, l);
    else if (type == SIMT_LIST_BF16)
        store<bf16>(v, data, l);
    else
        store<f16>(v, data, l);
}

#endif
