/* SPDX-License-Identifier: Apache-2.0 */
/* What ops along time share on the CPU: a task is a block of channels of a sequence, all of whose steps it takes in
 * their order. Channels do not meet, so that results do not depend on how they are shared out. */
#ifndef TRINE_CPU_SCAN_H
#define TRINE_CPU_SCAN_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

enum {
    SCAN_MOST = 4096, /* channels of a block: their states fit the first-level cache, and a step's are a long run */
    SCAN_LEAST = 32,
    SCAN_AHEAD = 4096 /* bytes of a tensor's steps that are asked for before they are come to */
};

typedef struct scan {
    const trine_call *call;
    const int32_t *cu;          /* NULL: the members of the batch are the sequences */
    int64_t t, n, count, steps; /* count: of sequences; steps: of all */
    int64_t width, blocks;      /* of channels */
    bool reverse;
} scan;

static inline scan scan_of(const trine_call *call, const trine_tensor *cu, int64_t b, int64_t t, int64_t n,
                           int64_t sequences, int64_t most, bool reverse) {
    scan s = { .call = call, .t = t, .n = n, .count = cu ? sequences : b, .steps = b * t, .reverse = reverse };
    s.cu = cu ? cu->data : NULL;
    s.width = most;
    const int64_t threads = ((const cpu_queue *)call->queue)->threads;
    while (s.width > SCAN_LEAST && s.count * ((n + s.width - 1) / s.width) < threads) s.width /= 2;
    s.blocks = (n + s.width - 1) / s.width;
    return s;
}

/* Offsets that are none are told of before anything is written. */
static inline trine_status scan_check(const scan *s) {
    const char *op = s->call->plan->spec->name;
    if (s->cu == NULL) return TRINE_OK;
    if (s->cu[0] != 0)
        return s->call->host->error(TRINE_ERR_ARGUMENT, "%s: cu_seqlens[0] is %d, but must be 0", op, (int)s->cu[0]);
    for (int64_t i = 0; i < s->count; i++)
        if (s->cu[i + 1] < s->cu[i])
            return s->call->host->error(TRINE_ERR_ARGUMENT,
                                        "%s: cu_seqlens[%" PRId64 "] is %d, below cu_seqlens[%" PRId64 "] = %d", op,
                                        i + 1, (int)s->cu[i + 1], i, (int)s->cu[i]);
    if (s->cu[s->count] <= s->t) return TRINE_OK;
    return s->call->host->error(TRINE_ERR_ARGUMENT,
                                "%s: cu_seqlens[%" PRId64 "] is %d, but there are %" PRId64 " steps", op, s->count,
                                (int)s->cu[s->count], s->t);
}

/* A block of channels of a sequence; `sequence` is the count where it is the room behind the last one. */
typedef struct scan_task {
    int64_t sequence, batch, first, steps, channel, channels;
} scan_task;

static inline int64_t scan_tasks(const scan *s) { return (s->count + (s->cu != NULL)) * s->blocks; }
static inline scan_task scan_task_of(const scan *s, int64_t number) {
    scan_task a = { .sequence = number / s->blocks, .channel = number % s->blocks * s->width, .steps = s->t };
    a.channels = s->n - a.channel < s->width ? s->n - a.channel : s->width;
    if (s->cu == NULL) {
        a.batch = a.sequence;
        return a;
    }
    a.first = s->cu[a.sequence];
    a.steps = (a.sequence < s->count ? s->cu[a.sequence + 1] : s->t) - a.first;
    return a;
}

/* The task's channels in step k, in the order of the scan, and in a sequence's row of a tensor of states, NULL if there
 * is none. */
INLINE char *scan_row(const scan *s, const scan_task *a, const trine_tensor *t, int64_t k, trine_dtype T) {
    const int64_t step = a->first + (s->reverse ? a->steps - 1 - k : k);
    return (char *)t->data + (a->batch * t->stride[0] + step * t->stride[1] + a->channel) * (int64_t)vsize(T);
}
/* Asks for the task's channels in a step to come, rows of one block being too far apart for the hardware to see what
 * comes next: the steps of 4096 bytes ahead. `forward`: from first to last. */
INLINE void scan_prefetch(const scan *s, const scan_task *a, const trine_tensor *t, int64_t k, bool forward, bool write,
                          trine_dtype T) {
    const int64_t bytes = a->channels * (int64_t)vsize(T), ahead = SCAN_AHEAD / bytes + 1,
                  to = forward ? k + ahead : k - ahead;
    if (to < 0 || to >= a->steps) return;
    const char *row = scan_row(s, a, t, to, T);
    for (int64_t i = 0; i < bytes; i += 64)
        if (write)
            __builtin_prefetch(row + i, 1);
        else
            __builtin_prefetch(row + i);
}
static inline float *scan_states(const scan_task *a, const trine_tensor *t) {
    return t ? (float *)t->data + a->sequence * t->stride[0] + a->channel : NULL;
}

/* n <= VL elements from place j on. */
INLINE vf scan_get(const void *row, trine_dtype T, int64_t j, int n) {
    return n == VL ? vload(row, T, j) : vloadn(row, T, j, n, 0);
}
INLINE void scan_put(void *row, trine_dtype T, int64_t j, int n, vf x) {
    if (n == VL)
        vstore(row, T, j, x);
    else
        vstoren(row, T, j, n, x);
}

/* Does a step for each vector of a task's channels: j .. j+m-1, m being VL but in the last. */
#define SCAN_EACH(a, j, m, ...) \
    do { \
        int64_t j = 0; \
        for (; j + VL <= (a)->channels; j += VL) { \
            const int m = VL; \
            __VA_ARGS__; \
        } \
        if (j < (a)->channels) { \
            const int m = (int)((a)->channels - j); \
            __VA_ARGS__; \
        } \
    } while (0)

/* What lies behind the last sequence is 0. */
INLINE void scan_clear(const scan *s, const scan_task *a, const trine_tensor *t) {
    const trine_dtype T = t->dtype;
    for (int64_t k = 0; k < a->steps; k++) {
        char *row = scan_row(s, a, t, k, T);
        memset(row, 0, (size_t)a->channels * vsize(T));
    }
}

static inline int64_t scan_bytes(const trine_call *call) {
    return (int64_t)trine_plan_bytes(call->plan, call->dim, call->type, call->present);
}

static inline void scan_edges(const trine_call *call, trine_kernel_edges *edges, int along, int64_t most) {
    trine_kernel_edge(edges, along, VL);
    trine_kernel_edge(edges, along, SCAN_LEAST);
    trine_kernel_edge(edges, along, most);
    if (call->dim[along] > 0) cpu_team_edge(edges, along, scan_bytes(call) / call->dim[along]);
}

/* The body for all tasks, unless offsets are none. */
static inline trine_status scan_run(const trine_call *call, const scan *s, cpu_body *tasks) {
    const trine_status status = scan_check(s);
    if (status == TRINE_OK) cpu_tasks(call, cpu_team(call, scan_tasks(s), scan_bytes(call)), scan_tasks(s), tasks, s);
    return status;
}

#endif
