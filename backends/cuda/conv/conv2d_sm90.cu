/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on sm_90a. */
#include "conv_sm90.inl.h"

#define TILES(ROWS, N, T) \
    ENTRY_AHEAD(conv2d_sm90_##ROWS##x##N##_##T, CONV_SM90_THREADS(ROWS), 1, conv_sm90_params) { \
        conv_sm90<T, ROWS, N, false>(p); \
    }
#define TYPES(ROWS, N) TILES(ROWS, N, bf16) TILES(ROWS, N, f16)
CONV_SM90_SHAPES(TYPES)
