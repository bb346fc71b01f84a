/* SPDX-License-Identifier: Apache-2.0 */
/* log_kv_backward on the CPU. */
#include "special.h"
#include "spec/places/log_kv_backward.h"

static void row(const run *r) {
    special_run(r, LOG_KV_BACKWARD_V, 0, LOG_KV_BACKWARD_X, LOG_KV_BACKWARD_DY, LOG_KV_BACKWARD_DX,
                special_log_kv_slope);
}

WALK_KERNELS(log_kv_backward, special_edges);
