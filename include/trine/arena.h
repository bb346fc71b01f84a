/* SPDX-License-Identifier: Apache-2.0 */
/* Where buffers that are not all needed at once lie in one piece of memory. */
#ifndef TRINE_ARENA_H
#define TRINE_ARENA_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A buffer that a program needs from its step `first` to its step `last`, both included. */
typedef struct trine_lifetime {
    int64_t bytes; /* may be 0 */
    int64_t first;
    int64_t last; /* at least first */
} trine_lifetime;

/* What a plan came to. Bytes are of buffers rounded up to the alignment. */
typedef struct trine_arena_report {
    int64_t bytes;    /* of the arena */
    int64_t live;     /* most that is needed at one step: no arena is smaller */
    int64_t step;     /* the first step at which that is so; 0 without buffers */
    int64_t separate; /* of all buffers, each in memory of its own */
    int32_t smallest; /* 1: no plan has a smaller arena; 0: none that was tried has */
} trine_arena_report;

/* Lays buffers into an arena, so that no two which are needed at one step share a byte, and it is small.
 *
 * Buffers are placed largest first, or those of the step with most live bytes first, each in the smallest gap that
 * takes it: the better of the two. Where that is larger than `live`, orders are searched for a better one, for some
 * milliseconds' work at most, which finds the smallest arena of a dozen buffers.
 *
 * Source: Y. Pisarchyk and J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
 *
 * buffer      `count` of them; may be NULL if count is 0
 * alignment   a power of 2 that all offsets divide by; 256 is right for tensors on every device
 * offset_out  of each buffer in the arena, in bytes
 * report_out  may be NULL
 *
 * The same plan every time. Time grows as the square of the number of buffers.
 *
 * Errors: TRINE_ERR_ARGUMENT (a negative size, last before first, an alignment that is no power of 2, sizes whose sum
 * overflows), TRINE_ERR_MEMORY. */
TRINE_API trine_status trine_arena_plan(const trine_lifetime *buffer, int64_t count, int64_t alignment,
                                        int64_t *offset_out, trine_arena_report *report_out);

#ifdef __cplusplus
}
#endif

#endif
