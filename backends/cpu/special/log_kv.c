/* SPDX-License-Identifier: Apache-2.0 */
/* log_kv on the CPU. */
#include "special.h"
#include "spec/places/log_kv.h"

static void row(const run *r) { special_run(r, LOG_KV_V, 0, LOG_KV_X, SPECIAL_NONE, LOG_KV_Y, special_log_kv); }

WALK_KERNELS(log_kv, special_edges);
