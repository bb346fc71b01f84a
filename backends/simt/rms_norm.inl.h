/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices. */
#include "norm_rows.h"

EACH_NORM(NORM_ENTRIES, rms_norm, false)
