/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of two words. */
#ifndef TRINE_TILE_BYTES_H
#define TRINE_TILE_BYTES_H

#include "backends/simt/core/simt.h"

/* A word of four of their bytes, of which each four bits of `which` have the number: 0 to 3 in a, 4 to 7 in b. */
DEVICE uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t which) { return __byte_perm(a, b, which); }

#endif
