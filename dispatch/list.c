/* SPDX-License-Identifier: Apache-2.0 */
/* Many calls of an op as one: all are checked before any runs, and what their kernels can do at once is one launch. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm.h"
#include "float_env.h"
#include "overlap.h"
#include "queue.h"
#include "select.h"

/* The workspaces of calls that run at once lie side by side: in so much, or in what the largest needs. */
enum { WORKSPACE_ALIGN = 256, WORKSPACE_MOST = 4 << 20 };

typedef struct entry {
    trine_call call;
    const trine_kernel *kernel; /* NULL: nothing is to be done */
    bool ordered;
} entry;

/* The bytes of a call's tensor. */
typedef struct extent {
    uintptr_t low, high;
    int64_t call;
    int tensor;
    bool written;
} extent;

/* What a list is worked out in. It stays with the queue, so that the next list of the size allocates nothing. */
struct trine_list {
    int64_t room;       /* calls */
    entry *entry;       /* in the order they are given */
    trine_call **order; /* of those that have something to do, those of a kernel next to each other */
    int64_t ordered;
    size_t most; /* bytes of workspace for what runs at once */
    int64_t extent_room, extents;
    extent *extent;
    int64_t *active;
};

/* Calls of one kernel, in the order, that run at once. */
typedef struct batch {
    int64_t first, end;
    size_t bytes;
} batch;

void trine_list_free(trine_list *list) {
    if (list == NULL) return;
    free(list->entry);
    free(list->order);
    free(list->extent);
    free(list->active);
    free(list);
}

static trine_status no_memory(void) { return trine_fail(TRINE_ERR_MEMORY, "trine_run_list: out of memory"); }

/* Makes *array_io hold `count` items of `size` bytes; what was in it is lost. */
static bool make_room(void *array_io, int64_t count, size_t size) {
    void **const array = array_io;
    free(*array);
    *array = (uint64_t)count < SIZE_MAX / size ? malloc((size_t)count * size) : NULL;
    return *array != NULL;
}

static trine_status room_for_calls(trine_queue *queue, int64_t count) {
    if (queue->list == NULL && (queue->list = calloc(1, sizeof *queue->list)) == NULL) return no_memory();
    trine_list *const list = queue->list;
    if (count <= list->room) return TRINE_OK;
    list->room = 0;
    if (!make_room(&list->entry, count, sizeof *list->entry) || !make_room(&list->order, count, sizeof *list->order))
        return no_memory();
    list->room = count;
    return TRINE_OK;
}

static trine_status room_for_extents(trine_list *list, int64_t count) {
    if (count <= list->extent_room) return TRINE_OK;
    list->extent_room = 0;
    if (!make_room(&list->extent, count, sizeof *list->extent) ||
        !make_room(&list->active, count, sizeof *list->active))
        return no_memory();
    list->extent_room = count;
    return TRINE_OK;
}

/* Puts the number of the call before what was said of it. */
static trine_status of_call(int64_t number, trine_status status) {
    char words[900];
    snprintf(words, sizeof words, "%s", trine_error_message());
    return trine_fail(status, "call %" PRId64 " of the list: %s", number, words);
}

/* ---------------------------------------------------------------------------------------------------------- overlap */

static int by_low(const void *a, const void *b) {
    const extent *const x = a, *const y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    return x->call != y->call ? (x->call < y->call ? -1 : 1) : x->tensor - y->tensor;
}

static void find_extents(trine_list *list, int64_t count) {
    list->extents = 0;
    for (int64_t i = 0; i < count; i++) {
        const trine_call *call = &list->entry[i].call;
        for (int t = 0; t < call->plan->tensors; t++) {
            if (!(call->present >> t & 1) || trine_tensor_count(&call->tensor[t]) == 0) continue;
            extent *const e = &list->extent[list->extents++];
            *e = (extent){ .call = i, .tensor = t, .written = call->plan->tensor[t].spec->flags & OUT };
            trine_view_extent(&call->tensor[t], &e->low, &e->high);
        }
    }
    qsort(list->extent, (size_t)list->extents, sizeof *list->extent, by_low);
}

static const trine_tensor *view_of(const trine_list *list, const extent *e) {
    return &list->entry[e->call].call.tensor[e->tensor];
}

