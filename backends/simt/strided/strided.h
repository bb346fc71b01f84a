/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of pack_strided and unpack_strided pass to their device sides. */
#ifndef TRINE_SIMT_STRIDED_H
#define TRINE_SIMT_STRIDED_H

#include "backends/simt/core/params.h"

enum {
    STRIDED_LEVELS = 4,
    STRIDED_ORDERED = 64, /* blocks at most of a launch that writes in the order of packed */
    STRIDED_WIDEST = 16   /* bytes of a word */
};

/* In words. */
typedef struct strided_params {
    void *x, *packed;
    simt_divisor run; /* words of a run */
    simt_divisor count[STRIDED_LEVELS];
    int64_t step[STRIDED_LEVELS], packed_step[STRIDED_LEVELS]; /* the innermost first */
    int64_t start, n, words, rows;                             /* n: of x; words: of packed */
    int32_t levels;
    int32_t ordered; /* blocks that write in the order of packed; 0: in any order */
} strided_params;

#endif
