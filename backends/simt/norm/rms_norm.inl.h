/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices. */
#include "norm_rows.h"

ROW_ENTRIES_1(rms_norm, norm_params, 1, f32)
ROW_ENTRIES_1(rms_norm, norm_params, 1, bf16)
ROW_ENTRIES_1(rms_norm, norm_params, 1, f16)
