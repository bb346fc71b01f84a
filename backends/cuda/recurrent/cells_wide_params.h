/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of the wide ways of recurrent cells pass to their device sides. */
#ifndef TRINE_CUDA_RECURRENT_CELLS_WIDE_PARAMS_H
#define TRINE_CUDA_RECURRENT_CELLS_WIDE_PARAMS_H

#include "backends/simt/recurrent/cells.h"

enum {
    CELL_WIDE_THREADS = 512,
    CELL_WIDE_WARPS = CELL_WIDE_THREADS / 32,
    CELL_ROWS = 16,   /* of a tile */
    CELL_DEPTH = 16,  /* of its columns, which a product has at a time */
    CELL_ACROSS = 8,  /* members of the batch of a column tile */
    CELL_PARTS = 3,   /* of a float */
    CELL_PIECE = 512, /* bytes of a part of a tile */
    CELL_BYTES = 256, /* of a part of a column tile */
    CELL_COLUMN_BYTES = CELL_PARTS * CELL_BYTES,
    CELL_WEIGHTS_TILE = 64, /* rows and columns of dr that a block sums */
    CELL_APART = 4,         /* floats between columns of sums, so that these begin in other banks */
    CELL_AHEAD = 2          /* elements of a thread whose inputs are read ahead */
};

/* Pairs of tiles, of elements of so many parts, that registers of a warp hold. */
#define CELL_KEPT(parts) ((parts) == 1 ? 3 : (parts) == 2 ? 1 : 0)

/* How a head is divided. */
typedef struct cell_wide {
    int blocks, units;        /* of a cluster; of a block, whole tiles */
    int pairs, depth, slices; /* of row tiles; of tiles along columns; into which these are divided among warps */
    int held;                 /* steps of a share in shared memory */
    int across;               /* column tiles of a cluster */
    int buffers;              /* two where blocks give to others, who may not have read the last step's */
    int64_t groups;           /* of so many members of the batch */
} cell_wide;

enum {
    CELL_COLUMN_ROOM = 32 /* bytes of what is known of a column's sequence */,
    CELL_BARRIERS = 16 /* and of these */
};

typedef struct cell_wide_params {
    cell_params cell;
    cell_wide wide;
    char *pieces; /* of each head and block */
} cell_wide_params;

typedef struct cell_backward_wide_params {
    cell_backward_params cell;
    cell_wide wide;
    char *pieces;
    bool exact; /* h before each step is a number of the type */
} cell_backward_wide_params;

#endif
