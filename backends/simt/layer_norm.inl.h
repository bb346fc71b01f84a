/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices. */
#include "norm_rows.h"

EACH_NORM(NORM_ENTRIES, layer_norm, true)
