/* SPDX-License-Identifier: Apache-2.0 */
/* TMA boxes prefetched into L2 (PTX ISA 9.0, cp.async.bulk.prefetch.tensor), a hint: also before the previous launch
 * has ended, which may still write them, since there is one L2 for all SMs. */
#ifndef TRINE_TILE_FETCH_H
#define TRINE_TILE_FETCH_H

#include "hopper.h"

/* The box at (x, y, z), as copy_box() has it. */
DEVICE void fetch_box(const tensor_map *map, int x, int y, int z) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map), "r"(x), "r"(y), "r"(z));
}

#endif
