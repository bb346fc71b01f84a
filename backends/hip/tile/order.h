/* SPDX-License-Identifier: Apache-2.0 */
/* In which order blocks take the tiles of a product, or of attention, on both sides. Hardware deals blocks out to the
 * chiplets of a chip in turn, each of which has an L2 of its own: of the tiles in order a chiplet takes neighbours, so
 * that it reads once what they share. */
#ifndef TRINE_HIP_TILE_ORDER_H
#define TRINE_HIP_TILE_ORDER_H

#include <stdint.h>

#ifdef __cplusplus
#define TILE_BOTH_SIDES constexpr
#else
#define TILE_BOTH_SIDES static inline
#endif

/* Of a product: a run of tiles for each chiplet at a time. */
typedef struct tile_order {
    uint32_t chiplets;
    uint32_t run_bits; /* of the tiles of a run */
    /* as many blocks as make a run for each chiplet, over and over; those behind take the tile of their own number */
    uint32_t whole;
    uint32_t group; /* rows of tiles that are walked together */
} tile_order;

/* The tile of a block: a bijection of the numbers below `whole`, and of those from there on. */
TILE_BOTH_SIDES uint32_t tile_of_block(uint32_t block, tile_order o) {
    if (block >= o.whole) return block;
    const uint32_t turn = block / o.chiplets, chiplet = block - turn * o.chiplets;
    return (((turn >> o.run_bits) * o.chiplets + chiplet) << o.run_bits) + (turn & ((1u << o.run_bits) - 1));
}

/* Of attention, whose tiles in order are those of a head, then those of the next head, with the same keys and values or
 * with others. */
typedef struct share_order {
    uint32_t chiplets;
    uint32_t share; /* tiles of a chiplet, all neighbours; blocks behind all shares take the tile of their own number */
} share_order;

/* A bijection of the numbers below chiplets * share, and of those from there on. */
TILE_BOTH_SIDES int64_t shared_tile_of_block(int64_t block, share_order o) {
    if (block >= (int64_t)o.chiplets * o.share) return block;
    const uint32_t turn = (uint32_t)block / o.chiplets, chiplet = (uint32_t)block - turn * o.chiplets;
    return (int64_t)chiplet * o.share + turn;
}

/* The tile at a place of a head's: the last, the first, the last but one, the second. Under a causal mask each has more
 * to do than the one before it; of two neighbours here any two have as much, and so have shares, wherever in a head
 * they begin and end. */
TILE_BOTH_SIDES int64_t tile_from_ends(int64_t place, int64_t tiles) {
    return place % 2 ? place / 2 : tiles - 1 - place / 2;
}

#endif
