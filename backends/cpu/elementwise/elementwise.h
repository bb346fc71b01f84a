/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of the elementwise ops over their tensors, all of shape [p] [q] [r] n: an op's file is then only its
 * formula.
 *
 * Dimensions are merged wherever every tensor allows, so that contiguous tensors are one long run; the elements are
 * shared out evenly among the threads, in logical order. Inside a run each tensor has stride 1, or 0 where it is
 * broadcast. */
#ifndef TRINE_CPU_ELEMENTWISE_H
#define TRINE_CPU_ELEMENTWISE_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

enum { WALK_TENSORS = 5, WALK_RANK = 4 };

/* A part of a merged row; tensors by their places in the table. */
typedef struct run {
    const trine_call *call;
    char *at[WALK_TENSORS];   /* first element; NULL for an absent tensor */
    bool still[WALK_TENSORS]; /* stride 0: one element for the whole run */
    int64_t index;            /* of the first element in logical row-major order */
    int64_t n;
    bool stream; /* store past the caches */
} run;

typedef void (*run_fn)(const run *r);

/* The merged dimensions, outermost first, and byte strides. */
typedef struct walk {
    int rank;
    const int64_t *whole; /* the op's shape, before dimensions are merged */
    int64_t count, shape[WALK_RANK + 1], stride[WALK_TENSORS][WALK_RANK + 1];
    run start;
} walk;

/* Can dimension d be followed by the last one of the walk as one? */
static inline bool walk_merges(const walk *w, const trine_call *call, int d) {
    const int last = w->rank - 1;
    for (int i = 0; i < call->plan->tensors; i++) {
        const int64_t size = (int64_t)trine_dtype_size(call->tensor[i].dtype);
        if (w->start.at[i] && w->stride[i][last] != call->tensor[i].stride[d] * size * w->whole[d]) return false;
    }
    return true;
}

/* Is tensor i given, and of the shape that is walked? */
static inline bool walk_has(const trine_call *call, int i) {
    return call->present >> i & 1 && call->plan->tensor[i].rank == WALK_RANK;
}

static inline walk walk_of(const trine_call *call) {
    int output = 0;
    while (!(call->plan->tensor[output].spec->flags & OUT)) output++;
    const int64_t *shape = call->tensor[output].shape;
    walk w = { .whole = shape, .count = 1, .start = { .call = call } };
    for (int i = 0; i < call->plan->tensors; i++)
        if (walk_has(call, i)) w.start.at[i] = call->tensor[i].data;
    bool runs = false; /* is the last dimension of stride 1, or 0 in a tensor that may be broadcast? */
    for (int d = 0; d < WALK_RANK; d++) {
        w.count *= shape[d];
        if (shape[d] == 1) continue;
        const bool merge = w.rank > 0 && walk_merges(&w, call, d);
        w.rank += !merge;
        w.shape[w.rank - 1] = merge ? w.shape[w.rank - 1] * shape[d] : shape[d];
        runs = true;
        for (int i = 0; i < call->plan->tensors; i++) {
            const int64_t stride = w.start.at[i] ? call->tensor[i].stride[d] : 0;
            w.stride[i][w.rank - 1] = stride * (int64_t)trine_dtype_size(call->tensor[i].dtype);
            w.start.still[i] = stride == 0;
            runs &= stride == 1 || !w.start.at[i] || (stride == 0 && call->plan->tensor[i].spec->flags & BROADCAST);
        }
    }
    if (!runs) w.shape[w.rank++] = 1; /* strides there are 0 */
    return w;
}

/* Runs elements first .. last-1. */
static inline void walk_range(const walk *w, int64_t first, int64_t last, run_fn fn) {
    const int inner = w->rank - 1;
    int64_t place[WALK_RANK + 1] = { 0 };
    run r = w->start;
    int64_t rest = first;
    for (int d = inner; d >= 0; d--) {
        place[d] = rest % w->shape[d];
        rest /= w->shape[d];
        for (int i = 0; i < WALK_TENSORS; i++)
            if (r.at[i]) r.at[i] += place[d] * w->stride[i][d];
    }
    for (r.index = first; r.index < last; r.index += r.n) {
        r.n = w->shape[inner] - place[inner];
        if (r.n > last - r.index) r.n = last - r.index;
        fn(&r);
        place[inner] += r.n;
        for (int i = 0; i < WALK_TENSORS; i++)
            if (r.at[i]) r.at[i] += r.n * w->stride[i][inner];
        for (int d = inner; d > 0 && place[d] == w->shape[d]; d--) {
            place[d] = 0;
            place[d - 1]++;
            for (int i = 0; i < WALK_TENSORS; i++)
                if (r.at[i]) r.at[i] += w->stride[i][d - 1] - w->shape[d] * w->stride[i][d];
        }
    }
}

typedef struct walk_job {
    const walk *w;
    run_fn fn;
    int64_t blocks; /* of WALK_BLOCK elements */
} walk_job;

enum { WALK_BLOCK = 64 }; /* so that no two threads store to one line of a contiguous tensor */

static void walk_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const walk_job *job = context;
    (void)thread;
    last = last * WALK_BLOCK < job->w->count ? last * WALK_BLOCK : job->w->count;
    if (first < last) walk_range(job->w, first * WALK_BLOCK, last, job->fn);
    if (job->w->start.stream) stream_fence();
}

