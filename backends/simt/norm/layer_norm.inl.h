/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices. */
#include "norm_rows.h"
#include "norm_mask.h"
#include "norm_same.h"

NORM_ROW_ENTRIES(layer_norm, true, f32)
NORM_ROW_ENTRIES(layer_norm, true, bf16)
NORM_ROW_ENTRIES(layer_norm, true, f16)
NORM_MASKS(layer_norm)
NORM_SAME(layer_norm, true)
