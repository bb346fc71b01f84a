/* SPDX-License-Identifier: Apache-2.0 */
/* Codes in words on the CPU. */
#ifndef TRINE_CPU_PACKING_H
#define TRINE_CPU_PACKING_H

#include <trine/quantize.h>

#include "codes.h"

typedef struct packing {
    const trine_tensor *codes, *packed;
    int64_t k, words, rows, q; /* rows of all; of one batch */
    int width, bits, each;     /* of a word; of a code; codes of a word in descending order */
    int32_t order;
    bool sign;
} packing;

static inline packing packing_of(const trine_tensor *codes, const trine_tensor *packed, int32_t order) {
    const int d = codes->rank - 1;
    const int64_t k = codes->shape[d], words = packed->shape[packed->rank - 1], q = codes->shape[d - 1];
    const int width = packed->dtype == TRINE_I32 ? 32 : 8;
    return (packing){ .codes = codes,
                      .packed = packed,
                      .k = k,
                      .words = words,
                      .rows = trine_tensor_count(codes) / (k > 0 ? k : 1),
                      .q = q,
                      .width = width,
                      .bits = k > 0 ? (int)(words * width / k) : 8,
                      .each = words > 0 ? (int)(k / words) : 1,
                      .order = order,
                      .sign = codes->dtype == TRINE_I8 };
}

/* The first element of a row, and the stride along it. */
static inline char *packing_row(const packing *p, const trine_tensor *t, int64_t row, int64_t *stride_out) {
    const int d = t->rank - 1;
    const int64_t at = (t->rank == 3 ? row / p->q * t->stride[0] : 0) + row % p->q * t->stride[d - 1];
    *stride_out = t->stride[d];
    return (char *)t->data + at * (int64_t)trine_dtype_size(t->dtype);
}

/* Codes of a row that lie side by side in bytes that do so as well: whole eights, which are whole bytes. Words of 32
 * bits are such bytes where their lowest byte is the first. */
static inline int64_t packing_plain(const packing *p, int64_t codes_stride, int64_t packed_stride) {
    const bool bytes = p->width == 8 || LITTLE;
    return bytes && p->order == TRINE_ORDER_ASCENDING && codes_stride == 1 && packed_stride == 1 ? p->k / 8 * 8 : 0;
}

/* The place of code c of eight that awq moves, and which code is at a place. */
static const int8_t packing_awq_place[] = { 0, 4, 1, 5, 2, 6, 3, 7 }, packing_awq_code[] = { 0, 2, 4, 6, 1, 3, 5, 7 };

/* A word, `at` elements behind the row's first. */
static inline uint32_t packing_load(const packing *p, const char *row, int64_t at) {
    return p->width == 8 ? ((const uint8_t *)row)[at] : ((const uint32_t *)row)[at];
}
static inline void packing_store(const packing *p, char *row, int64_t at, uint32_t word) {
    if (p->width == 8)
        ((uint8_t *)row)[at] = (uint8_t)word;
    else
        ((uint32_t *)row)[at] = word;
}

/* The body for all rows, by threads that have shares of them. */
static inline trine_status packing_run(const trine_call *call, const packing *p, cpu_body *rows) {
    cpu_shares(call, cpu_team(call, p->rows, 2 * p->rows * p->k), p->rows, rows, p);
    return TRINE_OK;
}

/* Units of a row; and the second thread. */
static inline void packing_edges(trine_kernel_edges *edges, int k_symbol, int q_symbol, int64_t k) {
    trine_kernel_edge(edges, k_symbol, CODES_UNIT);
    cpu_team_edge(edges, q_symbol, 2 * k);
}

#endif
