/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include <pthread.h>
#include <stdlib.h>

#include <vendor.h>

typedef struct kept {
    struct kept *next;
    const trine_device *device;
    void *memory;
    bool host;
} kept;

typedef struct busy {
    struct busy *next;
    const trine_device *device;
    const simt_queue *queue;
} busy;

/* Of the module: what is kept, the groups that it is kept for, queues that may have launches which wait for other
 * ranks, and how many are being submitted. */
static struct {
    pthread_mutex_t lock;
    int groups, launching;
    bool unknown; /* a queue that found no room */
    busy *queues;
    kept *first;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static trine_status free_now(const trine_device *device, void *memory, bool host) {
    const simt_device *d = device->state;
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    if (host)
        status = SIMT_CALL(d->driver, MemFreeHost, memory);
    else
        status = SIMT_CALL(d->driver, MemFree, (simt_pointer)(uintptr_t)memory);
    simt_leave(d, scope);
    return status;
}

static void free_all(kept *first) {
    for (kept *k = first, *next; k != NULL; k = next) {
        next = k->next;
        free_now(k->device, k->memory, k->host);
        free(k);
    }
}

/* The lock is held. */
static kept *take(void) {
    kept *first = all.first;
    all.first = NULL;
    return first;
}

static bool is_idle(const trine_device *device, const simt_queue *queue) {
    const simt_device *d = device->state;
    simt_capture_status capturing = SIMT_NOT_CAPTURING;
    simt_scope scope;
    if (simt_enter(d, &scope) != TRINE_OK) return false;
    /* a stream that is recorded is not to be asked */
    const bool idle = d->driver->StreamIsCapturing(queue->stream, &capturing) == SIMT_SUCCESS &&
                      capturing == SIMT_NOT_CAPTURING && d->driver->StreamQuery(queue->stream) != SIMT_NOT_READY;
    simt_leave(d, scope);
    return idle;
}

/* The lock is held. Has no rank anything to run? */
static bool all_idle(void) {
    if (all.launching > 0 || all.unknown) return false;
    for (busy *b = all.queues; b != NULL; b = all.queues) {
        if (!is_idle(b->device, b->queue)) return false;
        all.queues = b->next;
        free(b);
    }
    return true;
}

trine_status simt_free(const trine_device *device, void *memory, bool host) {
    kept *k = NULL;
    trine_status status = TRINE_OK;
    pthread_mutex_lock(&all.lock);
    const bool groups = all.groups > 0;
    if (groups && !all_idle() && (k = malloc(sizeof *k)) != NULL) {
        *k = (kept){ all.first, device, memory, host };
        all.first = k;
    } else if (groups) {
        free_all(take());
        status = free_now(device, memory, host);
    }
    pthread_mutex_unlock(&all.lock);
    return groups ? status : free_now(device, memory, host);
}

bool simt_free_kept(void) {
    pthread_mutex_lock(&all.lock);
    const bool found = all.first != NULL && all_idle();
    if (found) free_all(take());
    pthread_mutex_unlock(&all.lock);
    return found;
}

void simt_keep_begin(void) {
    pthread_mutex_lock(&all.lock);
    all.groups++;
    pthread_mutex_unlock(&all.lock);
}

void simt_keep_end(void) {
    kept *first = NULL;
    busy *queues = NULL;
    pthread_mutex_lock(&all.lock);
    if (--all.groups == 0) {
        first = take();
        queues = all.queues;
        all.queues = NULL;
        all.unknown = false;
    }
    pthread_mutex_unlock(&all.lock);
    free_all(first);
    for (busy *b = queues, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
}

void simt_keep_launching(const trine_device *device, const void *queue) {
    pthread_mutex_lock(&all.lock);
    all.launching++;
    busy *b = all.groups > 0 ? all.queues : NULL;
    while (b != NULL && b->queue != queue) b = b->next;
    if (all.groups > 0 && queue != NULL && b == NULL) {
        if ((b = malloc(sizeof *b)) == NULL)
            all.unknown = true;
        else
            *b = (busy){ all.queues, device, queue }, all.queues = b;
    }
    pthread_mutex_unlock(&all.lock);
}

void simt_keep_launched(void) {
    pthread_mutex_lock(&all.lock);
    all.launching--;
    pthread_mutex_unlock(&all.lock);
}

void simt_keep_closed(const void *queue) {
    pthread_mutex_lock(&all.lock);
    for (busy **at = &all.queues; *at != NULL;) {
        busy *b = *at;
        if (b->queue == queue) {
            *at = b->next;
            free(b);
        } else {
            at = &b->next;
        }
    }
    pthread_mutex_unlock(&all.lock);
}
