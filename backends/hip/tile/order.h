/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the blocks of a product take its tiles, on both sides. Hardware deals blocks out to the chiplets of a chip in turn, each of which has a second-level
 * cache of its own: of the tiles in order a chiplet takes a run at a time, so that it reads once what neighbours share. */
#ifndef TRINE_HIP_TILE_ORDER_H
#define TRINE_HIP_TILE_ORDER_H

#include <stdint.h>

#ifdef __cplusplus
#define TILE_BOTH_SIDES constexpr
#else
#define TILE_BOTH_SIDES static inline
#endif

typedef struct tile_order {
    uint32_t chiplets;
    uint32_t run_bits; /* of the tiles of a run */
    uint32_t whole;    /* as many blocks as make a run for each chiplet, over and over; those behind take the tile of their own number */
    uint32_t group;    /* rows of tiles that are walked together */
} tile_order;

/* The tile of a block: a bijection of the numbers below `whole`, and of those from there on. */
TILE_BOTH_SIDES uint32_t tile_of_block(uint32_t block, tile_order o) {
    if (block >= o.whole) return block;
    const uint32_t turn = block / o.chiplets, chiplet = block - turn * o.chiplets;
    return (((turn >> o.run_bits) * o.chiplets + chiplet) << o.run_bits) + (turn & ((1u << o.run_bits) - 1));
}

#endif
