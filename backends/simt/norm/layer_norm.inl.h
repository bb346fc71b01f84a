/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices. */
#include "norm_rows.h"

NORM_ROW_ENTRIES(layer_norm, true, f32)
NORM_ROW_ENTRIES(layer_norm, true, bf16)
NORM_ROW_ENTRIES(layer_norm, true, f16)
