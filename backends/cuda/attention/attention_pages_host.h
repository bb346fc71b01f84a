/* SPDX-License-Identifier: Apache-2.0 */
/* What both sides know of the kernels of attention_decode by tensor cores. */
#ifndef TRINE_CUDA_ATTENTION_PAGES_HOST_H
#define TRINE_CUDA_ATTENTION_PAGES_HOST_H

#include "attention.h"
#include "backends/simt/attention/attention_decode.h"

/* Rows of a block, and the most keys of its part. */
enum { ATTENTION_PAGES_THREADS = 128, ATTENTION_PAGES_ROWS = 16, ATTENTION_PAGES_PART = DECODE_LONG };
/* Columns, and keys that a warp has at hand. */
#define ATTENTION_PAGES_TILES(X) X(64, 32) X(128, 16)
/* Bytes of shared memory: of a list of keys and values, or of the rows' sums of four warps. */
#define ATTENTION_PAGES_BYTES(D) ((D) > 64 ? 256 * ATTENTION_DECODE_RECORD(D) : 16 * ATTENTION_PAGES_PART + 1024)

/* Where rows are many, or wide: rows of a block; columns of keys and of values, warps that share 16 rows, keys of a
 * tile, and tiles in shared memory. Unlike numbers of columns: values are the keys' first. */
enum { ATTENTION_PAGES_SIDE = 64 };
#define ATTENTION_PAGES_SIDES(X) X(64, 64, 1, 64, 2) X(128, 128, 1, 64, 2) X(256, 256, 2, 32, 3) X(576, 512, 2, 32, 3)
#define ATTENTION_PAGES_STAGE(D, DV, KEYS) (2 * (KEYS) * ((D) == (DV) ? 2 * (D) : (D)))
/* Their shared memory: queries, tiles, scores that warps exchange, and the list. */
#define ATTENTION_PAGES_SIDE_BYTES(D, DV, C, KEYS, STAGES) \
    (2 * (D) * ATTENTION_PAGES_SIDE + (STAGES) * ATTENTION_PAGES_STAGE(D, DV, KEYS) + \
     ((C) > 1 ? 4 * ATTENTION_PAGES_SIDE * ((KEYS) + 4) : 0) + 16 * ATTENTION_PAGES_PART)

#endif
