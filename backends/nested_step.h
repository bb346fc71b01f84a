/* SPDX-License-Identifier: Apache-2.0 */
/* Ops within a kernel of another, which together need the largest of their workspaces. */
#ifndef TRINE_BACKENDS_NESTED_STEP_H
#define TRINE_BACKENDS_NESTED_STEP_H

#include "backends/backend.h"

/* Runs an op with the workspace of the call from `at` on; bytes: not run, and what it needs if that is more than
 * *bytes. */
static inline trine_status nested_step(const trine_call *call, size_t at, int op, const void *args, size_t *bytes) {
    size_t need = 0;
    if (!bytes)
        return call->host->nested_run(call, op, args, call->workspace ? (char *)call->workspace + at : NULL,
                                      call->workspace_size - at);
    const trine_status status = call->host->nested_workspace(call, op, args, &need);
    if (need > *bytes) *bytes = need;
    return status;
}

#endif
