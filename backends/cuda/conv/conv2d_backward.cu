/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on CUDA devices: the gradient by x of bf16 and f16 by the tensor cores of sm_80 and later. */
#include "conv_mma.h"
#include "backends/simt/conv/gradient.inl.h"

ENTRY(conv2d_backward_dx_f32, SIMT_THREADS, conv_params) { conv_tiles<f32, true>(p); }
ENTRY(conv2d_backward_dx_bf16, SIMT_THREADS, conv_params) { conv_mma<bf16, true>(p); }
ENTRY(conv2d_backward_dx_f16, SIMT_THREADS, conv_params) { conv_mma<f16, true>(p); }
ENTRY(conv2d_backward_dx_f64, SIMT_THREADS, conv_params) { conv_tiles<f64, true>(p); }
GRADIENT_ENTRIES(f32)
GRADIENT_ENTRIES(bf16)
GRADIENT_ENTRIES(f16)
GRADIENT_ENTRIES(f64)
