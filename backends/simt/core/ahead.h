/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch prefetches before it waits for the previous one, where a device has launches that begin early
 * (programmatic dependent launch, fetch.h): the first bytes of what it reads. As much as memory gives while one launch
 * ends and the next begins: on an H200 4 MB took copies of 32 MB from 93 to 97 % of copying 256, 8 MB gained nothing
 * and 16 lost. For rows in shared memory, of which an SM holds most, 8 MB, and 16 by blocks of 128 threads and more,
 * which prefetch 64 bytes each:
 * calls of 64 MB gained 2 to 6 %. */
#ifndef TRINE_SIMT_AHEAD_H
#define TRINE_SIMT_AHEAD_H

#include <stdint.h>

enum { SIMT_AHEAD = 4 << 20, SIMT_AHEAD_PARTS = 8 << 20, SIMT_AHEAD_SECTOR = 32 };

typedef struct simt_ahead {
    const void *from;
    int64_t bytes; /* 0: nothing */
    int sectors;   /* for each thread */
} simt_ahead;

/* Of two tensors that are read side by side, half of it each. */
typedef struct simt_ahead_two {
    simt_ahead of[2];
} simt_ahead_two;

#endif
