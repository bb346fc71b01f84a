/* SPDX-License-Identifier: Apache-2.0 */
/* log_iv on the CPU. */
#include "special.h"
#include "spec/places/log_iv.h"

static void row(const run *r) { special_run(r, LOG_IV_V, 0, LOG_IV_X, SPECIAL_NONE, LOG_IV_Y, special_log_iv); }

WALK_KERNELS(log_iv, special_edges);
