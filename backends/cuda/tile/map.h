/* SPDX-License-Identifier: Apache-2.0 */
/* A CUtensorMap as a parameter of device code: on the host the driver writes it, on the device copies read it. */
#ifndef TRINE_TILE_MAP_H
#define TRINE_TILE_MAP_H

#include <stdint.h>

typedef struct __attribute__((aligned(64))) tensor_map {
    uint64_t opaque[16];
} tensor_map;

#endif
