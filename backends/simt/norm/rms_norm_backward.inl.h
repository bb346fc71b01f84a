/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on devices. */
#include "norm_backward_rows.h"

NORM_BACKWARD_ENTRIES(rms_norm_backward, false, f32)
NORM_BACKWARD_ENTRIES(rms_norm_backward, false, bf16)
NORM_BACKWARD_ENTRIES(rms_norm_backward, false, f16)
