/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets of groups of rows, which only the host of a CPU can look at before it runs. */
#ifndef TRINE_CPU_GROUPED_OFFSETS_H
#define TRINE_CPU_GROUPED_OFFSETS_H

#include "backends/backend.h"

/* An error of `op` unless the e + 1 offsets ascend from at least 0 to p at most. */
static inline trine_status grouped_offsets_ascend(const trine_call *call, const char *op, const int32_t *offsets,
                                                  int64_t e, int64_t p) {
    for (int64_t g = 0; g <= e; g++)
        if (offsets[g] < (g > 0 ? offsets[g - 1] : 0) || offsets[g] > p)
            return call->host->error(TRINE_ERR_ARGUMENT,
                                     "%s: offsets[%lld] is %d, but must ascend from 0 to %lld at most", op,
                                     (long long)g, (int)offsets[g], (long long)p);
    return TRINE_OK;
}

#endif