/* Two extents of which one is written. */
static trine_status check_pair(const trine_list *list, const extent *a, const extent *b) {
    if (a->call == b->call || !trine_views_overlap(view_of(list, a), view_of(list, b))) return TRINE_OK;
    const extent *const out = a->written ? a : b, *const other = a->written ? b : a;
    const trine_plan *plan = list->entry[out->call].call.plan;
    return trine_fail(TRINE_ERR_ARGUMENT, "call %" PRId64 " of the list: %s: output %s overlaps %s of call %" PRId64,
                      out->call, plan->spec->name, plan->tensor[out->tensor].spec->name,
                      plan->tensor[other->tensor].spec->name, other->call);
}

/* The extents in rising order, each against those that reach so far: a reader against writers alone, so that what all
 * calls read costs nothing. Active readers are numbered from the front of `active`, writers from its back. */
static trine_status check_overlap(trine_list *list, int64_t count) {
    int64_t readers = 0, writers = 0, *const last = list->active + list->extent_room - 1;
    find_extents(list, count);
    for (int64_t i = 0; i < list->extents; i++) {
        const extent *const e = &list->extent[i];
        for (int64_t k = 0; k < writers;) {
            const extent *const w = &list->extent[last[-k]];
            if (w->high <= e->low) {
                last[-k] = last[-(--writers)];
                continue;
            }
            const trine_status status = check_pair(list, w, e);
            if (status != TRINE_OK) return status;
            k++;
        }
        for (int64_t k = 0; e->written && k < readers;) {
            const extent *const r = &list->extent[list->active[k]];
            if (r->high <= e->low) {
                list->active[k] = list->active[--readers];
                continue;
            }
            const trine_status status = check_pair(list, r, e);
            if (status != TRINE_OK) return status;
            k++;
        }
        if (e->written)
            last[-writers++] = i;
        else
            list->active[readers++] = i;
    }
    return TRINE_OK;
}

/* ---------------------------------------------------------------------------------------------------------- batches */

static size_t aligned(size_t bytes) { return (bytes + WORKSPACE_ALIGN - 1) & ~(size_t)(WORKSPACE_ALIGN - 1); }

static const trine_kernel *kernel_of(const trine_call *call) { return ((const entry *)(const void *)call)->kernel; }
static int64_t number_of(const trine_list *list, const trine_call *call) {
    return (const entry *)(const void *)call - list->entry;
}

static void put_in_order(trine_list *list, int64_t count) {
    list->ordered = 0;
    list->most = WORKSPACE_MOST;
    for (int64_t first = 0; first < count; first++) {
        if (list->entry[first].kernel == NULL || list->entry[first].ordered) continue;
        for (int64_t i = first; i < count; i++) {
            entry *const e = &list->entry[i];
            if (e->kernel != list->entry[first].kernel) continue;
            e->ordered = true;
            list->order[list->ordered++] = &e->call;
            if (e->call.workspace_size > list->most) list->most = e->call.workspace_size;
        }
    }
}

/* The one that begins at `first`. */
static batch batch_from(const trine_list *list, int64_t first) {
    batch b = { .first = first, .end = first };
    while (b.end < list->ordered && kernel_of(list->order[b.end]) == kernel_of(list->order[first])) {
        const size_t bytes = aligned(list->order[b.end]->workspace_size);
        if (b.end > first && b.bytes + bytes > list->most) break;
        b.bytes += bytes;
        b.end++;
    }
    return b;
}

/* Bytes of workspace for the list: of the batch that needs most. A call alone needs no more than it says. */
static size_t need(const trine_list *list) {
    size_t most = 0;
    for (int64_t at = 0; at < list->ordered;) {
        const batch b = batch_from(list, at);
        const size_t bytes = b.end - b.first > 1 ? b.bytes : list->order[b.first]->workspace_size;
        if (bytes > most) most = bytes;
        at = b.end;
    }
    return most;
}

