/* SPDX-License-Identifier: Apache-2.0 */
/* An operand of a matrix product, on both sides: lanes (rows of a, columns of b) of elements along k. */
#ifndef TRINE_HIP_TILE_OPERAND_H
#define TRINE_HIP_TILE_OPERAND_H

#include "backends/simt/core/params.h"

enum {
    TILE_THREADS = 256,
    TILE_BYTES = 64 /* of a lane that a tile holds */
};

typedef struct tile_operand {
    const void *data;
    int64_t batch, lane, along; /* strides in elements; one of the last two is 1 */
    int64_t lanes, depth;
    bool across; /* `lane` is 1: lanes are consecutive in memory, not elements of k */
    /* what is consecutive begins at a multiple of 16 bytes, and if those are lanes, they fill it;
     * a tile spans less than 2^31 bytes */
    bool wide;
} tile_operand;

#endif
