/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on devices: the host side. */
#include "norm_launch.h"

SIMT_KERNELS(rms_norm_backward) = { NORM_BACKWARD_KERNELS(norm_backward_rms), { 0 } };
