/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of a row as codes of a byte each, of numbers that an op makes itself: what the host sides pass. */
#ifndef TRINE_SIMT_QUANTIZE_ROWS_H
#define TRINE_SIMT_QUANTIZE_ROWS_H

#include "codes.h"

enum { ROW_I8, ROW_E4M3, ROW_E5M2 }; /* the type of codes */

typedef struct row_codes {
    simt_rows codes, scales, y; /* scales one behind the other; y may be absent */
    int64_t r, k, n, groups;    /* of rows; of a row, of a group; in a row */
    int32_t codes_type, scales_type;
    bool powers, upward;
    bool vectors; /* are a unit's numbers of all tensors, and its codes, one access? */
} row_codes;

/* Threads of a group of n: 4, 16 or all of a block. */
enum { ROW_SMALL = 64, ROW_MIDDLE = 512 };

#endif
