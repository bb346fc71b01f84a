/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on sm_90a. */
#include "matmul_sm90.inl.h"

/* The parts of a name: x's and y's consecutive direction, k or lane. */
#define TILES(kind, T, name, N, x, y, X_ACROSS, Y_ACROSS) \
    ENTRY_AHEAD(matmul_##kind##_##name##_##N##_##x##y, MATMUL_SM90_THREADS, 1, matmul_sm90_params) { \
        matmul_##kind<T, N, X_ACROSS, Y_ACROSS>(p); \
    }
#define TILES_KK(kind, T, name, N) TILES(kind, T, name, N, k, k, false, false)
#define TILES_XK(kind, T, name, N) TILES_KK(kind, T, name, N) TILES(kind, T, name, N, l, k, true, false)
#define TILES_XY(kind, T, name, N) \
    TILES_XK(kind, T, name, N) TILES(kind, T, name, N, k, l, false, true) TILES(kind, T, name, N, l, l, true, true)

#define TILES_16(T) \
    TILES_XY(pairs, T, T, 256) \
    TILES_XK(pairs, T, T, 224) \
    TILES_XY(pairs, T, T, 128) \
    TILES_XY(split, T, T, 128) \
    TILES_XY(split, T, T, 64) TILES_XK(split, T, T, 32) TILES_XK(split, T, T, 16) TILES_XK(split, T, T, 8)
#define TILES_ALONG(T, name) \
    TILES_KK(pairs, T, name, 256) \
    TILES_KK(pairs, T, name, 224) \
    TILES_KK(pairs, T, name, 128) \
    TILES_KK(split, T, name, 128) \
    TILES_KK(split, T, name, 64) TILES_KK(split, T, name, 32) TILES_KK(split, T, name, 16) TILES_KK(split, T, name, 8)

TILES_16(bf16)
TILES_16(f16)
TILES_ALONG(int8_t, i8)
TILES_ALONG(tf32, tf32)
TILES_ALONG(e4m3_e4m3, e4m3_e4m3)
TILES_ALONG(e4m3_e5m2, e4m3_e5m2)
TILES_ALONG(e5m2_e4m3, e5m2_e4m3)
