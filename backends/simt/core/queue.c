/* SPDX-License-Identifier: Apache-2.0 */
/* Queues, memory and clocks of devices whose drivers have the same calls under other names: the module's vendor.h gives
 * SIMT_CALL and the driver's names and types. Compiled once into each module. */
#include "queue.h"

#include <stdlib.h>

#include <vendor.h>

#include "kept.h"

static simt_device *state_of(const trine_device *device) { return device->state; }

/* ----------------------------------------------------------------------------------------------------------- queues */

/* A stream whose work runs on units that are the queue's own. */
static trine_status open_part(const trine_device *device, simt_queue *queue, int count) {
    simt_device *d = state_of(device);
    pthread_mutex_lock(&d->lock);
    trine_status status = simt_find_parts(d);
    if (status == TRINE_OK && !simt_parts_take(&d->parts, count, &queue->part))
        status = d->driver->error(TRINE_ERR_UNSUPPORTED, "trine_queue_open: sm_count is %d, but %d of %s's %d are left",
                                  count, simt_parts_left(&d->parts), device->info.name, device->info.units);
    pthread_mutex_unlock(&d->lock);
    if (status != TRINE_OK) return status;
    queue->units = simt_parts_units(&d->parts, queue->part);
    return simt_open_part(d, queue);
}

static void give_part(simt_device *d, const simt_queue *queue) {
    pthread_mutex_lock(&d->lock);
    simt_parts_give(&d->parts, queue->part);
    pthread_mutex_unlock(&d->lock);
}

static trine_status queue_open(const trine_device *device, const trine_queue_options *options, void **queue_out) {
    simt_device *d = state_of(device);
    simt_scope scope;
    simt_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) return TRINE_ERR_MEMORY;
    const bool shared = options->flags & TRINE_QUEUE_DEFAULT_STREAM;
    *queue = (simt_queue){ .stream = shared ? SIMT_DEFAULT_STREAM : options->stream,
                           .own = !shared && options->stream == NULL,
                           .units = d->units };
    trine_status status = simt_retain(d);
    if (status == TRINE_OK && !shared && (status = simt_enter(d, &scope)) == TRINE_OK) {
        if (!queue->own)
            queue->units = simt_stream_units(d, queue->stream);
        else if (options->sm_count > 0)
            status = open_part(device, queue, options->sm_count);
        else
            status = SIMT_CALL(d->driver, StreamCreate, &queue->stream, SIMT_STREAM_NON_BLOCKING);
        simt_leave(d, scope);
    }
    if (status == TRINE_OK) {
        *queue_out = queue;
        return TRINE_OK;
    }
    give_part(d, queue);
    free(queue);
    return status;
}

static int queue_units(const trine_device *device, void *queue) {
    (void)device;
    return ((const simt_queue *)queue)->units;
}

static void queue_close(const trine_device *device, void *state) {
    simt_device *d = state_of(device);
    simt_queue *queue = state;
    simt_scope scope;
    const bool entered = simt_enter(d, &scope) == TRINE_OK; /* tried even if not: handles know their context */
    for (int i = 0; i < SIMT_MARKS; i++)
        if (queue->mark[i] != NULL) d->driver->EventDestroy(queue->mark[i]);
    if (queue->own) d->driver->StreamDestroy(queue->stream);
    simt_close_part(d, queue);
    if (entered) simt_leave(d, scope);
    give_part(d, queue);
    free(queue);
}

static trine_status wait_for(const simt_device *d, const simt_queue *queue) {
    return SIMT_CALL(d->driver, StreamSynchronize, queue->stream);
}

static trine_status queue_wait(const trine_device *device, void *queue) {
    const simt_device *d = state_of(device);
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = wait_for(d, queue);
    simt_leave(d, scope);
    return status;
}

