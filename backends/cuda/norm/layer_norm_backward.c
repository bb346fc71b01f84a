/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on CUDA devices: the host side. */
#include "norm_host.h"

SIMT_KERNELS(layer_norm_backward) = { NORM_BACKWARD_KERNELS_CUDA(norm_backward_layer),
                                      NORM_BACKWARD_KERNELS(norm_backward_layer),
                                      { 0 } };
