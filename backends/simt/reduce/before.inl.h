/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of what the threads before have, on devices: where a thread's elements go. */
#ifndef TRINE_SIMT_BEFORE_H
#define TRINE_SIMT_BEFORE_H

#include "backends/simt/core/simt.h"

/* The sums before each thread of the block, of the values of all. */
DEVICE uint32_t sum_before(uint32_t own) {
    SHARED uint32_t sum[2][SIMT_THREADS];
    const int thread = thread_index();
    int from = 0;
    sum[0][thread] = own;
    sync_block();
    for (int distance = 1; distance < SIMT_THREADS; distance *= 2, from = 1 - from) {
        sum[1 - from][thread] = sum[from][thread] + (thread >= distance ? sum[from][thread - distance] : 0);
        sync_block();
    }
    return sum[from][thread] - own;
}

#endif
