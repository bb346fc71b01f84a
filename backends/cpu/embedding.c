/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on the CPU: rows are copied. */
#include <string.h>

#include "ids.h"

enum { TABLE, IDS, Y };

static trine_status launch(const trine_call *call) {
    const trine_tensor *table = &call->tensor[TABLE], *ids = &call->tensor[IDS], *y = &call->tensor[Y];
    const int64_t v = table->shape[0], n = table->shape[1], t = ids->shape[0], size = (int64_t)trine_dtype_size(y->dtype);
    const trine_status status = ids_check(call, ids, v);
    if (status != TRINE_OK) return status;
    const int64_t from = table->stride[0] * size, to = y->stride[0] * size;
    /* Rows in parts, so that few long rows keep all threads busy. */
    const int64_t part = 4096, parts = (n * size + part - 1) / part;
#pragma omp parallel for schedule(static) num_threads(cpu_team(call, t * parts, 2 * t * n * size))
    for (int64_t k = 0; k < t * parts; k++) {
        const int64_t i = k / parts, first = k % parts * part, last = first + part < n * size ? first + part : n * size;
        memcpy((char *)y->data + i * to + first, (const char *)table->data + id_at(ids, i) * from + first, (size_t)(last - first));
    }
    return TRINE_OK;
}

CPU_KERNELS(embedding) = { { CPU_NAME, NULL, NULL, launch, NULL }, { 0 } };
