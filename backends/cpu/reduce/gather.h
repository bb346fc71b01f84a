/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table in the order of an index, on the CPU: what embedding and gather_rows share. */
#ifndef TRINE_CPU_GATHER_H
#define TRINE_CPU_GATHER_H

#include "ids.h"
#include "backends/cpu/core/vec.h"

/* memcpy() past the caches. */
static inline void copy_streaming(char *to, const char *from, int64_t bytes) {
    int64_t i = (int64_t)(-(uintptr_t)to % VB);
    if (i > bytes) i = bytes;
    memcpy(to, from, (size_t)i);
    for (; i + VB <= bytes; i += VB) vstream(to + i, TRINE_F32, 0, vload(from + i, TRINE_F32, 0));
    memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* Rows in parts, so that few long rows keep all threads busy. */
enum { PART = 4096, SHORT = 256 /* of which one is not worth going past the caches */ };

typedef struct gather {
    const trine_tensor *table, *ids, *y;
    int missing; /* the bytes of a row whose id is out of range */
    bool pad;    /* a row whose id is -1 is 0 */
    bool stream;
    int64_t bytes, parts; /* of a row */
} gather;

static inline void gather_parts(const void *context, int64_t begin, int64_t end, int thread) {
    const gather *g = context;
    const int64_t size = (int64_t)trine_dtype_size(g->y->dtype), from = g->table->stride[0] * size,
                  to = g->y->stride[0] * size;
    (void)thread;
    int64_t i = begin / g->parts, first = begin % g->parts * PART;
    for (int64_t k = begin; k < end; k++) {
        const int64_t bytes = g->bytes - first < PART ? g->bytes - first : PART, id = id_at(g->ids, i);
        const bool there = id >= 0 && id < g->table->shape[0];
        char *row = (char *)g->y->data + i * to + first;
        const char *entry = (const char *)g->table->data + (there ? id : 0) * from + first;
        if (!there)
            memset(row, id == -1 && g->pad ? 0 : g->missing, (size_t)bytes);
        else if (g->stream)
            copy_streaming(row, entry, bytes);
        else
            memcpy(row, entry, (size_t)bytes);
        first += PART;
        if (first >= g->bytes) i++, first = 0;
    }
    if (g->stream) stream_fence();
}

static inline void gather_run(const trine_call *call, gather g) {
    const int64_t rows = g.y->shape[0];
    g.bytes = g.y->shape[1] * (int64_t)trine_dtype_size(g.y->dtype);
    g.parts = (g.bytes + PART - 1) / PART;
    g.stream = g.bytes >= SHORT && rows * g.bytes > cpu_of(call)->l3;
    cpu_shares(call, cpu_team(call, rows * g.parts, 2 * rows * g.bytes), rows * g.parts, gather_parts, &g);
}

static inline void gather_edges(const trine_call *call, trine_kernel_edges *edges, trine_dtype dtype, int symbol) {
    const int64_t size = (int64_t)trine_dtype_size(dtype);
    trine_kernel_edge(edges, symbol, VB / size);
    trine_kernel_edge(edges, symbol, PART / size);
    trine_kernel_edge(edges, symbol, cpu_of(call)->l3 / size);
}

#endif
