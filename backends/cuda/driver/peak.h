/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of multiply-adds, as host and device see them. */
#ifndef TRINE_CUDA_PEAK_H
#define TRINE_CUDA_PEAK_H

#include <stdint.h>

/* The compiler must not know that the numbers are 0, and so all chains the same, nor that nobody reads the sums. */
typedef struct peak_params {
    int64_t rounds;
    uint32_t zero;
    double *sums; /* NULL */
} peak_params;

/* Threads of a block, and what each does in a round: products of chains that do not wait for each other. */
enum { PEAK_THREADS = 256, PEAK_CHAINS = 8, PEAK_STEPS = 4, PEAK_SHARED = (64 + 256) * 128 };

#endif
