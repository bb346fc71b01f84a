/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 128 rows, each from anywhere, by 64, 128 or 256 columns, for sm_90a: what host and device agree on. */
#ifndef TRINE_CUDA_ROWS_SM90_H
#define TRINE_CUDA_ROWS_SM90_H

#include "matmul_sm90.h"

enum {
    ROWS_SM90_ROWS = 128,
    ROWS_SM90_PAIR = 2,          /* blocks of a cluster, with a tile each */
    ROWS_SM90_BAND = 4,          /* pairs that have a matrix's columns one after the other */
    ROWS_SM90_ENDS = 16 << 10,   /* bytes in which warps bring results into rows' order */
    ROWS_SM90_BARRIERS = 1 << 10 /* and for barriers */
};

/* `more`: bytes of a stage besides the operands'. */
#define ROWS_SM90_STAGES(n, across, more) \
    ((MATMUL_SM90_MEMORY - ROWS_SM90_ENDS - ROWS_SM90_BARRIERS) / (MATMUL_SM90_STAGE(n, across) + (more)))

#endif
