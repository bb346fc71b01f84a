/* SPDX-License-Identifier: Apache-2.0 */
/* log_iv_backward on the CPU. */
#include "special.h"
#include "spec/places/log_iv_backward.h"

static void row(const run *r) {
    special_run(r, LOG_IV_BACKWARD_V, 0, LOG_IV_BACKWARD_X, LOG_IV_BACKWARD_DY, LOG_IV_BACKWARD_DX,
                special_log_iv_slope);
}

WALK_KERNELS(log_iv_backward, special_edges);
