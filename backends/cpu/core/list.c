/* SPDX-License-Identifier: Apache-2.0 */
/* A list of calls on the CPU: one that is a good part of the list by all threads, then each of the others by one. */
#include "cpu.h"

enum { PARTS = 4 }; /* of a thread's share of the list: a call that is more has all threads */

typedef struct list {
    const trine_kernel *kernel;
    trine_call *const *calls;
    cpu_queue *alone; /* of one thread */
    int64_t most;     /* bytes of a call that one thread does */
    int64_t *failed;  /* the first that did */
} list;

/* Gives the call to one thread if it is small. One thread may need more workspace than all, for which it was planned:
 * then it keeps its queue. */
static bool give(const list *l, trine_call *call, int64_t bytes) {
    void *queue = call->queue;
    if (bytes > l->most) return false;
    call->queue = l->alone;
    if (!l->kernel->workspace || l->kernel->workspace(call) <= call->workspace_size) return true;
    call->queue = queue;
    return false;
}

static int64_t bytes_of(const trine_call *call) {
    int64_t bytes = 0;
    for (int t = 0; t < call->plan->tensors; t++)
        if (call->present >> t & 1)
            bytes += trine_tensor_count(&call->tensor[t]) * (int64_t)trine_dtype_size(call->tensor[t].dtype);
    return bytes;
}

static void fail_first(int64_t *first, int64_t number) {
    int64_t now = __atomic_load_n(first, __ATOMIC_RELAXED);
    while (number < now && !__atomic_compare_exchange_n(first, &now, number, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

static void launch_small(const void *context, int64_t first, int64_t last, int thread) {
    const list *l = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        if (l->calls[i]->queue != l->alone) continue;
        if (l->kernel->launch(l->calls[i]) != TRINE_OK) fail_first(l->failed, i);
    }
}

/* What a thread of the pool says of an error is lost: the call, which has written nothing, is launched again. */
trine_status trine_cpu_launch_list(const trine_kernel *kernel, trine_call *const *calls, int64_t count,
                                   int64_t *failed_out) {
    int64_t bytes = 0, failed = INT64_MAX;
    for (int64_t i = 0; i < count; i++) bytes += bytes_of(calls[i]);
    const int team = cpu_team(calls[0], count, bytes);
    cpu_pool *pool = ((const cpu_queue *)calls[0]->queue)->pool;
    cpu_queue alone = { .threads = 1 };
    const list l = { kernel, calls, &alone, team > 1 ? bytes / (team * PARTS) : -1, &failed };
    for (int64_t i = 0; i < count; i++) {
        if (give(&l, calls[i], bytes_of(calls[i]))) continue;
        const trine_status status = kernel->launch(calls[i]);
        *failed_out = i;
        if (status != TRINE_OK) return status;
    }
    if (team > 1) trine_cpu_pool_run(pool, team, count, false, launch_small, &l);
    *failed_out = failed;
    return failed != INT64_MAX ? kernel->launch(calls[failed]) : TRINE_OK;
}
