/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on sm_90a. */
#include "conv_sm90.inl.h"

#define TILES(T, N) \
    ENTRY_AHEAD(conv2d_sm90_##N##_##T, MATMUL_SM90_THREADS, 1, conv_sm90_params) { conv_sm90<T, N, false>(p); }
#define TYPES(N) TILES(bf16, N) TILES(f16, N)
TYPES(256)
TYPES(128)
TYPES(64)
