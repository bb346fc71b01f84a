/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in memory that blocks add to in turns, on the host: blocks follow each other, so that a turn which has not come
 * never will. */
#ifndef TRINE_EMULATOR_TILE_ORDER_H
#define TRINE_EMULATOR_TILE_ORDER_H

#include "backends/simt/core/simt.h"

DEVICE void turn_wait(const int32_t *turn, int count) {
    if (*turn != count) __builtin_trap();
}
DEVICE void turn_pass(int32_t *turn) { ++*turn; }
DEVICE int counter_next(int32_t *counter) { return (*counter)++; }

DEVICE void memory_put(float *to, float x) { *to = x; }
DEVICE void memory_add(float *to, float x) { *to += x; }

#endif
