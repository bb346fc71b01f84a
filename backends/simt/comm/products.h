/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of ops that multiply and exchange: the library's own matmul, and launches over matrices of lines. */
#ifndef TRINE_SIMT_PRODUCTS_H
#define TRINE_SIMT_PRODUCTS_H

#include <string.h>

#include <trine/matmul.h>
#include <trine/ops.h>

#include "backends/simt/core/group.h"

enum { PRODUCT_ALIGNMENT = 256 };

/* A tensor of this rank: of a call of all ranks it has the dimension `ranks` in front. */
static inline trine_tensor own_tensor(const trine_call *call, int place) {
    trine_tensor own = call->tensor[place];
    if (call->comm != NULL || own.rank == 0) return own;
    own.rank--;
    memmove(own.shape, own.shape + 1, sizeof own.shape - sizeof own.shape[0]);
    memmove(own.stride, own.stride + 1, sizeof own.stride - sizeof own.stride[0]);
    return own;
}

/* `parts` matrices of m n elements in the workspace's beginning, and their bytes. */
static inline trine_tensor product_room(const trine_call *call, trine_dtype T, int64_t parts, int64_t m, int64_t n,
                                        size_t *bytes_out) {
    const int64_t bytes = parts * m * n * (int64_t)trine_dtype_size(T);
    *bytes_out = (size_t)((bytes + PRODUCT_ALIGNMENT - 1) / PRODUCT_ALIGNMENT * PRODUCT_ALIGNMENT);
    return (trine_tensor){
        .data = call->workspace, .dtype = T, .rank = 3, .shape = { parts, m, n }, .stride = { m * n, n, 1 }
    };
}

/* Matrices one below the other are one; so is one by itself. */
static inline bool is_one_below(const trine_tensor *t) {
    return t->rank == 2 || t->stride[0] == t->shape[1] * t->stride[1];
}
static inline trine_tensor put_below(trine_tensor t) {
    if (t.rank == 2) return t;
    t.rank = 2;
    t.shape[0] *= t.shape[1], t.shape[1] = t.shape[2];
    t.stride[0] = t.stride[1], t.stride[1] = t.stride[2];
    return t;
}

/* d = a b with the workspace from `at` on, or the bytes that this needs. */
static inline trine_status multiply(const trine_call *call, trine_tensor a, trine_tensor b, trine_tensor d, size_t at,
                                    size_t *bytes, bool run) {
    if (is_one_below(&a) && is_one_below(&d)) a = put_below(a), d = put_below(d);
    const trine_matmul_args args = { .struct_size = sizeof args, .a = &a, .b = &b, .d = &d };
    if (!run) return call->host->nested_workspace(call, TRINE_OP_MATMUL, &args, bytes);
    return call->host->nested_run(call, TRINE_OP_MATMUL, &args, (char *)call->workspace + at, *bytes);
}

/* Does each line, of so many elements, begin with a whole packet's part? */
static inline bool whole_lines(const trine_tensor *t, int64_t elements) {
    uintptr_t all = (uintptr_t)t->data;
    const uintptr_t width = trine_dtype_size(t->dtype);
    for (int i = 0; i + 1 < t->rank; i++) all |= (uintptr_t)t->stride[i] * width;
    return all % ((uintptr_t)elements * width) == 0;
}

/* From x, a matrix or one for each rank, to y likewise: packets of so many elements. */
static inline exchange_params lines_of(const trine_tensor *x, const trine_tensor *y, int64_t lines, int64_t n,
                                       int64_t elements) {
    const int64_t x_width = (int64_t)trine_dtype_size(x->dtype), y_width = (int64_t)trine_dtype_size(y->dtype);
    const int64_t packets = simt_blocks(n, elements);
    return (exchange_params){ .x = x->data,
                              .y = y->data,
                              .x_row = x->rank > 2 ? x->stride[0] * x_width : 0,
                              .y_row = y->rank > 2 ? y->stride[0] * y_width : 0,
                              .x_line = x->stride[x->rank - 2] * x_width,
                              .y_line = y->stride[y->rank - 2] * y_width,
                              .lines = packets > 0 ? lines : 0,
                              .n = n,
                              .line_packets = simt_divisor_of(packets > 0 ? packets : 1),
                              .aligned = whole_lines(x, elements) && whole_lines(y, elements) };
}

static inline int64_t line_packets(const exchange_params *p) { return p->lines * p->line_packets.by; }

/* -------------------------------------------------------------------------------------- sums of all ranks' products */

enum { PRODUCT_PACKET = EXCHANGE_PACKET / 4 }; /* elements */

/* A call whose ranks' products are added up: `parts` of m rows each, of which this rank has one. */
typedef struct summed_products {
    const trine_call *call;
    trine_tensor a, b, d;
    int64_t parts, m, n;
} summed_products;

static inline trine_tensor summed_products_room(const summed_products *s, size_t *bytes_out) {
    trine_tensor room = product_room(s->call, TRINE_F32, s->parts, s->m, s->n, bytes_out);
    return s->a.rank == 2 ? put_below(room) : room;
}

static inline trine_status summed_products_multiply(const summed_products *s, size_t *bytes, bool run) {
    size_t at, nested = 0;
    const trine_tensor room = summed_products_room(s, &at);
    if (run) nested = s->call->workspace_size - at;
    const trine_status status = multiply(s->call, s->a, s->b, room, at, &nested, run);
    *bytes = at + nested;
    return status;
}

static inline const char *summed_products_refuse(const summed_products *s) {
    size_t bytes;
    return summed_products_multiply(s, &bytes, false) == TRINE_OK ? NULL : "matmul has no kernel for it";
}

static inline size_t summed_products_workspace(const summed_products *s) {
    size_t bytes;
    return summed_products_multiply(s, &bytes, false) == TRINE_OK ? bytes : 0;
}

static inline trine_status summed_products_run(const summed_products *s, const char *step, int parts) {
    size_t bytes;
    trine_status status = summed_products_multiply(s, &bytes, true);
    if (status != TRINE_OK) return status;
    const trine_tensor room = summed_products_room(s, &bytes);
    const simt_function function = { .step = step, .type = { s->d.dtype } };
    exchange_params p = lines_of(&room, &s->d, s->m, s->n, PRODUCT_PACKET);
    return simt_exchange(s->call, &function, &p, line_packets(&p), parts);
}

#endif
