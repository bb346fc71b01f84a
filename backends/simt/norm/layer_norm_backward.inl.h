/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on devices. */
#include "norm_backward_rows.h"
#include "norm_mask.h"

NORM_BACKWARD_ENTRIES(layer_norm_backward, true, f32)
NORM_BACKWARD_ENTRIES(layer_norm_backward, true, bf16)
NORM_BACKWARD_ENTRIES(layer_norm_backward, true, f16)
NORM_MASKS(layer_norm_backward)
