/* SPDX-License-Identifier: Apache-2.0 */
/* What the launches of collective ops share. */
#ifndef TRINE_SIMT_EXCHANGES_H
#define TRINE_SIMT_EXCHANGES_H

#include <trine/comm.h>

#include "backends/simt/core/group.h"

/* Tensors without gaps, of up to three dimensions. Modules have none of the library's
 * functions that make them. */
static inline trine_tensor exchange_tensor(void *data, trine_dtype dtype, int rank, int64_t n0, int64_t n1,
                                           int64_t n2) {
    trine_tensor t = { .data = data, .dtype = dtype, .rank = rank, .shape = { n0, n1, n2 } };
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; stride *= t.shape[i], i--) t.stride[i] = stride;
    return t;
}
static inline trine_tensor exchange_row(void *data, trine_dtype dtype, int64_t n) {
    return exchange_tensor(data, dtype, 1, n, 0, 0);
}
static inline trine_tensor exchange_rows(void *data, trine_dtype dtype, int64_t r, int64_t n) {
    return exchange_tensor(data, dtype, 2, r, n, 0);
}

/* x and y as one row, or as rows for, or from, each rank. */
static inline exchange_params exchange_of(const trine_tensor *x, const trine_tensor *y, int64_t n, size_t whole) {
    const int64_t width = (int64_t)trine_dtype_size(x->dtype);
    exchange_params p = { .x = x->data, .y = y->data, .n = n };
    if (x->rank > 1) p.x_row = x->stride[0] * width;
    if (y->rank > 1) p.y_row = y->stride[0] * width;
    p.aligned = ((uintptr_t)p.x | (uintptr_t)p.y | (uintptr_t)p.x_row | (uintptr_t)p.y_row) % whole == 0;
    return p;
}

/* Rows of n elements, of so many bytes: some rounds to a launch, or LEAST bytes, since rounds whose places are used
 * again have fences between them, and more of these cost more than a launch. */
static inline trine_status exchange_rounds(const trine_call *call, const simt_function *function,
                                           const exchange_params *rows, int64_t width, int parts) {
    enum { LEAST = 32 << 20 };
    const int64_t rounds = 2 * EXCHANGE_ROUNDS * parts * simt_group_room(call) * EXCHANGE_PACKET,
                  most = (rounds > LEAST ? rounds : LEAST) / width;
    exchange_params p = *rows;
    for (int64_t left = rows->n;; left -= most) {
        p.n = left < most ? left : most;
        const trine_status status = simt_exchange(call, function, &p, simt_blocks(p.n * width, EXCHANGE_PACKET), parts);
        if (status != TRINE_OK || left <= most) return status;
        p.x = (const char *)p.x + most * width;
        p.y = (char *)p.y + most * width;
    }
}

/* Sums of a step: packets of whole elements. */
static inline trine_status exchange_sums(const trine_call *call, const char *step, const trine_tensor *x,
                                         const trine_tensor *y, int64_t n, int kind, int parts) {
    exchange_params p = exchange_of(x, y, n, EXCHANGE_PACKET);
    const simt_function function = { .step = step, .type = { x->dtype } };
    p.kind = kind;
    return exchange_rounds(call, &function, &p, (int64_t)trine_dtype_size(x->dtype), parts);
}

/* Copies: packets of elements of up to 8 bytes. */
static inline trine_status exchange_copies(const trine_call *call, const trine_tensor *x, const trine_tensor *y,
                                           int64_t n, int root) {
    exchange_params p = exchange_of(x, y, n, EXCHANGE_PACKET);
    const size_t width = trine_dtype_size(x->dtype);
    const simt_function function = { .variant = (int)(width < 8 ? width : 8) };
    if (width > 8) p.n *= (int64_t)(width / 8);
    p.kind = root;
    return exchange_rounds(call, &function, &p, function.variant, 1);
}

static inline void exchange_edges(const trine_call *call, trine_kernel_edges *edges, int symbol, int64_t elements,
                                  int parts) {
    trine_kernel_edge(edges, symbol, elements);
    trine_kernel_edge(edges, symbol, elements * EXCHANGE_THREADS * parts);
    trine_kernel_edge(edges, symbol, elements * simt_group_room(call) * parts);
}

#endif
