/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks on devices, whose drivers have the same calls under other names (queue.c): each rank's area is memory
 * of its device, which the others reach as peers, by a pointer in the same process and by a handle in others. */
#include "group.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <trine/ops.h>

#include <vendor.h>

#include "kept.h"
#include "spec/number.h"

/* Of a thread, by each rank: of two kinds, sums and what is to be added up. */
enum { PLACES = 2 * EXCHANGE_SETS * EXCHANGE_ROUNDS, ALIGNMENT = 256, WORDS = 240 };
/* Seconds between looks at the other ranks while a queue is waited for, and after which the thread sleeps between
 * them. */
static const double slice = 1e-3, patience = 0.02;

/* Memory of a rank, which stays with the process: that of a group which was closed serves the next one of its size.
 * Others may still have it mapped, and those of a group that failed may still write there: that is never used again. */
typedef struct area {
    struct area *next;
    const simt_device *device;
    simt_pointer memory;
    size_t bytes, places; /* the places come first, and then what pieces land in */
    uint64_t *launches;   /* device memory */
    uint32_t *stop;       /* likewise */
    exchange_report *report;
    bool free;
} area;

/* What the others need to find it. */
typedef struct blob {
    int64_t bytes, places; /* of all, and of the part that comes first */
    uint64_t memory;
    int32_t pid, units;
    char pci[32];
    simt_ipc_handle handle;
} blob;

typedef struct peer {
    char *area;
    bool opened; /* by its handle */
    int pid, pidfd;
} peer;

typedef struct group {
    struct group *next;
    const trine_host *host;
    const trine_device *device;
    void *first, *queue;     /* that it was opened with; of the last call */
    int rank, ranks, beside; /* beside: ranks of the device that has most: all ranks launch as many blocks */
    int64_t room;
    size_t landing;
    double timeout;
    area *own;
    __typeof__(((simt_queue *)0)->stream) copies; /* of ranks with a device of their own; NULL: a queue's */
    __typeof__(((simt_queue *)0)->mark[0]) mark[2];
    bool broken;
    char words[WORDS];
    peer peer[EXCHANGE_RANKS];
} group;

_Static_assert(sizeof(blob) <= TRINE_COMM_BLOB, "a rank's blob");

