/* SPDX-License-Identifier: Apache-2.0 */
/* conv3d on CUDA devices: bf16 and f16 by the tensor cores of sm_80 and later, f32 and f64 without. */
#include "conv_mma.h"

ENTRY(conv3d_few_f32, SIMT_THREADS, conv_params) { conv_few<f32>(p); }
ENTRY(conv3d_few_bf16, SIMT_THREADS, conv_params) { conv_few<bf16>(p); }
ENTRY(conv3d_few_f16, SIMT_THREADS, conv_params) { conv_few<f16>(p); }
ENTRY(conv3d_few_f64, SIMT_THREADS, conv_params) { conv_few<f64>(p); }
ENTRY(conv3d_f32, SIMT_THREADS, conv_params) { conv_tiles<f32, false>(p); }
ENTRY(conv3d_bf16, SIMT_THREADS, conv_params) { conv_mma<bf16, false>(p); }
ENTRY(conv3d_f16, SIMT_THREADS, conv_params) { conv_mma<f16, false>(p); }
ENTRY(conv3d_f64, SIMT_THREADS, conv_params) { conv_tiles<f64, false>(p); }
