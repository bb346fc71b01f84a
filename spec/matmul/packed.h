/* SPDX-License-Identifier: Apache-2.0 */
/* Where matmul_pack puts elements: lines of 16 columns, of each the consecutive k that fill 4 bytes, or one; a block is
 * the lines of 4 k. */
#ifndef TRINE_SPEC_PACKED_H
#define TRINE_SPEC_PACKED_H

#include "spec/spec.h"

enum { PACKED_COLUMNS = 16, PACKED_DEPTH = 4, PACKED_BLOCK = PACKED_COLUMNS * PACKED_DEPTH };

/* Consecutive k that are side by side. */
static inline int64_t packed_deep(trine_dtype type) {
    const int64_t size = (int64_t)trine_dtype_size(type);
    return size < PACKED_DEPTH ? PACKED_DEPTH / size : 1;
}

/* The place of element (p, j) of [k, n]. */
static inline int64_t packed_place(int64_t p, int64_t j, int64_t k, int64_t deep) {
    const int64_t block = j / PACKED_COLUMNS * ((k + PACKED_DEPTH - 1) / PACKED_DEPTH) + p / PACKED_DEPTH;
    return block * PACKED_BLOCK + p % PACKED_DEPTH / deep * PACKED_COLUMNS * deep + j % PACKED_COLUMNS * deep +
           p % deep;
}

/* Elements of a packed matrix. */
static inline int64_t packed_size(int64_t k, int64_t n) {
    return (n + PACKED_COLUMNS - 1) / PACKED_COLUMNS * ((k + PACKED_DEPTH - 1) / PACKED_DEPTH) * PACKED_BLOCK;
}

#define PACKED_SHAPE "(n+15)/16 (k+3)/4 64"

#endif
