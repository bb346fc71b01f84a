/* SPDX-License-Identifier: Apache-2.0 */
/* Row numbers of a table, i32 or i64, which the caller may have wrong. */
#ifndef TRINE_CPU_IDS_H
#define TRINE_CPU_IDS_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"

static inline int64_t id_at(const trine_tensor *ids, int64_t i) {
    return ids->dtype == TRINE_I32 ? ((const int32_t *)ids->data)[i] : ((const int64_t *)ids->data)[i];
}

/* All ids must be in [0, v); the error names the first that is not. */
static inline trine_status ids_check(const trine_call *call, const trine_tensor *ids, int64_t v) {
    const int64_t t = ids->shape[0];
    int64_t first = 0;
    while (first < t && (uint64_t)id_at(ids, first) < (uint64_t)v) first++;
    if (first == t) return TRINE_OK;
    return call->host->error(TRINE_ERR_ARGUMENT,
                             "%s: ids[%" PRId64 "] = %" PRId64 ", but the table has %" PRId64 " rows",
                             call->plan->spec->name, first, id_at(ids, first), v);
}

#endif