/* Runs fn over all elements. Streaming pays when the outputs go to memory anyway, and loses when a tensor is updated in
 * place: its lines are in the cache already. */
static inline trine_status walk_all(const trine_call *call, run_fn fn) {
    if (call->plan->tensors > WALK_TENSORS)
        return call->host->error(TRINE_ERR_INTERNAL, "%s: a walk has room for %d tensors", call->plan->spec->name,
                                 WALK_TENSORS);
    walk w = walk_of(call);
    int64_t bytes = 0, written = 0;
    for (int i = 0; i < call->plan->tensors; i++) {
        if (!w.start.at[i]) continue;
        const int64_t size = w.count * (int64_t)trine_dtype_size(call->tensor[i].dtype);
        const bool out = call->plan->tensor[i].spec->flags & OUT;
        bytes += size;
        if (out) written += size;
        for (int j = 0; j < i && out; j++)
            if (w.start.at[j] == w.start.at[i]) written = INT64_MIN / 2;
    }
    w.start.stream = written > cpu_of(call)->l3;
    const walk_job job = { &w, fn, (w.count + WALK_BLOCK - 1) / WALK_BLOCK };
    cpu_shares(call, cpu_team(call, job.blocks, bytes), job.blocks, walk_blocks, &job);
    return TRINE_OK;
}

/* The dimension that runs are along. */
static inline int walk_symbol(const trine_call *call) { return call->plan->tensor[0].dim[WALK_RANK - 1].symbol; }

/* Of every walk: vectors, blocks, threads, and stores past the caches. */
static inline void walk_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int symbol = walk_symbol(call);
    int64_t bytes = 0, written = 0;
    for (int i = 0; i < call->plan->tensors; i++) {
        if (!walk_has(call, i)) continue;
        const int64_t size = (int64_t)trine_dtype_size(call->tensor[i].dtype);
        bytes += size;
        if (call->plan->tensor[i].spec->flags & OUT) written += size;
    }
    trine_kernel_edge(edges, symbol, VL);
    trine_kernel_edge(edges, symbol, WALK_BLOCK);
    cpu_team_edge(edges, symbol, bytes);
    /* cppcheck-suppress zerodiv ; an op has an output */
    trine_kernel_edge(edges, symbol, cpu_of(call)->l3 / written);
}

/* At the end of an op's file: its kernel, whose row() is run over all elements; its edges are `which`. */
#define WALK_KERNELS(op, which) \
    static trine_status launch(const trine_call *call) { return walk_all(call, row); } \
    CPU_KERNELS(op) = { { CPU_NAME, NULL, NULL, launch, .edges = (which) }, { 0 } }

/* ----------------------------------------------------------------------------------------------------- inside a run */

/* Elements i .. i+m-1 of a run, at most VL; `stream` if they are to be stored past the caches, aligned.
 * Constants but for i, once inlined. */
typedef struct span {
    int64_t i;
    int m;
    bool stream;
} span;

INLINE vf span_load(const run *r, int tensor, trine_dtype dtype, span s) {
    return s.m == VL ? vload(r->at[tensor], dtype, s.i) : vloadn(r->at[tensor], dtype, s.i, s.m, 0);
}

/* Of a tensor that may be broadcast. */
INLINE vf span_load_any(const run *r, int tensor, trine_dtype dtype, span s) {
    return r->still[tensor] ? vset(sload(r->at[tensor], dtype, 0)) : span_load(r, tensor, dtype, s);
}

INLINE void span_store(const run *r, int tensor, trine_dtype dtype, span s, vf x) {
    if (s.stream)
        vstream(r->at[tensor], dtype, s.i, x);
    else if (s.m == VL)
        vstore(r->at[tensor], dtype, s.i, x);
    else
        vstoren(r->at[tensor], dtype, s.i, s.m, x);
}

/* How many elements come before the first that vstream() could store, at most n. */
INLINE int64_t run_head(const char *data, trine_dtype dtype, int64_t n) {
    const int64_t size = (int64_t)vsize(dtype), head = (int64_t)(-(uintptr_t)data % (VL * (uintptr_t)size)) / size;
    return head < n ? head : n;
}

/* step(..., span) over a run, spans in ascending order; only stores to tensor `y` of type `dtype` may stream. */
#define EACH_SPAN(r, y, dtype, step, ...) \
    do { \
        int64_t i_ = 0; \
        if ((r)->stream) { \
            i_ = run_head((r)->at[y], dtype, (r)->n); \
            if (i_ > 0) step(__VA_ARGS__, (span){ 0, (int)i_, false }); \
            for (; i_ + VL <= (r)->n; i_ += VL) step(__VA_ARGS__, (span){ i_, VL, true }); \
        } \
        for (; i_ + VL <= (r)->n; i_ += VL) step(__VA_ARGS__, (span){ i_, VL, false }); \
        if (i_ < (r)->n) step(__VA_ARGS__, (span){ i_, (int)((r)->n - i_), false }); \
    } while (0)

/* slope up dy, of a slope up to 1.13: an `up` that it would make Inf is taken by halves, whatever dy. */
INLINE vf gated_slope(vf slope, vf up, vf dy) {
    const vi large = vabs(up) >= 0x1p127f;
    return slope * (up * vsel(large, vset(0.5f), vset(1.0f))) * dy * vsel(large, vset(2.0f), vset(1.0f));
}

#endif
