/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of elements that share a scale: what the reference, the kernels' host code and tests agree upon. */
#ifndef TRINE_SPEC_BLOCKS_H
#define TRINE_SPEC_BLOCKS_H

#include <stdint.h>

enum { SCALED_PART = 128 }; /* elements along k at most whose products are added up before they are scaled */

/* Elements of a block of which `size` elements have `count`, at least 1: a power of two, or what is left. */
static inline int64_t scaled_block(int64_t size, int64_t count) {
    int64_t block = 1;
    if (count <= 1) return size > 0 ? size : 1;
    while ((size + block - 1) / block > count) block *= 2;
    return (size + block - 1) / block == count ? block : (size + count - 1) / count;
}

/* Where the part that begins at `at` ends: with a block of either side, after 128 elements, or with k. */
static inline int64_t scaled_end(int64_t at, int64_t k, int64_t a_block, int64_t b_block) {
    const int64_t a = (at / a_block + 1) * a_block, b = (at / b_block + 1) * b_block;
    int64_t end = at + SCALED_PART < k ? at + SCALED_PART : k;
    if (a < end) end = a;
    return b < end ? b : end;
}

#endif
