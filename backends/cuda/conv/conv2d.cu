/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on CUDA devices: bf16 and f16 by the tensor cores of sm_80 and later too. */
#include "conv_mma.h"

/* Without tensor cores 16 bits are for sizes beyond 2^28 alone, and f64 is rare. */
CONV_ENTRIES(conv2d, f32, conv_tiles<f32, false>)
CONV_ENTRIES(conv2d, f64, conv_tile<f64, false, false>)
CONV_ENTRIES(conv2d, bf16, conv_tile<bf16, false, false>)
CONV_ENTRIES(conv2d, f16, conv_tile<f16, false, false>)

#define MMA(ROWS, COLUMNS, HELD) \
    ENTRY_HELD(conv2d_mma_##ROWS##x##COLUMNS##_bf16, CONV_MMA_THREADS, HELD, conv_params) { \
        conv_mma<bf16, conv_shape<ROWS, COLUMNS>, false, false>(p); \
    } \
    ENTRY_HELD(conv2d_mma_##ROWS##x##COLUMNS##_f16, CONV_MMA_THREADS, HELD, conv_params) { \
        conv_mma<f16, conv_shape<ROWS, COLUMNS>, false, false>(p); \
    }
CONV_MMA_SHAPES(MMA)
