/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on CUDA devices: bf16 and f16 by the tensor cores of sm_80 and later too. */
#include "conv_mma.h"

/* Without tensor cores 16 bits are for sizes beyond 2^28 alone, and f64 is rare. */
template <class T> DEVICE void rare_dx(const conv_params &p) { conv_tile<T, false, true>(p); }
template <class T> DEVICE void rare_tiles(const conv_gradient_params &p) { gradient_tile<T, false>(p); }
GRADIENT_ENTRIES(f32, gradient_dx, gradient_tiles)
GRADIENT_ENTRIES(f64, rare_dx, rare_tiles)
GRADIENT_ENTRIES(bf16, rare_dx, rare_tiles)
GRADIENT_ENTRIES(f16, rare_dx, rare_tiles)

#define MMA_OF(ROWS, COLUMNS, HELD, T) \
    ENTRY_HELD(conv2d_backward_dx_mma_##ROWS##x##COLUMNS##_##T, CONV_MMA_THREADS, HELD, conv_params) { \
        conv_mma<T, conv_shape<ROWS, COLUMNS>, true, false>(p); \
    } \
    ENTRY_HELD(conv2d_backward_mma_##ROWS##x##COLUMNS##_##T, CONV_MMA_THREADS, HELD, conv_gradient_params) { \
        gradient_mma<T, conv_shape<ROWS, COLUMNS>>(p); \
    }
#define MMA(ROWS, COLUMNS, HELD) MMA_OF(ROWS, COLUMNS, HELD, bf16) MMA_OF(ROWS, COLUMNS, HELD, f16)
CONV_MMA_GRADIENT_SHAPES(MMA)
