/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that go to other ranks one by one: what a rank's lists say, in the device's memory. */
#ifndef TRINE_SIMT_ROWS_H
#define TRINE_SIMT_ROWS_H

#include "exchange.h"

typedef struct moved_row {
    int32_t from, to; /* the row of x, and of y on the other rank */
} moved_row;

/* The lists follow. */
typedef struct moved_rows {
    int32_t most;                  /* rows of the longest list of all ranks: all have the same number */
    int32_t clear, end;            /* rows of y, from and up to, that become 0 */
    int32_t count[EXCHANGE_RANKS]; /* of the list for each rank */
    int64_t first[EXCHANGE_RANKS]; /* where it begins */
} moved_rows;

#endif
