/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated HIP driver's streams, events and graphs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip.h"

_Thread_local int capture_mode;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

hipError_t perform(const operation *work) {
    switch (work->kind) {
    case COPY: return perform_copy(work);
    case FILL: return perform_fill(work);
    case LAUNCH: return perform_launch(work);
    case RECORD:
        work->event->seconds = now();
        work->event->recorded = true;
        return hipSuccess;
    case CALL: work->call.function(work->call.data); return hipSuccess;
    }
    return hipErrorUnknown;
}

/* ---------------------------------------------------------------------------------------------- launches meanwhile */

void settle(stream *s) {
    while (s == NULL && the_driver.busy != NULL) settle(the_driver.busy);
    if (s == NULL || !s->busy) return;
    s->busy = false;
    stream **at = &the_driver.busy;
    while (*at != s) at = &(*at)->next_busy;
    *at = s->next_busy;
    pthread_mutex_unlock(&the_driver.mutex);
    pthread_join(s->thread, NULL);
    pthread_mutex_lock(&the_driver.mutex);
    free(s->running.launch.arguments);
}

static void *run(void *context) {
    stream *s = context;
    pthread_mutex_lock(&the_driver.mutex);
    perform(&s->running);
    s->done = true;
    pthread_mutex_unlock(&the_driver.mutex);
    return NULL;
}

/* A launch that may wait for those of other streams and processes. */
static hipError_t begin(stream *where, const operation *work) {
    where->running = *work;
    where->running.launch.arguments = malloc(work->launch.bytes + 1);
    if (where->running.launch.arguments == NULL) return hipErrorOutOfMemory;
    memcpy(where->running.launch.arguments, work->launch.arguments, work->launch.bytes);
    where->done = false;
    if (pthread_create(&where->thread, NULL, run, where) != 0) {
        free(where->running.launch.arguments);
        return hipErrorOutOfMemory;
    }
    where->busy = true;
    where->next_busy = the_driver.busy;
    the_driver.busy = where;
    return hipSuccess;
}

hipError_t submit(stream *where, const operation *work) {
    if (where == NULL && the_driver.captures) return hipErrorStreamCaptureUnsupported;
    if (where == NULL || where->capture == NULL) {
        operation now = *work;
        if (where != NULL) settle(where);
        if (the_driver.lost) return the_driver.lost;
        if (work->kind != LAUNCH) return perform(&now);
        now.launch.units = where != NULL && where->units > 0 ? where->units : device_units();
        now.launch.device = where != NULL ? where->device : current_device;
        return where != NULL && points_to_peers(work->launch.arguments, work->launch.bytes) ? begin(where, &now)
                                                                                            : perform(&now);
    }
    operation *kept = malloc(sizeof *kept);
    if (kept == NULL) return hipErrorOutOfMemory;
    *kept = *work;
    kept->next = NULL;
    if (work->kind == LAUNCH) {
        kept->launch.arguments = malloc(work->launch.bytes + 1);
        if (kept->launch.arguments == NULL) {
            free(kept);
            return hipErrorOutOfMemory;
        }
        memcpy(kept->launch.arguments, work->launch.arguments, work->launch.bytes);
    }
    graph *g = where->capture;
    *(g->last ? &g->last->next : &g->first) = kept;
    g->last = kept;
    return hipSuccess;
}

void graph_free(graph *g) {
    for (operation *work = g->first, *next; work; work = next) {
        next = work->next;
        if (work->kind == LAUNCH) free(work->launch.arguments);
        free(work);
    }
    free(g);
}

/* ---------------------------------------------------------------------------------------------------------- streams */

static hipError_t create_stream(stream **out) {
    if ((*out = calloc(1, sizeof **out)) == NULL) return hipErrorOutOfMemory;
    (*out)->device = current_device;
    return hipSuccess;
}

API hipError_t hipStreamCreate(stream **out) {
    ENTER(hipStreamCreate);
    return leave(create_stream(out));
}
API hipError_t hipStreamCreateWithFlags(stream **out, unsigned flags) {
    (void)flags;
    ENTER(hipStreamCreateWithFlags);
    return leave(create_stream(out));
}
API hipError_t hipStreamCreateWithPriority(stream **out, unsigned flags, int priority) {
    (void)flags, (void)priority;
    ENTER(hipStreamCreateWithPriority);
    return leave(create_stream(out));
}
/* Of a mask, consecutive bits are of the chiplets in turn. A stream without a unit on some chiplet is refused: a
 * workgroup that is sent there would wait for ever. */
