/* SPDX-License-Identifier: Apache-2.0 */
/* Ops within a call of an op that is made of them. */
#ifndef TRINE_COMPOSED_NESTED_H
#define TRINE_COMPOSED_NESTED_H

#include <trine/ops.h>

#include "backends/backend.h"

/* An op within the call: run, with the *bytes of the workspace from `at` on; or what it needs of that taken into
 * account in *bytes. */
static inline trine_status nested_step(const trine_call *call, bool run, trine_op op, const void *args, size_t at,
                                       size_t *bytes) {
    size_t need;
    if (run) return call->host->nested_run(call, op, args, (char *)call->workspace + at, *bytes);
    const trine_status status = call->host->nested_workspace(call, op, args, &need);
    if (status == TRINE_OK && need > *bytes) *bytes = need;
    return status;
}

#endif
