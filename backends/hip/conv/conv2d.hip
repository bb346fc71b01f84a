/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on CDNA devices: bf16 and f16 by the matrix units too. */
#include "backends/simt/conv/conv2d.inl.h"
#include "conv_mfma.h"

ENTRY(conv2d_mfma_bf16, SIMT_THREADS, conv_params) { conv_by_matrices<bf16>(p); }
ENTRY(conv2d_mfma_f16, SIMT_THREADS, conv_params) { conv_by_matrices<f16>(p); }