API hipError_t hipExtStreamCreateWithCUMask(stream **out, uint32_t words, const uint32_t *mask) {
    ENTER(hipExtStreamCreateWithCUMask);
    const int chiplets = device_chiplets();
    uint32_t reached = 0;
    stream made = { 0 };
    if (words == 0 || words > MASK_WORDS) return leave(hipErrorInvalidValue);
    for (int unit = 0; unit < device_units() && unit < (int)words * 32; unit++) {
        if (!(mask[unit / 32] >> unit % 32 & 1)) continue;
        made.mask[unit / 32] |= UINT32_C(1) << unit % 32;
        made.units++;
        reached |= UINT32_C(1) << unit % chiplets;
    }
    if (reached != (UINT32_C(1) << chiplets) - 1) return leave(hipErrorInvalidValue);
    const hipError_t error = create_stream(out);
    if (error) return leave(error);
    made.next = the_driver.masked;
    made.device = current_device;
    **out = made;
    the_driver.masked = *out;
    return leave(hipSuccess);
}

int cdna_hip_units(void) { return the_driver.units; }

int cdna_hip_shared(void) {
    int shared = 0;
    for (const stream *a = the_driver.masked; a != NULL; a = a->next)
        for (const stream *b = a->next; b != NULL; b = b->next)
            for (int i = 0; i < MASK_WORDS; i++) shared += __builtin_popcount(a->mask[i] & b->mask[i]);
    return shared;
}

