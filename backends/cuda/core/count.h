/* SPDX-License-Identifier: Apache-2.0 */
/* Counting by all threads of a block. */
#ifndef TRINE_CUDA_COUNT_H
#define TRINE_CUDA_COUNT_H

#include <target.h>

/* *at += x, of shared memory, and what was there before; threads come in any order. */
DEVICE uint32_t add_shared(uint32_t *at, uint32_t x) { return atomicAdd(at, x); }

/* How many bits are set. */
DEVICE uint32_t ones_of(uint32_t x) { return (uint32_t)__popc((int)x); }

#endif
