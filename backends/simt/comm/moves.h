/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of ops whose rows go to other ranks by lists that the device makes (simt/comm/rows.h). */
#ifndef TRINE_SIMT_MOVES_H
#define TRINE_SIMT_MOVES_H

#include "backends/simt/comm/rows.h"
#include "backends/simt/core/group.h"

/* The next part of the workspace; NULL while there is none. */
static inline void *moves_part(const trine_call *call, size_t *at, size_t bytes) {
    void *part = call->workspace ? (char *)call->workspace + *at : NULL;
    *at += (bytes + 255) / 256 * 256;
    return part;
}

/* Every rank gets n numbers of each. */
static inline trine_status moves_gather(const trine_call *call, const int32_t *own, int32_t *all, int64_t n) {
    const simt_function function = { .step = "gather", .variant = (int)sizeof *own };
    exchange_params p = { .x = own,
                          .y = all,
                          .n = n,
                          .y_row = n * (int64_t)sizeof *own,
                          .aligned = n * (int64_t)sizeof *own % EXCHANGE_PACKET == 0 };
    return simt_exchange(call, &function, &p, simt_blocks(n * (int64_t)sizeof *own, EXCHANGE_PACKET), 1);
}

/* Rows of x, which have n elements, go to rows of y, which are so many bytes apart, by the lists; about `rows`. */
static inline trine_status moves_run(const trine_call *call, const trine_tensor *x, void *y, int64_t y_row, int64_t n,
                                     int64_t rows, const moved_rows *moves) {
    const int64_t width = (int64_t)trine_dtype_size(x->dtype);
    const simt_function function = { .variant = (int)width };
    exchange_params p = { .x = x->data, .y = y, .x_row = x->stride[0] * width, .y_row = y_row, .n = n, .moves = moves };
    p.aligned =
        ((uintptr_t)p.x | (uintptr_t)p.y | (uintptr_t)p.x_row | (uintptr_t)p.y_row) % (EXCHANGE_PACKET / 2) == 0;
    return simt_exchange(call, &function, &p, rows * simt_blocks(n * width, EXCHANGE_PACKET / 2), 1);
}

#endif
