/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on devices. */
#include "norm_backward_rows.h"
#include "norm_mask.h"

NORM_BACKWARD_ENTRIES(rms_norm_backward, false, f32)
NORM_BACKWARD_ENTRIES(rms_norm_backward, false, bf16)
NORM_BACKWARD_ENTRIES(rms_norm_backward, false, f16)
NORM_MASKS(rms_norm_backward)
