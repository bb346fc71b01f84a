/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on devices. */
#include "norm_backward_rows.h"

NORM_BACKWARD_ENTRIES(layer_norm_backward, true, f32)
NORM_BACKWARD_ENTRIES(layer_norm_backward, true, bf16)
NORM_BACKWARD_ENTRIES(layer_norm_backward, true, f16)
