/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts by a block. */
#ifndef TRINE_SIMT_SORT_H
#define TRINE_SIMT_SORT_H

#include "backends/simt/core/simt.h"

/* A power of two of keys in shared memory, in descending order; by a block of so many threads. */
template <int THREADS> DEVICE void sort_keys(uint64_t *key, int count) {
    for (int run = 2; run <= count; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            sync_block();
            for (int pair = thread_index(); pair < count / 2; pair += THREADS) {
                const int i = pair / step * 2 * step + pair % step, j = i + step;
                const bool rises = i & run;
                const uint64_t a = key[i], b = key[j];
                if ((a < b) != rises) key[i] = b, key[j] = a;
            }
        }
    sync_block();
}

#endif
