/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on CUDA devices: the host side. */
#include "norm_host.h"

SIMT_KERNELS(rms_norm_backward) = { NORM_BACKWARD_KERNELS_CUDA(norm_backward_rms),
                                    NORM_BACKWARD_KERNELS(norm_backward_rms),
                                    { 0 } };
