/* SPDX-License-Identifier: Apache-2.0 */
/* What the device kernels of matmul_symmetric share: which tile a block has. */
#ifndef TRINE_SIMT_MATMUL_SYMMETRIC_TILES_INL_H
#define TRINE_SIMT_MATMUL_SYMMETRIC_TILES_INL_H

#include "matmul_symmetric.h"
#include "backends/simt/core/simt.h"

/* A block's tile: row by row, each up to the diagonal. */
struct symmetric_tile {
    int64_t batch, row, column; /* of the tile's first element */

    DEVICE symmetric_tile(int64_t tiles, int side) {
        const int64_t block = block_index();
        batch = block / tiles;
        const int64_t number = block - batch * tiles;
        int64_t down = (int64_t)((square_root(8.0 * (double)number + 1.0) - 1.0) * 0.5);
        if (down * (down + 1) / 2 > number) down--; /* a root of this size is off by less than one */
        if ((down + 1) * (down + 2) / 2 <= number) down++;
        row = down * side, column = (number - down * (down + 1) / 2) * side;
    }
};

#endif
