/* SPDX-License-Identifier: Apache-2.0 */
/* The class labels of cross_entropy and its gradient. */
#ifndef TRINE_CPU_LABELS_H
#define TRINE_CPU_LABELS_H

#include "cpu.h"

static inline int64_t label_at(const trine_tensor *labels, int64_t i) {
    return labels->dtype == TRINE_I32 ? ((const int32_t *)labels->data)[i] : ((const int64_t *)labels->data)[i];
}

/* TRINE_OK if every label is in [0, v) or `ignore`; else an error that names the first that is not. */
static inline trine_status labels_check(const trine_call *call, const trine_tensor *labels, int64_t v, int64_t ignore) {
    const int64_t rows = labels->shape[0];
    int64_t bad = rows;
#pragma omp parallel for reduction(min : bad) num_threads(cpu_team(call, rows, rows * 8))
    for (int64_t i = 0; i < rows; i++) {
        const int64_t y = label_at(labels, i);
        if ((y < 0 || y >= v) && y != ignore && i < bad) bad = i;
    }
    if (bad == rows) return TRINE_OK;
    return call->host->error(TRINE_ERR_ARGUMENT, "%s: labels[%lld] = %lld is neither in [0, v = %lld) nor the ignored label %lld",
                             call->plan->spec->name, (long long)bad, (long long)label_at(labels, bad), (long long)v, (long long)ignore);
}

#endif