/* Of the module: all areas, and the groups that are open. */
static struct {
    pthread_mutex_t lock;
    area *areas;
    group *_Atomic groups;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static simt_device *state_of(const trine_device *device) { return device->state; }

/* ------------------------------------------------------------------------------------------------------------ areas */

/* Places of all other ranks in a round: of half of so much memory, or else for one of them one for each thread that a
 * device's units start with, and as many for more of them. */
static int64_t places_of(const simt_device *d, size_t staging) {
    return staging > 0 ? (int64_t)(staging / 2 / PLACES / EXCHANGE_PACKET)
                       : SIMT_EXCHANGES * (int64_t)d->units * EXCHANGE_THREADS;
}

/* Bytes where pieces land: of what that has left, or a small part of the device's memory, of whole GiB, since devices
 * of one model differ in a few pages. */
static size_t landing_of(const simt_device *d, size_t staging) {
    return (staging > 0 ? staging / 2 : (d->memory >> 30 << 30) / 1024) / ALIGNMENT * ALIGNMENT;
}

static int others(int ranks) { return ranks > 1 ? ranks - 1 : 1; }

/* Of one of them. */
static int64_t room_of(const simt_device *d, int ranks, size_t staging) {
    const int64_t blocks = places_of(d, staging) / others(ranks) / EXCHANGE_THREADS;
    return (blocks > 0 ? blocks : 1) * EXCHANGE_THREADS;
}

/* The same for groups of any number of ranks, if that leaves each a block: one takes what another has left. */
static size_t bytes_of(const simt_device *d, int ranks, size_t staging) {
    const int64_t places = places_of(d, staging), used = others(ranks) * room_of(d, ranks, staging);
    return EXCHANGE_HEAD + (size_t)PLACES * (size_t)(used > places ? used : places) * EXCHANGE_PACKET;
}

static area *find_free(const simt_device *d, size_t places, size_t bytes) {
    area *found = NULL;
    pthread_mutex_lock(&all.lock);
    for (area *a = all.areas; a != NULL && found == NULL; a = a->next)
        if (a->free && a->device == d && a->places == places && a->bytes == bytes) found = a, a->free = false;
    pthread_mutex_unlock(&all.lock);
    return found;
}

/* The context is current. */
static trine_status make_area(simt_device *d, size_t places, size_t bytes, area **out) {
    area *a = *out = find_free(d, places, bytes);
    if (a != NULL) return TRINE_OK;
    if ((a = calloc(1, sizeof *a)) == NULL) return d->driver->error(TRINE_ERR_MEMORY, "trine_comm_open: out of memory");
    simt_pointer own = 0;
    *a = (area){ .device = d, .places = places, .bytes = bytes };
    trine_status status = simt_alloc_for_peers(d, &a->memory, bytes);
    if (status == TRINE_OK) status = SIMT_CALL(d->driver, MemAlloc, &own, (EXCHANGE_BLOCKS + 1) * sizeof *a->launches);
    if (status == TRINE_OK)
        status = SIMT_CALL(d->driver, MemHostAlloc, (void **)&a->report, sizeof *a->report, SIMT_HOST_COHERENT);
    if (status != TRINE_OK) {
        if (a->memory != 0) d->driver->MemFree(a->memory);
        if (own != 0) d->driver->MemFree(own);
        free(a);
        return status;
    }
    a->launches = (uint64_t *)(uintptr_t)own;
    a->stop = (uint32_t *)(a->launches + EXCHANGE_BLOCKS);
    pthread_mutex_lock(&all.lock);
    a->next = all.areas;
    all.areas = a;
    pthread_mutex_unlock(&all.lock);
    *out = a;
    return TRINE_OK;
}

static trine_status clear_area(simt_device *d, const simt_queue *queue, area *a) {
    memset(a->report, 0, sizeof *a->report);
    trine_status status = SIMT_CALL(d->driver, MemsetD8Async, a->memory, 0xff, a->places, queue->stream);
    if (status == TRINE_OK)
        status = SIMT_CALL(d->driver, MemsetD8Async, (simt_pointer)(uintptr_t)a->launches, 0,
                           (EXCHANGE_BLOCKS + 1) * sizeof *a->launches, queue->stream);
    return status == TRINE_OK ? SIMT_CALL(d->driver, StreamSynchronize, queue->stream) : status;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* The context is current. */
static trine_status make_copies(group *g) {
    const simt_device *d = state_of(g->device);
    trine_status status = SIMT_CALL(d->driver, StreamCreate, &g->copies, SIMT_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2 && status == TRINE_OK; i++)
        status = SIMT_CALL(d->driver, EventCreate, &g->mark[i], SIMT_EVENT_DEFAULT);
    return status;
}
static void free_copies(group *g) {
    const simt_device *d = state_of(g->device);
    for (int i = 0; i < 2; i++)
        if (g->mark[i] != NULL) d->driver->EventDestroy(g->mark[i]);
    if (g->copies != NULL) d->driver->StreamDestroy(g->copies);
}

static trine_status make(const trine_device *device, void *queue, const trine_comm_setup *setup, void *out,
                         void **comm_out) {
    simt_device *d = state_of(device);
    group *g = calloc(1, sizeof *g);
    blob mine = { .pid = (int32_t)getpid(), .units = device->info.units };
    simt_scope scope;
    if (g == NULL) return setup->host->error(TRINE_ERR_MEMORY, "trine_comm_open: out of memory");
    *comm_out = g;
    g->host = setup->host;
    g->device = device;
    g->first = g->queue = queue;
    g->rank = setup->rank;
    g->ranks = setup->ranks;
    g->timeout = setup->timeout;
    g->room = room_of(d, g->ranks, setup->staging);
    g->landing = landing_of(d, setup->staging);
    const size_t places = bytes_of(d, g->ranks, setup->staging);
    for (int r = 0; r < g->ranks; r++) g->peer[r].pidfd = -1;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = make_area(d, places, places + g->landing, &g->own);
    if (status == TRINE_OK) status = clear_area(d, queue, g->own);
    if (status == TRINE_OK) status = SIMT_CALL(d->driver, IpcGetMemHandle, &mine.handle, g->own->memory);
    simt_leave(d, scope);
    if (status != TRINE_OK) return status;
    mine.memory = (uint64_t)g->own->memory;
    mine.bytes = (int64_t)g->own->bytes;
    mine.places = (int64_t)g->own->places;
    snprintf(mine.pci, sizeof mine.pci, "%s", device->info.pci);
    memset(out, 0, TRINE_COMM_BLOB);
    memcpy(out, &mine, sizeof mine);
    return TRINE_OK;
}

/* The context is current. */
static trine_status map_peer(group *g, int r, const blob *b) {
    simt_device *d = state_of(g->device);
    peer *p = &g->peer[r];
    if (b->bytes != (int64_t)g->own->bytes || b->places != (int64_t)g->own->places)
        return g->host->error(TRINE_ERR_UNSUPPORTED,
                              "trine_comm_open: rank %d's device has %d units and takes %" PRId64
                              " bytes, rank %d's %d and %zu",
                              r, b->units, b->bytes, g->rank, g->device->info.units, g->own->bytes);
    if (b->pid == (int32_t)getpid()) {
        p->area = (char *)(uintptr_t)b->memory;
        return strcmp(b->pci, g->device->info.pci) == 0 ? TRINE_OK : simt_reach_peer(d, b->pci);
    }
    simt_pointer at = 0;
    const trine_status status = SIMT_CALL(d->driver, IpcOpenMemHandle, &at, b->handle, SIMT_IPC_LAZY);
    if (status != TRINE_OK) return status;
    p->area = (char *)(uintptr_t)at;
    p->opened = true;
    p->pidfd = (int)syscall(SYS_pidfd_open, b->pid, 0); /* -1 before Linux 5.3: the time-out alone tells */
    return TRINE_OK;
}

static int ranks_of_device(const group *g, const void *blobs, const char *pci) {
    int count = 0;
    for (int r = 0; r < g->ranks; r++) {
        blob b;
        memcpy(&b, (const char *)blobs + (size_t)r * TRINE_COMM_BLOB, sizeof b);
        count += strncmp(b.pci, pci, sizeof b.pci - 1) == 0;
    }
    return count;
}

static trine_status join(void *comm, const void *blobs) {
    group *g = comm;
    simt_device *d = state_of(g->device);
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    for (int r = 0; r < g->ranks && status == TRINE_OK; r++) {
        blob b;
        memcpy(&b, (const char *)blobs + (size_t)r * TRINE_COMM_BLOB, sizeof b);
        b.pci[sizeof b.pci - 1] = 0;
        g->peer[r].pid = b.pid;
        const int same = ranks_of_device(g, blobs, b.pci);
        if (same > g->beside) g->beside = same;
        if (r == g->rank)
            g->peer[r].area = (char *)(uintptr_t)g->own->memory;
        else
            status = map_peer(g, r, &b);
    }
    if (status == TRINE_OK && g->beside == 1) status = make_copies(g);
    if (g->beside > 1) {
        simt_share_device(g->first);
        simt_keep_begin();
    }
    simt_leave(d, scope);
    return status;
}

static void joined(void *comm) {
    group *g = comm;
    pthread_mutex_lock(&all.lock);
    g->next = all.groups;
    all.groups = g;
    pthread_mutex_unlock(&all.lock);
}

static void forget(group *g) {
    pthread_mutex_lock(&all.lock);
    if (all.groups == g) {
        all.groups = g->next;
    } else {
        for (group *at = all.groups; at != NULL; at = at->next)
            if (at->next == g) at->next = g->next;
    }
    pthread_mutex_unlock(&all.lock);
}

/* What failed, in words; all later calls return it. */
__attribute__((format(printf, 2, 3))) static void give_up(group *g, const char *format, ...) {
    va_list list;
    if (g->broken) return;
    va_start(list, format);
    trine_vsnprintf(g->words, sizeof g->words, format, list);
    va_end(list);
    g->broken = true;
    *(volatile uint32_t *)&g->own->report->abort = 1;
}

static void look_at_report(group *g) {
    const uint64_t failed = *(volatile uint64_t *)&g->own->report->failed;
    const int about = (int)(failed >> 8 & 0xff), op = (int)(failed >> 16 & 0xffff);
    const char *name = op > 0 && op < TRINE_OP_COUNT ? trine_specs[op]->name : "a call";
    switch (failed & 0xff) {
    case EXCHANGE_FINE: return;
    case EXCHANGE_LATE:
        give_up(g, "%s: rank %d of %d did not come within %g s", name, about, g->ranks, g->timeout);
        return;
    case EXCHANGE_DIFFERS:
        give_up(g, "%s: rank %d calls another op, or this with other sizes, types or parameters", name, about);
        return;
    case EXCHANGE_ENDED: give_up(g, "rank %d (process %d) has ended", about, g->peer[about % g->ranks].pid); return;
    case EXCHANGE_REFUSED: give_up(g, "%s: rank %d was refused a call", name, about); return;
    default: give_up(g, "%s: rank %d aborted the group", name, about);
    }
}

/* Tells the device whose processes have ended: a rank that has sent all may end. */
static void look_at_peers(group *g) {
    for (int r = 0; r < g->ranks; r++) {
        struct pollfd ends = { .fd = g->peer[r].pidfd, .events = POLLIN };
        if (ends.fd >= 0 && poll(&ends, 1, 0) == 1)
            *(volatile uint32_t *)&g->own->report->ended[r / 32] |= UINT32_C(1) << r % 32;
    }
}

/* ---------------------------------------------------------------------------------------------------------- waiting */

/* The groups whose last call a queue has: what they report, what has become of their peers; the first that failed. */
static trine_status look_at_groups(const simt_device *d, const void *queue, bool peers) {
    trine_status status = TRINE_OK;
    pthread_mutex_lock(&all.lock);
    for (group *g = all.groups; g != NULL; g = g->next) {
        if (g->queue != queue) continue;
        if (peers) look_at_peers(g);
        look_at_report(g);
        if (g->broken && status == TRINE_OK) status = d->driver->error(TRINE_ERR_COMM, "%s", g->words);
    }
    pthread_mutex_unlock(&all.lock);
    return status;
}

static bool is_in_group(const void *queue) {
    bool found = false;
    if (all.groups == NULL) return false;
    pthread_mutex_lock(&all.lock);
    for (const group *g = all.groups; g != NULL; g = g->next) found |= g->queue == queue;
    pthread_mutex_unlock(&all.lock);
    return found;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For a queue's work, as long as no group fails whose last call it has. The context is current. */
static trine_status wait_in_group(const simt_device *d, const simt_queue *queue) {
    const bool in_group = is_in_group(queue);
    trine_status status;
    const double start = in_group ? now() : 0;
    for (double looked = start; in_group && d->driver->StreamQuery(queue->stream) == SIMT_NOT_READY;) {
        const double time = now();
        if (time - looked < slice) continue;
        look_at_groups(d, queue, true);
        looked = time;
        if (time - start > patience) nanosleep(&(struct timespec){ .tv_nsec = (long)(slice * 1e9) }, NULL);
    }
    status = SIMT_CALL(d->driver, StreamSynchronize, queue->stream);
    return status == TRINE_OK && in_group ? look_at_groups(d, queue, false) : status;
}

static trine_status queue_wait(const trine_device *device, void *queue) {
    const simt_device *d = state_of(device);
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = wait_in_group(d, queue);
    simt_leave(d, scope);
    return status;
}

/* Groups whose last call the queue has go back to the one that they were opened with, which outlives them. */
static void (*close_queue)(const trine_device *device, void *queue);
static void queue_close(const trine_device *device, void *queue) {
    if (is_in_group(queue)) queue_wait(device, queue);
    pthread_mutex_lock(&all.lock);
    for (group *g = all.groups; g != NULL; g = g->next)
        if (g->queue == queue) g->queue = g->first;
    pthread_mutex_unlock(&all.lock);
    simt_keep_closed(queue);
    close_queue(device, queue);
}

static void close_group(void *comm) {
    group *g = comm;
    simt_device *d = state_of(g->device);
    simt_scope scope;
    const bool entered = simt_enter(d, &scope) == TRINE_OK;
    if (entered && wait_in_group(d, g->queue) != TRINE_OK) g->broken = true;
    forget(g);
    for (int r = 0; r < g->ranks; r++) {
        if (g->peer[r].opened) d->driver->IpcCloseMemHandle((simt_pointer)(uintptr_t)g->peer[r].area);
        if (g->peer[r].pidfd >= 0) close(g->peer[r].pidfd);
    }
    if (g->own != NULL && !g->broken) g->own->free = true;
    if (entered) free_copies(g);
    if (entered) simt_leave(d, scope);
    if (g->beside > 1) simt_keep_end();
    free(g);
}

static void abort_group(void *comm) {
    group *g = comm;
    *(volatile uint32_t *)&g->own->report->abort = 1;
}

/* ------------------------------------------------------------------------------------------------------------ calls */

static trine_status told(group *g, int op) {
    look_at_report(g);
    if (!g->broken) return TRINE_OK;
    return g->host->error(TRINE_ERR_COMM, "%s: the group is broken: %s", trine_specs[op]->name, g->words);
}

/* A greeting that says so takes the place of the call's; the group ends with it, since what the others sent stays. */
static trine_status greet_refused(group *g, int op) {
    simt_device *d = state_of(g->device);
    const simt_queue *queue = g->queue;
    const uint32_t words[4] = { (uint32_t)op | EXCHANGE_IS_REFUSED };
    uint64_t launches = 0;
    trine_status status = wait_in_group(d, queue);
    if (status == TRINE_OK)
        status = SIMT_CALL(d->driver, MemcpyDtoHAsync, &launches, (simt_pointer)(uintptr_t)g->own->launches,
                           sizeof launches, queue->stream);
    if (status == TRINE_OK) status = SIMT_CALL(d->driver, StreamSynchronize, queue->stream);
    for (int r = 0; r < g->ranks && status == TRINE_OK; r++) {
        const size_t at = ((launches & 1) * EXCHANGE_RANKS + (size_t)g->rank) * EXCHANGE_PACKET;
        if (r != g->rank)
            status = SIMT_CALL(d->driver, MemcpyHtoDAsync, (simt_pointer)(uintptr_t)(g->peer[r].area + at), words,
                               sizeof words, queue->stream);
    }
    return status == TRINE_OK ? SIMT_CALL(d->driver, StreamSynchronize, queue->stream) : status;
}

static void refuse(void *comm, int op, const char *message) {
    group *g = comm;
    simt_device *d = state_of(g->device);
    simt_scope scope;
    (void)message;
    if (told(g, op) != TRINE_OK || simt_enter(d, &scope) != TRINE_OK) return;
    greet_refused(g, op);
    simt_leave(d, scope);
    give_up(g, "%s: this rank was refused a call", trine_specs[op]->name);
}

/* Of what all ranks must have alike, besides the op. */
static uint32_t note_of(const trine_call *call, const simt_function *function) {
    uint64_t h = 14695981039346656037u;
    const trine_plan *plan = call->plan;
#define MIX(x) h = (h ^ (uint64_t)(x)) * 1099511628211u, h ^= h >> 29
    for (int i = 0; i < plan->symbols; i++) MIX(call->dim[i]);
    for (int i = 0; i < plan->types; i++) MIX(call->type[i]);
    for (int i = 0; i < plan->params; i++) {
        const double value = trine_param_get(plan, i, call->args);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        MIX(bits);
    }
    for (const char *step = function->step; step != NULL && *step != 0; step++) MIX(*step);
#undef MIX
    return (uint32_t)(h >> 32);
}

int64_t simt_group_room(const trine_call *call) {
    const group *g = call->comm;
    return g != NULL ? g->room : room_of(call->device, (int)call->dim[call->plan->ranks], 0);
}

int64_t simt_group_blocks(const trine_call *call, int held) {
    const group *g = call->comm;
    const int64_t most = held < SIMT_EXCHANGES ? held : SIMT_EXCHANGES;
    const int64_t units = ((const simt_queue *)call->queue)->units;
    /* where ranks share a device, half of it is for launches that the others wait for */
    const int64_t blocks = g == NULL || g->beside == 1 ? most * units : units / 2 / g->beside;
    return blocks > 0 ? blocks : 1;
}

size_t simt_group_landing(const trine_call *call) {
    const group *g = call->comm;
    return g != NULL ? g->landing : landing_of(call->device, 0);
}

bool simt_group_reads_landing(void) { return SIMT_READS_LANDING; }

char *simt_group_landing_of(const trine_call *call, int rank) {
    const group *g = call->comm;
    return g->peer[rank].area + g->own->places;
}

/* One stream goes on after what the other has done so far. */
static trine_status follow(const trine_call *call, bool fork) {
    const group *g = call->comm;
    const simt_queue *queue = call->queue;
    simt_device *d = call->device;
    simt_scope scope;
    if (queue->loads_only || g->copies == NULL) return TRINE_OK;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = SIMT_CALL(d->driver, EventRecord, g->mark[fork], fork ? queue->stream : g->copies);
    if (status == TRINE_OK)
        status = SIMT_CALL(d->driver, StreamWaitEvent, fork ? g->copies : queue->stream, g->mark[fork], 0);
    simt_leave(d, scope);
    return status;
}

trine_status simt_group_fork(const trine_call *call) { return follow(call, true); }
trine_status simt_group_join(const trine_call *call) { return follow(call, false); }

bool simt_group_overlaps(const trine_call *call) {
    const group *g = call->comm;
    return g != NULL && g->copies != NULL;
}

trine_status simt_group_copy(const trine_call *call, void *to, const void *from, size_t line, int64_t step,
                             int64_t lines) {
    const group *g = call->comm;
    const simt_queue *queue = call->queue;
    simt_device *d = call->device;
    simt_scope scope;
    if (line == 0 || lines < 1 || queue->loads_only) return TRINE_OK;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    const __typeof__(queue->stream) stream = g->copies != NULL ? g->copies : queue->stream;
    const int64_t once = step == (int64_t)line ? lines : 1; /* lines of a copy */
    if (once == 1 && step > (int64_t)line)
        status = simt_copy_lines(d, stream, to, from, line, (size_t)step, (size_t)lines);
    else
        for (int64_t at = 0; at < lines && status == TRINE_OK; at += once)
            status = SIMT_CALL(d->driver, MemcpyDtoDAsync, (simt_pointer)(uintptr_t)((char *)to + at * (int64_t)line),
                               (simt_pointer)(uintptr_t)((const char *)from + at * step), line * (size_t)once, stream);
    simt_leave(d, scope);
    return status;
}

int simt_group_rank(const trine_call *call) { return ((const group *)call->comm)->rank; }

trine_status simt_exchange_more(const trine_call *call, const simt_function *function, void *params, size_t size,
                                int64_t packets, int parts) {
    group *g = call->comm;
    exchange_params *p = params;
    trine_status status = told(g, call->plan->op);
    if (status != TRINE_OK) return status;
    /* as many blocks as have room, on the device at once with those of the other ranks there */
    const int64_t held = simt_group_blocks(call, EXCHANGE_HELD), fit = g->room / EXCHANGE_THREADS;
    int64_t blocks = simt_blocks(packets, (int64_t)parts * EXCHANGE_THREADS);
    if (blocks > held) blocks = held;
    if (blocks > fit) blocks = fit;
    if (blocks > EXCHANGE_BLOCKS) blocks = EXCHANGE_BLOCKS;
    if (blocks < 1) blocks = 1;
    for (int r = 0; r < g->ranks; r++) p->area[r] = g->peer[r].area;
    p->launches = g->own->launches;
    p->stop = g->own->stop;
    p->report = g->own->report;
    p->patience = (uint64_t)(g->timeout * 1e9);
    p->room = g->room;
    p->op = (uint32_t)call->plan->op;
    p->note = note_of(call, function);
    p->rank = g->rank;
    p->ranks = g->ranks;
    p->blocks = (int32_t)blocks;
    g->queue = call->queue;
    if (g->beside > 1) simt_share_device(call->queue);
    simt_keep_launching(g->device, call->queue);
    status = simt_launch(call, function, blocks, EXCHANGE_THREADS, params, size);
    simt_keep_launched();
    return status;
}

trine_status simt_exchange(const trine_call *call, const simt_function *function, exchange_params *p, int64_t packets,
                           int parts) {
    return simt_exchange_more(call, function, p, sizeof *p, packets, parts);
}

bool simt_group_loads(const trine_call *call) { return ((const simt_queue *)call->queue)->loads_only; }

trine_status simt_group_run(const trine_call *call, trine_status run(const trine_call *call)) {
    group *g = call->comm;
    simt_queue *queue = call->queue;
    trine_status status = TRINE_OK;
    if (g->beside > 1) simt_share_device(queue);
    if (g->beside > 1 || g->ranks == 1) { /* one rank: so that it does as others do */
        queue->loads_only = true;
        status = run(call);
        queue->loads_only = false;
    }
    if (status != TRINE_OK || (status = run(call)) == TRINE_OK) return status;
    /* what was sent stays there, and copies go on: no later call may meet them */
    simt_group_join(call);
    give_up(g, "%s: rank %d failed within a call", trine_specs[call->plan->op]->name, g->rank);
    return status;
}

void simt_fill_groups(trine_backend *backend_out) {
    close_queue = backend_out->queue_close;
    backend_out->queue_close = queue_close;
    backend_out->queue_wait = queue_wait;
    backend_out->comm_make = make;
    backend_out->comm_join = join;
    backend_out->comm_joined = joined;
    backend_out->comm_close = close_group;
    backend_out->comm_abort = abort_group;
    backend_out->comm_refuse = refuse;
}
