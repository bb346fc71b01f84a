/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on sm_90a. */
#include "matmul_sm90.inl.h"

/* The parts of a name: x's and y's consecutive direction, k or lane. */
#define PAIRS(T, name, x, y, X_ACROSS, Y_ACROSS) \
    ENTRY_AHEAD(matmul_pairs_##name##_##x##y, MATMUL_SM90_THREADS, 1, matmul_sm90_params) { \
        matmul_pairs<T, X_ACROSS, Y_ACROSS>(p); \
    }
#define SPLIT(T, name, N, x, y, X_ACROSS, Y_ACROSS) \
    ENTRY_AHEAD(matmul_split_##name##_##N##_##x##y, MATMUL_SM90_THREADS, 1, matmul_sm90_params) { \
        matmul_split<T, N, X_ACROSS, Y_ACROSS>(p); \
    }
#define SPLIT_KK(T, name, N) SPLIT(T, name, N, k, k, false, false)
#define SPLIT_XK(T, name, N) SPLIT_KK(T, name, N) SPLIT(T, name, N, l, k, true, false)
#define SPLIT_XY(T, name, N) \
    SPLIT_XK(T, name, N) SPLIT(T, name, N, k, l, false, true) SPLIT(T, name, N, l, l, true, true)

#define TILES_16(T) \
    PAIRS(T, T, k, k, false, false) \
    PAIRS(T, T, l, k, true, false) \
    PAIRS(T, T, k, l, false, true) \
    PAIRS(T, T, l, l, true, true) \
    SPLIT_XY(T, T, 64) SPLIT_XK(T, T, 32) SPLIT_XK(T, T, 16) SPLIT_XK(T, T, 8)
#define TILES_ALONG(T, name) \
    PAIRS(T, name, k, k, false, false) \
    SPLIT_KK(T, name, 64) SPLIT_KK(T, name, 32) SPLIT_KK(T, name, 16) SPLIT_KK(T, name, 8)

TILES_16(bf16)
TILES_16(f16)
TILES_ALONG(int8_t, i8)
TILES_ALONG(tf32, tf32)
TILES_ALONG(e4m3_e4m3, e4m3_e4m3)
TILES_ALONG(e4m3_e5m2, e4m3_e5m2)
TILES_ALONG(e5m2_e4m3, e5m2_e4m3)
