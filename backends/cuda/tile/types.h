/* SPDX-License-Identifier: Apache-2.0 */
/* Names of element types that only tensor cores have. */
#ifndef TRINE_TILE_TYPES_H
#define TRINE_TILE_TYPES_H

/* f32 of which the upper 19 bits count. */
struct tf32 {};

/* Products of float8: a's type, then b's. */
struct e4m3_e4m3 {};
struct e4m3_e5m2 {};
struct e5m2_e4m3 {};

#endif
