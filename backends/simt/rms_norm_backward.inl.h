/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on devices. */
#include "norm_backward_rows.h"

NORM_BACKWARD_ENTRIES(rms_norm_backward, false)