API hipError_t hipStreamDestroy(stream *s) {
    ENTER(hipStreamDestroy);
    if (s == NULL) return leave(hipErrorInvalidHandle);
    settle(s);
    if (s->capture) {
        graph_free(s->capture);
        the_driver.captures--;
    }
    for (stream **at = &the_driver.masked; *at != NULL; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    free(s);
    return leave(hipSuccess);
}

static hipError_t wait(const stream *s) {
    return (s ? s->capture != NULL : the_driver.captures > 0) ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

API hipError_t hipStreamSynchronize(stream *s) {
    ENTER(hipStreamSynchronize);
    if (s != NULL) settle(s);
    const hipError_t error = wait(s);
    return leave(error ? error : the_driver.lost);
}
API hipError_t hipStreamQuery(stream *s) {
    ENTER(hipStreamQuery);
    if (s != NULL && s->busy && !s->done) return leave(hipErrorNotReady);
    return leave(wait(s));
}
API hipError_t hipDeviceSynchronize(void) {
    ENTER(hipDeviceSynchronize);
    settle(NULL);
    const hipError_t error = wait(NULL);
    return leave(error ? error : the_driver.lost);
}
API hipError_t hipStreamWaitEvent(stream *s, event *e, unsigned flags) {
    (void)s;
    ENTER(hipStreamWaitEvent);
    return leave(e == NULL || flags ? hipErrorInvalidValue : hipSuccess);
}
API hipError_t hipLaunchHostFunc(stream *s, void (*function)(void *), void *data) {
    ENTER(hipLaunchHostFunc);
    return leave(submit(s, &(operation){ .kind = CALL, .call = { function, data } }));
}

/* ----------------------------------------------------------------------------------------------------------- events */

static hipError_t create_event(event **out) {
    return (*out = calloc(1, sizeof **out)) ? hipSuccess : hipErrorOutOfMemory;
}

API hipError_t hipEventCreate(event **out) {
    ENTER(hipEventCreate);
    return leave(create_event(out));
}
API hipError_t hipEventCreateWithFlags(event **out, unsigned flags) {
    (void)flags;
    ENTER(hipEventCreateWithFlags);
    return leave(create_event(out));
}
API hipError_t hipEventDestroy(event *e) {
    ENTER(hipEventDestroy);
    free(e);
    return leave(e ? hipSuccess : hipErrorInvalidHandle);
}
API hipError_t hipEventRecord(event *e, stream *s) {
    ENTER(hipEventRecord);
    return leave(e ? submit(s, &(operation){ .kind = RECORD, .event = e }) : hipErrorInvalidHandle);
}
API hipError_t hipEventSynchronize(event *e) {
    ENTER(hipEventSynchronize);
    return leave(e ? hipSuccess : hipErrorInvalidHandle);
}
API hipError_t hipEventQuery(event *e) {
    ENTER(hipEventQuery);
    return leave(e ? hipSuccess : hipErrorInvalidHandle);
}
API hipError_t hipEventElapsedTime(float *milliseconds, event *first, event *second) {
    ENTER(hipEventElapsedTime);
    if (first == NULL || second == NULL || !first->recorded || !second->recorded) return leave(hipErrorInvalidHandle);
    *milliseconds = (float)(1e3 * (second->seconds - first->seconds));
    return leave(hipSuccess);
}

/* ----------------------------------------------------------------------------------------------------------- graphs */

API hipError_t hipStreamBeginCapture(stream *s, int mode) {
    (void)mode;
    ENTER(hipStreamBeginCapture);
    if (s == NULL || s->capture) return leave(s ? hipErrorInvalidValue : hipErrorStreamCaptureUnsupported);
    s->capture = calloc(1, sizeof *s->capture);
    if (s->capture == NULL) return leave(hipErrorOutOfMemory);
    the_driver.captures++;
    return leave(hipSuccess);
}
API hipError_t hipStreamEndCapture(stream *s, graph **out) {
    ENTER(hipStreamEndCapture);
    if (s == NULL || s->capture == NULL) return leave(hipErrorStreamCaptureUnmatched);
    *out = s->capture;
    s->capture = NULL;
    the_driver.captures--;
    return leave(hipSuccess);
}
API hipError_t hipThreadExchangeStreamCaptureMode(int *mode) {
    ENTER(hipThreadExchangeStreamCaptureMode);
    const int before = capture_mode;
    if (mode == NULL || *mode < 0 || *mode > CAPTURE_RELAXED) return leave(hipErrorInvalidValue);
    capture_mode = *mode;
    *mode = before;
    return leave(hipSuccess);
}
API hipError_t hipStreamIsCapturing(stream *s, int *status) {
    ENTER(hipStreamIsCapturing);
    *status = s != NULL && s->capture != NULL;
    return leave(hipSuccess);
}
API hipError_t hipStreamGetCaptureInfo(stream *s, int *status, unsigned long long *id) {
    ENTER(hipStreamGetCaptureInfo);
    *status = s != NULL && s->capture != NULL;
    *id = (unsigned long long)(uintptr_t)(s ? s->capture : NULL);
    return leave(hipSuccess);
}

/* An executable graph is a copy: the one it was made of may go. */
static graph *copy_graph(const graph *from) {
    stream holder = { .capture = calloc(1, sizeof(graph)) };
    for (const operation *work = from->first; holder.capture && work; work = work->next) {
        if (submit(&holder, work) == hipSuccess) continue;
        graph_free(holder.capture);
        return NULL;
    }
    return holder.capture;
}

API hipError_t hipGraphInstantiate(graph **out, graph *from, void *node, char *log, size_t size) {
    (void)node, (void)log, (void)size;
    ENTER(hipGraphInstantiate);
    if (from == NULL) return leave(hipErrorInvalidValue);
    return leave((*out = copy_graph(from)) ? hipSuccess : hipErrorOutOfMemory);
}
API hipError_t hipGraphInstantiateWithFlags(graph **out, graph *from, unsigned long long flags) {
    (void)flags;
    ENTER(hipGraphInstantiateWithFlags);
    if (from == NULL) return leave(hipErrorInvalidValue);
    return leave((*out = copy_graph(from)) ? hipSuccess : hipErrorOutOfMemory);
}
API hipError_t hipGraphLaunch(graph *g, stream *s) {
    ENTER(hipGraphLaunch);
    if (g == NULL) return leave(hipErrorInvalidValue);
    for (const operation *work = g->first; work; work = work->next) {
        const hipError_t error = submit(s, work);
        if (error) return leave(error);
    }
    return leave(hipSuccess);
}
API hipError_t hipGraphExecDestroy(graph *g) {
    ENTER(hipGraphExecDestroy);
    if (g) graph_free(g);
    return leave(g ? hipSuccess : hipErrorInvalidValue);
}
API hipError_t hipGraphDestroy(graph *g) {
    ENTER(hipGraphDestroy);
    if (g) graph_free(g);
    return leave(g ? hipSuccess : hipErrorInvalidValue);
}