static trine_status queue_idle(const trine_device *device, void *state, bool *idle_out) {
    const simt_device *d = state_of(device);
    const simt_queue *queue = state;
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    *idle_out = d->driver->StreamQuery(queue->stream) != SIMT_NOT_READY;
    if (*idle_out) status = wait_for(d, queue); /* which has the words of what failed */
    simt_leave(d, scope);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static trine_status memory_alloc(const trine_device *device, void *queue, size_t bytes, void **memory_out) {
    const simt_device *d = state_of(device);
    simt_scope scope;
    simt_pointer memory = 0;
    (void)queue;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = SIMT_CALL(d->driver, MemAlloc, &memory, bytes > 0 ? bytes : 1);
    if (status == TRINE_ERR_MEMORY && simt_free_kept())
        status = SIMT_CALL(d->driver, MemAlloc, &memory, bytes > 0 ? bytes : 1);
    simt_leave(d, scope);
    if (status == TRINE_OK) *memory_out = (void *)(uintptr_t)memory;
    return status;
}

static trine_status memory_free(const trine_device *device, void *queue, void *memory) {
    (void)queue;
    return simt_free(device, memory, false);
}

static trine_status host_alloc(const trine_device *device, void *queue, size_t bytes, void **memory_out) {
    const simt_device *d = state_of(device);
    simt_scope scope;
    (void)queue;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = SIMT_CALL(d->driver, MemHostAlloc, memory_out, bytes > 0 ? bytes : 1, SIMT_HOST_PORTABLE);
    if (status == TRINE_ERR_MEMORY && simt_free_kept())
        status = SIMT_CALL(d->driver, MemHostAlloc, memory_out, bytes > 0 ? bytes : 1, SIMT_HOST_PORTABLE);
    simt_leave(d, scope);
    return status;
}

static trine_status host_free(const trine_device *device, void *queue, void *memory) {
    (void)queue;
    return simt_free(device, memory, true);
}

typedef enum way { TO_DEVICE, TO_HOST, WITHIN } way;

/* Waits where the host's memory is the caller's again afterwards. */
static trine_status transfer(const trine_device *device, void *state, way way, void *to, const void *from,
                             size_t bytes) {
    const simt_device *d = state_of(device);
    const simt_queue *queue = state;
    const simt_pointer to_device = (simt_pointer)(uintptr_t)to, from_device = (simt_pointer)(uintptr_t)from;
    simt_scope scope;
    if (bytes == 0) return TRINE_OK;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    if (way == TO_DEVICE)
        status = SIMT_CALL(d->driver, MemcpyHtoDAsync, to_device, from, bytes, queue->stream);
    else if (way == TO_HOST)
        status = SIMT_CALL(d->driver, MemcpyDtoHAsync, to, from_device, bytes, queue->stream);
    else
        status = SIMT_CALL(d->driver, MemcpyDtoDAsync, to_device, from_device, bytes, queue->stream);
    if (status == TRINE_OK && way != WITHIN) status = wait_for(d, queue);
    simt_leave(d, scope);
    return status;
}

static trine_status memory_write(const trine_device *device, void *state, void *memory, const void *host,
                                 size_t bytes) {
    return transfer(device, state, TO_DEVICE, memory, host, bytes);
}
static trine_status memory_read(const trine_device *device, void *state, void *host, const void *memory, size_t bytes) {
    return transfer(device, state, TO_HOST, host, memory, bytes);
}
static trine_status memory_copy(const trine_device *device, void *state, void *to, const void *from, size_t bytes) {
    return transfer(device, state, WITHIN, to, from, bytes);
}

/* ----------------------------------------------------------------------------------------------------------- graphs */

static trine_status capturing(const trine_device *device, void *state, bool *capturing_out) {
    const simt_device *d = state_of(device);
    const simt_queue *queue = state;
    simt_scope scope;
    simt_capture_status found = SIMT_NOT_CAPTURING;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = SIMT_CALL(d->driver, StreamIsCapturing, queue->stream, &found);
    simt_leave(d, scope);
    *capturing_out = found != SIMT_NOT_CAPTURING;
    return status;
}

/* Other threads may do what they like meanwhile. */
static trine_status graph_begin(const trine_device *device, void *state) {
    const simt_device *d = state_of(device);
    const simt_queue *queue = state;
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    simt_keep_launching(device, NULL);
    status = SIMT_CALL(d->driver, StreamBeginCapture, queue->stream, SIMT_CAPTURE_OF_THREAD);
    simt_keep_launched();
    simt_leave(d, scope);
    return status;
}

static trine_status graph_end(const trine_device *device, void *state, void **graph_out) {
    const simt_device *d = state_of(device);
    const simt_queue *queue = state;
    simt_scope scope;
    simt_graph graph = NULL;
    simt_executable executable = NULL;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = SIMT_CALL(d->driver, StreamEndCapture, queue->stream, &graph);
    if (status == TRINE_OK) status = SIMT_CALL(d->driver, GraphInstantiateWithFlags, &executable, graph, 0);
    if (graph != NULL) d->driver->GraphDestroy(graph);
    simt_leave(d, scope);
    if (status == TRINE_OK) *graph_out = executable;
    return status;
}

static trine_status graph_launch(const trine_device *device, void *state, void *graph) {
    const simt_device *d = state_of(device);
    const simt_queue *queue = state;
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    simt_keep_launching(device, queue);
    status = SIMT_CALL(d->driver, GraphLaunch, graph, queue->stream);
    simt_keep_launched();
    simt_leave(d, scope);
    return status;
}

static void graph_free(const trine_device *device, void *graph) {
    state_of(device)->driver->GraphExecDestroy(graph); /* in whatever context */
}

/* ------------------------------------------------------------------------------------------------------------ clock */

static trine_status mark(const trine_device *device, void *state, int which) {
    const simt_device *d = state_of(device);
    simt_queue *queue = state;
    simt_scope scope;
    if (which < 0 || which >= SIMT_MARKS)
        return d->driver->error(TRINE_ERR_ARGUMENT, "mark is %d, but there are %d", which, SIMT_MARKS);
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    if (queue->mark[which] == NULL) status = SIMT_CALL(d->driver, EventCreate, &queue->mark[which], SIMT_EVENT_DEFAULT);
    if (status == TRINE_OK) status = SIMT_CALL(d->driver, EventRecord, queue->mark[which], queue->stream);
    simt_leave(d, scope);
    return status;
}

static trine_status elapsed(const trine_device *device, void *state, int first, int second, double *seconds_out) {
    const simt_device *d = state_of(device);
    const simt_queue *queue = state;
    simt_scope scope;
    float milliseconds = 0;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = SIMT_CALL(d->driver, EventSynchronize, queue->mark[second]);
    if (status == TRINE_OK)
        status = SIMT_CALL(d->driver, EventElapsedTime, &milliseconds, queue->mark[first], queue->mark[second]);
    simt_leave(d, scope);
    if (status == TRINE_OK) *seconds_out = 1e-3 * milliseconds;
    return status;
}

void simt_fill_backend(trine_backend *backend_out) {
    backend_out->queue_open = queue_open;
    backend_out->queue_close = queue_close;
    backend_out->queue_wait = queue_wait;
    backend_out->queue_idle = queue_idle;
    backend_out->memory_alloc = memory_alloc;
    backend_out->memory_free = memory_free;
    backend_out->host_alloc = host_alloc;
    backend_out->host_free = host_free;
    backend_out->memory_write = memory_write;
    backend_out->memory_read = memory_read;
    backend_out->memory_copy = memory_copy;
    backend_out->capturing = capturing;
    backend_out->graph_begin = graph_begin;
    backend_out->graph_end = graph_end;
    backend_out->graph_launch = graph_launch;
    backend_out->graph_free = graph_free;
    backend_out->mark = mark;
    backend_out->elapsed = elapsed;
    backend_out->launch = simt_launch_foreign;
    backend_out->queue_units = queue_units;
}
