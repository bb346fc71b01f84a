/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on the CPU: rows are copied. */
#include "ids.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/embedding.h"

/* memcpy() past the caches. */
static void copy_streaming(char *to, const char *from, int64_t bytes) {
    int64_t i = (int64_t)(-(uintptr_t)to % VB);
    if (i > bytes) i = bytes;
    memcpy(to, from, (size_t)i);
    for (; i + VB <= bytes; i += VB) vstream(to + i, TRINE_F32, 0, vload(from + i, TRINE_F32, 0));
    memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* Rows in parts, so that few long rows keep all threads busy. */
enum { PART = 4096 };

typedef struct gather {
    const trine_tensor *table, *ids, *y;
    int64_t t, bytes, parts; /* rows; bytes and parts of one */
    bool stream;
} gather;

static void gather_parts(const void *context, int64_t begin, int64_t end, int thread) {
    const gather *g = context;
    const int64_t size = (int64_t)trine_dtype_size(g->y->dtype), from = g->table->stride[0] * size,
                  to = g->y->stride[0] * size;
    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        const int64_t i = k / g->parts, first = k % g->parts * PART,
                      bytes = g->bytes - first < PART ? g->bytes - first : PART;
        char *row = (char *)g->y->data + i * to + first;
        const char *entry = (const char *)g->table->data + id_at(g->ids, i) * from + first;
        if (g->stream)
            copy_streaming(row, entry, bytes);
        else
            memcpy(row, entry, (size_t)bytes);
    }
    if (g->stream) stream_fence();
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *table = &call->tensor[EMBEDDING_TABLE], *ids = &call->tensor[EMBEDDING_IDS],
                       *y = &call->tensor[EMBEDDING_Y];
    const int64_t t = ids->shape[0], bytes = table->shape[1] * (int64_t)trine_dtype_size(y->dtype);
    const trine_status status = ids_check(call, ids, table->shape[0]);
    if (status != TRINE_OK) return status;
    const gather g = { table, ids, y, t, bytes, (bytes + PART - 1) / PART, t * bytes > cpu_of(call)->l3 };
    cpu_shares(call, cpu_team(call, t * g.parts, 2 * t * bytes), t * g.parts, gather_parts, &g);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t size = (int64_t)trine_dtype_size(call->tensor[EMBEDDING_Y].dtype);
    trine_kernel_edge(edges, EMBEDDING_DIM_N, VB / size);
    trine_kernel_edge(edges, EMBEDDING_DIM_N, PART / size);
    trine_kernel_edge(edges, EMBEDDING_DIM_N, cpu_of(call)->l3 / size);
}

CPU_KERNELS(embedding) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
