/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_axpy on the CPU: the list in chunks, which know from a first pass how far the list had come before them. An
 * index beyond all before it has its element, and those that repeat it, up to the next such one: no two are at the
 * same. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/scatter_axpy.h"

enum { CHUNK = 4096, ENTRY_BYTES = 64 };

typedef struct scatter {
    const trine_tensor *w, *d;
    const void *index;
    void *saved; /* NULL: not asked for */
    int64_t p, m, n, chunks;
    int64_t *reached; /* before each chunk */
    float alpha;
    bool put, long_ids;
} scatter;

/* The place, or -1 if it is none. */
INLINE int64_t place_at(const scatter *a, int64_t i) {
    const int64_t id = a->long_ids ? ((const int64_t *)a->index)[i] : ((const int32_t *)a->index)[i];
    return id >= 0 && id < a->m * a->n ? id : -1;
}

static void reach(const void *context, int64_t first, int64_t last, int thread) {
    const scatter *a = context;
    (void)thread;
    for (int64_t c = first; c < last; c++) {
        const int64_t end = (c + 1) * CHUNK < a->p ? (c + 1) * CHUNK : a->p;
        int64_t most = -1;
        for (int64_t i = c * CHUNK; i < end; i++) most = place_at(a, i) > most ? place_at(a, i) : most;
        a->reached[c] = most;
    }
}

INLINE void copy(void *to, int64_t i, const void *from, int64_t j, trine_dtype T) {
    memcpy((char *)to + i * (int64_t)vsize(T), (const char *)from + j * (int64_t)vsize(T), vsize(T));
}

/* Entry i, the first at its place, and those that repeat it. */
INLINE void element(const scatter *a, int64_t i, int64_t place, trine_dtype W) {
    void *const w = (char *)a->w->data + (place / a->n * a->w->stride[0] + place % a->n) * (int64_t)vsize(W);
    const trine_dtype D = a->d->dtype == W ? W : TRINE_F32;
    float before[1] = { 0 };
    copy(before, 0, w, 0, W);
    float sum = sload(w, W, 0);
    int64_t last = i;
    for (int64_t e = i; e < a->p; e++) {
        const int64_t other = place_at(a, e);
        if (other > place) break;
        if (other < place) continue;
        last = e;
        if (a->saved) copy(a->saved, e, before, 0, W);
        if (!a->put) sum += a->alpha * sload(a->d->data, D, e);
    }
    if (!a->put)
        sstore(w, W, 0, sum);
    else if (D == W)
        copy(w, 0, a->d->data, last, W);
    else
        sstore(w, W, 0, sload(a->d->data, D, last));
}

INLINE void entries(const scatter *a, int64_t first, int64_t last, int64_t reached, trine_dtype W) {
    const uint32_t none = 0;
    for (int64_t i = first; i < last; i++) {
        const int64_t place = place_at(a, i);
        if (place > reached)
            element(a, i, place, W);
        else if (a->saved && (place < reached || place < 0))
            copy(a->saved, i, &none, 0, W);
        if (place > reached) reached = place;
    }
}

static void chunks(const void *context, int64_t first, int64_t last, int thread) {
    const scatter *a = context;
    (void)thread;
    for (int64_t c = first; c < last; c++) {
        const int64_t end = (c + 1) * CHUNK < a->p ? (c + 1) * CHUNK : a->p;
        FOR_TYPE(a->w->dtype, entries, a, c * CHUNK, end, a->reached[c]);
    }
}

static int64_t chunks_of(const trine_call *call) { return (call->dim[SCATTER_AXPY_DIM_P] + CHUNK - 1) / CHUNK; }

static size_t workspace(const trine_call *call) { return (size_t)chunks_of(call) * sizeof(int64_t); }

static trine_status launch(const trine_call *call) {
    const trine_scatter_axpy_args *args = call->args;
    const trine_tensor *index = &call->tensor[SCATTER_AXPY_INDEX], *saved = trine_call_given(call, SCATTER_AXPY_SAVED);
    const scatter a = { .w = &call->tensor[SCATTER_AXPY_W],
                        .d = &call->tensor[SCATTER_AXPY_D],
                        .index = index->data,
                        .saved = saved ? saved->data : NULL,
                        .p = call->dim[SCATTER_AXPY_DIM_P],
                        .m = call->dim[SCATTER_AXPY_DIM_M],
                        .n = call->dim[SCATTER_AXPY_DIM_N],
                        .chunks = chunks_of(call),
                        .reached = call->workspace,
                        .alpha = args->alpha + 0,
                        .put = args->put,
                        .long_ids = index->dtype == TRINE_I64 };
    const int team = cpu_team(call, a.chunks, a.p * ENTRY_BYTES);
    cpu_shares(call, team, a.chunks, reach, &a);
    int64_t before = -1;
    for (int64_t c = 0; c < a.chunks; c++) {
        const int64_t own = a.reached[c];
        a.reached[c] = before;
        before = own > before ? own : before;
    }
    cpu_shares(call, team, a.chunks, chunks, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SCATTER_AXPY_DIM_P, CHUNK);
    cpu_team_edge(edges, SCATTER_AXPY_DIM_P, ENTRY_BYTES);
}

CPU_KERNELS(scatter_axpy) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
