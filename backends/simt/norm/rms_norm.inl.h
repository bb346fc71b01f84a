/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices. */
#include "norm_rows.h"
#include "norm_mask.h"
#include "norm_same.h"

NORM_ROW_ENTRIES(rms_norm, false, f32)
NORM_ROW_ENTRIES(rms_norm, false, bf16)
NORM_ROW_ENTRIES(rms_norm, false, f16)
NORM_MASKS(rms_norm)
NORM_SAME(rms_norm, false)