/* The calls, checked, each with its kernel, and in order. */
static trine_status prepare(trine_queue *queue, trine_op op, const void *const *args, int64_t count, bool need_data) {
    trine_status status = room_for_calls(queue, count);
    if (status != TRINE_OK) return status;
    trine_list *const list = queue->list;
    int64_t tensors = 0;
    for (int64_t i = 0; i < count; i++) {
        entry *const e = &list->entry[i];
        e->kernel = NULL;
        e->ordered = false;
        status = trine_prepare(queue, op, args[i], need_data, &e->call);
        if (status == TRINE_OK && !e->call.empty) status = trine_select(queue, &e->call, &e->kernel);
        if (status != TRINE_OK) return of_call(i, status);
        tensors += __builtin_popcount(e->call.present);
    }
    if (need_data && count > 1) {
        status = room_for_extents(list, tensors);
        if (status == TRINE_OK) status = check_overlap(list, count);
    }
    if (status == TRINE_OK) put_in_order(list, count);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- functions */

static trine_status one_by_one(const trine_kernel *kernel, trine_call *const *calls, int64_t count,
                               int64_t *failed_out) {
    for (int64_t i = 0; i < count; i++) {
        const trine_status status = kernel->launch(calls[i]);
        *failed_out = i;
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

static trine_status launch(trine_queue *queue, const batch *b) {
    trine_list *const list = queue->list;
    trine_call *const *calls = &list->order[b->first];
    const trine_kernel *kernel = kernel_of(calls[0]);
    const int64_t count = b->end - b->first;
    char *workspace = queue->workspace;
    for (int64_t i = 0; i < count; i++) {
        calls[i]->workspace = calls[i]->workspace_size > 0 ? workspace : NULL;
        workspace += calls[i]->workspace_size > 0 ? aligned(calls[i]->workspace_size) : 0;
    }
    int64_t failed = -1;
    const double start = queue->lib->verbose ? trine_seconds() : 0;
    const trine_status status = kernel->launch_list != NULL ? kernel->launch_list(calls, count)
                                : queue->backend->launch_list != NULL
                                    ? queue->backend->launch_list(kernel, calls, count, &failed)
                                    : one_by_one(kernel, calls, count, &failed);
    if (queue->lib->verbose) trine_trace_list(queue, calls[0], kernel, count, trine_seconds() - start);
    return status != TRINE_OK && failed >= 0 ? of_call(number_of(list, calls[failed]), status) : status;
}

static trine_status check_list(const trine_queue *queue, trine_op op, const void *const *args, int64_t count,
                               const char *function) {
    const trine_status status = trine_queue_check(queue, function);
    if (status != TRINE_OK) return status;
    if (trine_op_name(op) == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "%s: op %d does not exist", function, (int)op);
    if (count < 0) return trine_fail(TRINE_ERR_ARGUMENT, "%s: count is %" PRId64, function, count);
    if (args == NULL && count > 0) return trine_fail(TRINE_ERR_ARGUMENT, "%s: args is NULL", function);
    return TRINE_OK;
}

/* Those of a group, of which other ranks make the same calls. */
static trine_status in_order(trine_queue *queue, trine_op op, const void *const *args, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const trine_status status = trine_comm_run(queue, op, args[i]);
        if (status != TRINE_OK) return of_call(i, status);
    }
    return TRINE_OK;
}

static FLOAT_ENV_INSIDE trine_status run_list(trine_queue *queue, trine_op op, const void *const *args, int64_t count) {
    trine_status status = check_list(queue, op, args, count, "trine_run_list");
    if (status != TRINE_OK || count == 0) return status;
    const bool grouped = trine_plan_get(op)->comm >= 0 && queue->backend->comm_make != NULL;
    if ((status = prepare(queue, op, args, count, true)) != TRINE_OK)
        return grouped ? trine_comm_refuse_list(op, args, count, status) : status;
    if (grouped) return in_order(queue, op, args, count);
    const trine_list *const list = queue->list;
    if ((status = trine_queue_take_workspace(queue, trine_op_name(op), need(list))) != TRINE_OK) return status;
    for (int64_t at = 0; at < list->ordered && status == TRINE_OK;) {
        const batch b = batch_from(list, at);
        status = launch(queue, &b);
        at = b.end;
    }
    return status;
}

trine_status trine_run_list(trine_queue *queue, trine_op op, const void *const *args, int64_t count) {
    const float_env env = float_env_enter();
    const trine_status status = run_list(queue, op, args, count);
    float_env_leave(env);
    return status;
}

static FLOAT_ENV_INSIDE trine_status workspace_list(trine_queue *queue, trine_op op, const void *const *args,
                                                    int64_t count, size_t *bytes_out) {
    trine_status status = check_list(queue, op, args, count, "trine_workspace_list");
    if (status != TRINE_OK) return status;
    if (bytes_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_workspace_list: bytes_out is NULL");
    if (count > 0 && (status = prepare(queue, op, args, count, false)) != TRINE_OK) return status;
    *bytes_out = count > 0 ? need(queue->list) : 0;
    return TRINE_OK;
}

trine_status trine_workspace_list(trine_queue *queue, trine_op op, const void *const *args, int64_t count,
                                  size_t *bytes_out) {
    const float_env env = float_env_enter();
    const trine_status status = workspace_list(queue, op, args, count, bytes_out);
    float_env_leave(env);
    return status;
}
