/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to shared memory of vectors of 4-byte elements that begin anywhere. */
#ifndef TRINE_CUDA_ELEMENTS_H
#define TRINE_CUDA_ELEMENTS_H

#include <tile/mma.h>

/* The first `count` of N elements, and zeros for the others. */
template <int N> DEVICE void copy_elements(uint32_t *to, const uint32_t *from, int count) {
#pragma unroll
    for (int k = 0; k < N; k++) copy_bytes<4>(to + k, from + (k < count ? k : 0), k < count ? 4 : 0);
}

#endif
