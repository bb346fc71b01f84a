/* SPDX-License-Identifier: Apache-2.0 */
/* The stub driver's streams, events and graphs. Streams are always idle. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "streams.h"
#include "stub.h"

#pragma GCC visibility push(default)
extern stub_settings stub;
#pragma GCC visibility pop

/* ------------------------------------------------------------------------------------------------------------- work */

typedef struct graph {
    stub_work *first, **last;
} graph;

/* The one stream that is captured; NULL: none; and one that waits for an event of it, until it waits for one of that.
 * What cannot be captured ends the capture without a graph. */
static CUstream captured, forked;
static graph *capture;

static _Thread_local int waiting;
static _Thread_local CUstream waits_on; /* the last of them */
bool stub_waits(void) { return waiting > 0; }

/* Launches that wait for others, and run: which one in their order each is, or 0. */
enum { AT_ONCE = 64 };
static _Atomic uint64_t begun, running[AT_ONCE];

bool stub_meanwhile(void) {
    bool found = false;
    for (int i = 0; i < AT_ONCE; i++) found |= running[i] > 0;
    return found;
}

static int begin_run(void) {
    const uint64_t number = ++begun;
    int at = -1;
    for (uint64_t none = 0; at < 0 || !atomic_compare_exchange_strong(&running[at], &none, number); none = 0)
        at = (at + 1) % AT_ONCE;
    return at;
}

void stub_drain(void) {
    const uint64_t last = begun;
    for (int i = 0; i < AT_ONCE; i++)
        for (uint64_t number = running[i]; number > 0 && number <= last && running[i] == number;)
            nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

/* The emulator runs one launch at a time, whoever submits it, but for those that wait for others. */
static CUresult perform(const stub_work *w) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (w->entry != NULL) {
        const bool alone = w->entry(NULL) & EMULATOR_ALONE;
        const int at = alone ? begin_run() : 0;
        if (alone) waiting++;
        if (!alone) pthread_mutex_lock(&lock);
        emulator_launch(w->entry, w->params, w->blocks, w->threads, w->cluster);
        if (!alone) pthread_mutex_unlock(&lock);
        if (alone) running[at] = 0;
    } else {
        memmove(w->to, w->from, w->bytes);
    }
    return CUDA_SUCCESS;
}

CUresult stub_submit(CUstream stream, const stub_work *w) {
    if (captured == NULL || (stream != captured && stream != forked)) {
        if (w->entry != NULL && w->entry(NULL) & EMULATOR_ALONE) waits_on = stream;
        return perform(w);
    }
    if (capture == NULL) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *capture->last = malloc(sizeof *w);
    **capture->last = *w;
    capture->last = &(*capture->last)->next;
    return CUDA_SUCCESS;
}

static void free_graph(graph *g) {
    for (stub_work *w = g->first, *next; w != NULL; w = next) {
        next = w->next;
        free(w);
    }
    free(g);
}

bool stub_breaks_capture(CUstream stream) {
    if (captured == NULL || (stream != NULL && stream != captured)) return false;
    if (capture != NULL) free_graph(capture);
    capture = NULL;
    return true;
}

/* ----------------------------------------------------------------------------------------------- streams and events */

#pragma GCC visibility push(default)

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    MAY_FAIL(cuThreadExchangeStreamCaptureMode);
    *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuStreamCreate);
    *stream = malloc(1);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
    stub.destroyed++;
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    if (stub_breaks_capture(stream)) captured = NULL;
    if (!stub_green_forget(stream)) free(stream);
    return stub_in_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamSynchronize(CUstream stream) {
    IN_CONTEXT(cuStreamSynchronize);
    if (stub_breaks_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    waiting = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
    IN_CONTEXT(cuStreamQuery);
    if (stream == waits_on) waiting = 0;
    return CUDA_SUCCESS;
}

typedef struct mark {
    struct timespec time;
    CUstream stream;
} mark;

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuEventCreate);
    *event = calloc(1, sizeof(mark));
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    mark *m = (mark *)event;
    IN_CONTEXT(cuEventRecord);
    m->stream = stream;
    clock_gettime(CLOCK_MONOTONIC, &m->time);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    const mark *m = (const mark *)event;
    (void)flags;
    IN_CONTEXT(cuStreamWaitEvent);
    if (captured == NULL || m->stream == stream) return CUDA_SUCCESS;
    if (m->stream == captured && forked == NULL) forked = stream;
    if (m->stream == forked && stream == captured) forked = NULL;
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
    (void)event;
    IN_CONTEXT(cuEventSynchronize);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent second) {
    const struct timespec *a = &((const mark *)first)->time, *b = &((const mark *)second)->time;
    IN_CONTEXT(cuEventElapsedTime);
    *milliseconds = (float)(1e3 * (double)(b->tv_sec - a->tv_sec) + 1e-6 * (double)(b->tv_nsec - a->tv_nsec));
    return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------------------------------------------------- graphs */

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    IN_CONTEXT(cuStreamIsCapturing);
    *status = captured == NULL || stream != captured ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture != NULL                      ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                     : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    (void)mode;
    IN_CONTEXT(cuStreamBeginCapture);
    if (captured != NULL) return CUDA_ERROR_ILLEGAL_STATE;
    captured = stream;
    capture = calloc(1, sizeof *capture);
    capture->last = &capture->first;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph_out) {
    if (captured == NULL || stream != captured) return CUDA_ERROR_ILLEGAL_STATE;
    if (forked != NULL && capture != NULL) free_graph(capture), capture = NULL;
    *graph_out = (CUgraph)(void *)capture;
    captured = forked = NULL;
    capture = NULL;
    if (*graph_out == NULL) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    IN_CONTEXT(cuStreamEndCapture);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph_in, unsigned long long flags) {
    (void)flags;
    IN_CONTEXT(cuGraphInstantiateWithFlags);
    graph *copy = calloc(1, sizeof *copy);
    copy->last = &copy->first;
    for (const stub_work *w = ((graph *)(void *)graph_in)->first; w != NULL; w = w->next) {
        *copy->last = malloc(sizeof *w);
        **copy->last = *w;
        (*copy->last)->next = NULL;
        copy->last = &(*copy->last)->next;
    }
    *executable = (CUgraphExec)(void *)copy;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    IN_CONTEXT(cuGraphLaunch);
    for (const stub_work *w = ((graph *)(void *)executable)->first; w != NULL; w = w->next) {
        stub_work again = *w;
        again.next = NULL;
        const CUresult result = stub_submit(stream, &again);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph_in) {
    free_graph((graph *)(void *)graph_in);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
    free_graph((graph *)(void *)executable);
    return CUDA_SUCCESS;
}
