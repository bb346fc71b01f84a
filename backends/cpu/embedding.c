/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on the CPU: rows are copied. */
#include "ids.h"
#include "vec.h"

enum { TABLE, IDS, Y };

/* memcpy() past the caches. */
static void copy_streaming(char *to, const char *from, int64_t bytes) {
    int64_t i = (int64_t)(-(uintptr_t)to % VB);
    if (i > bytes) i = bytes;
    memcpy(to, from, (size_t)i);
    for (; i + VB <= bytes; i += VB) vstream(to + i, TRINE_F32, 0, vload(from + i, TRINE_F32, 0));
    memcpy(to + i, from + i, (size_t)(bytes - i));
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *table = &call->tensor[TABLE], *ids = &call->tensor[IDS], *y = &call->tensor[Y];
    const int64_t v = table->shape[0], n = table->shape[1], t = ids->shape[0], size = (int64_t)trine_dtype_size(y->dtype);
    const trine_status status = ids_check(call, ids, v);
    if (status != TRINE_OK) return status;
    const int64_t from = table->stride[0] * size, to = y->stride[0] * size;
    /* Rows in parts, so that few long rows keep all threads busy. */
    const int64_t part = 4096, parts = (n * size + part - 1) / part;
    const bool stream = t * n * size > cpu_of(call)->l3;
#pragma omp parallel num_threads(cpu_team(call, t *parts, 2 * t * n * size))
    {
        int64_t begin, end;
        cpu_share(t * parts, omp_get_thread_num(), omp_get_num_threads(), &begin, &end);
        for (int64_t k = begin; k < end; k++) {
            const int64_t i = k / parts, first = k % parts * part, bytes = n * size - first < part ? n * size - first : part;
            char *row = (char *)y->data + i * to + first;
            const char *entry = (const char *)table->data + id_at(ids, i) * from + first;
            if (stream)
                copy_streaming(row, entry, bytes);
            else
                memcpy(row, entry, (size_t)bytes);
        }
        if (stream) stream_fence();
    }
    return TRINE_OK;
}

CPU_KERNELS(embedding) = { { CPU_NAME, NULL, NULL, launch, NULL }, { 0 } };
