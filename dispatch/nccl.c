/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of the ranks of a communicator of NCCL or RCCL that the program has: what they tell each other goes through
 * its all-gather. Neither library nor its header is needed here: the names, the numbers and the types of what is called
 * are its public ABI. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm.h"
#include "queue.h"

static const char function[] = "trine_comm_open_nccl";

/* ---------------------------------------------------------------------------------------------------------- library */

/* ncclResult_t and ncclDataType_t. */
enum { SUCCESS = 0, IN_PROGRESS = 7, UINT8 = 1 };

/* What is called of it: as it is named behind "nccl", with ncclComm_t and streams as pointers, and enumerations as the
 * int that they are passed as. */
#define ENTRY_POINTS(ENTRY) \
    ENTRY(int, CommCount, (void *comm, int *count)) \
    ENTRY(int, CommUserRank, (void *comm, int *rank)) \
    ENTRY(int, CommCuDevice, (void *comm, int *device)) \
    ENTRY(int, CommGetAsyncError, (void *comm, int *result)) \
    ENTRY(int, AllGather, (const void *send, void *receive, size_t count, int type, void *comm, void *stream)) \
    ENTRY(const char *, GetErrorString, (int result))

typedef struct library {
    void *handle; /* NULL: all of the process sees it */
#define ENTRY(returned, name, arguments) returned(*name) arguments;
    ENTRY_POINTS(ENTRY)
#undef ENTRY
} library;

enum { VENDORS = 2 };
static const struct vendor {
    const char *backend, *file;
} vendors[VENDORS] = { { "cuda", "libnccl.so.2" }, { "hip", "librccl.so.1" } };

static void *opened_already(const char *file) { return dlopen(file, RTLD_LAZY | RTLD_NOLOAD); }

/* The copy that the process has; false: it has none. Both vendors' functions have the same names. */
static bool find_copy(int vendor, void **handle_out) {
    static const char first[] = "ncclCommCount";
    void *const seen = dlsym(RTLD_DEFAULT, first);
    void *const others = opened_already(vendors[VENDORS - 1 - vendor].file);
    const bool other = others != NULL && dlsym(others, first) == seen;
    if (others != NULL) dlclose(others);
    *handle_out = seen != NULL && !other ? NULL : opened_already(vendors[vendor].file);
    return *handle_out != NULL || (seen != NULL && !other);
}

static trine_status find_library(const trine_queue *queue, library *out) {
    int vendor = 0;
    while (vendor < VENDORS && strcmp(vendors[vendor].backend, queue->backend->name) != 0) vendor++;
    if (vendor == VENDORS || queue->backend->queue_idle == NULL)
        return trine_fail(TRINE_ERR_UNSUPPORTED,
                          "%s: NCCL and RCCL have no communicators of %s: trine_comm_open() takes any all_gather",
                          function, queue->device->info.name);
    if (!find_copy(vendor, &out->handle))
        return trine_fail(TRINE_ERR_UNSUPPORTED,
                          "%s: the process has no library that nccl could be of: none sees ncclCommCount, and %s has "
                          "not been opened",
                          function, vendors[vendor].file);
    const char *missing = NULL;
#define ENTRY(returned, name, arguments) \
    *(void **)&out->name = dlsym(out->handle != NULL ? out->handle : RTLD_DEFAULT, "nccl" #name); \
    if (out->name == NULL && missing == NULL) missing = "nccl" #name;
    ENTRY_POINTS(ENTRY)
#undef ENTRY
    if (missing == NULL) return TRINE_OK;
    if (out->handle != NULL) dlclose(out->handle);
    return trine_fail(TRINE_ERR_UNSUPPORTED, "%s: the library that nccl is of has no %s()", function, missing);
}

/* -------------------------------------------------------------------------------------------------------- gathering */

typedef struct gathering {
    const library *nccl;
    void *comm;
    int rank, ranks;
    double timeout;
    trine_queue *queue; /* of its own, on the communicator's device */
    char *memory;       /* of that device: what all gave, then what this rank gives */
    size_t size;
    bool kept; /* what NCCL began may still use the queue and the memory: they are never given back */
    trine_status status;
    char words[512];
} gathering;

static trine_status check(const library *nccl, const char *call, int result) {
    if (result == SUCCESS) return TRINE_OK;
    return trine_fail(TRINE_ERR_COMM, "%s: %s(): %s", function, call, nccl->GetErrorString(result));
}

/* For the end of what returned `result`: first until it has been launched, since a communicator need not block, then
 * for the device. An error that comes while the device waits for other ranks is told by the communicator alone. */
static trine_status wait_for(const gathering *g, const char *call, int result) {
    const trine_queue *q = g->queue;
    const double start = trine_seconds();
    for (;;) {
        bool idle = false;
        trine_status status = check(g->nccl, call, result == IN_PROGRESS ? SUCCESS : result);
        if (status == TRINE_OK && result == SUCCESS) status = q->backend->queue_idle(q->device, q->state, &idle);
        if (status != TRINE_OK || idle) return status;
        if (trine_seconds() - start > g->timeout)
            return trine_fail(TRINE_ERR_COMM, "%s: not all of the communicator's %d ranks came within %g s", function,
                              g->ranks, g->timeout);
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
        status = check(g->nccl, "ncclCommGetAsyncError", g->nccl->CommGetAsyncError(g->comm, &result));
        if (status != TRINE_OK) return status;
    }
}

static trine_status take_memory(gathering *g, size_t size) {
    if (size <= g->size) return TRINE_OK;
    void *memory;
    trine_status status = trine_memory_free(g->queue, g->memory);
    g->memory = NULL, g->size = 0;
    if (status == TRINE_OK) status = trine_memory_alloc(g->queue, size, &memory);
    if (status == TRINE_OK) g->memory = memory, g->size = size;
    return status;
}

/* What comes back for this rank is something else before. If it still is afterwards, nothing was gathered. */
static trine_status gather(gathering *g, const void *mine, void *all, size_t bytes) {
    const unsigned char *const given = mine;
    unsigned char *const own = (unsigned char *)all + (size_t)g->rank * bytes;
    trine_status status = take_memory(g, bytes * (size_t)(g->ranks + 1));
    if (status != TRINE_OK) return status;
    char *const send = g->memory + (size_t)g->ranks * bytes;
    for (size_t i = 0; i < bytes; i++) own[i] = (unsigned char)~given[i];
    status = trine_memory_write(g->queue, g->memory, all, (size_t)g->ranks * bytes);
    if (status == TRINE_OK) status = trine_memory_write(g->queue, send, mine, bytes);
    if (status != TRINE_OK) return status;
    void *const stream = *(void **)g->queue->state;
    g->kept = true;
    status = wait_for(g, "ncclAllGather", g->nccl->AllGather(send, g->memory, bytes, UINT8, g->comm, stream));
    if (status == TRINE_OK) status = trine_memory_read(g->queue, all, g->memory, (size_t)g->ranks * bytes);
    if (status != TRINE_OK) return status;
    if (memcmp(own, mine, bytes) != 0)
        return trine_fail(TRINE_ERR_COMM, "%s: ncclAllGather() has gathered nothing: does ncclGroupEnd() come later?",
                          function);
    g->kept = false;
    return TRINE_OK;
}

static int all_gather(void *context, const void *mine, void *all, size_t bytes) {
    gathering *g = context;
    g->status = gather(g, mine, all, bytes);
    if (g->status != TRINE_OK) snprintf(g->words, sizeof g->words, "%s", trine_error_message());
    return (int)g->status;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* The communicator's numbers, and a queue of its device. A rank whose own queue is of another can so tell the others,
 * which is what *refused_out is for. */
static trine_status begin(gathering *g, const trine_queue *queue, trine_status *refused_out) {
    char name[32];
    int number = 0;
    trine_status status = check(g->nccl, "ncclCommCount", g->nccl->CommCount(g->comm, &g->ranks));
    if (status == TRINE_OK) status = check(g->nccl, "ncclCommUserRank", g->nccl->CommUserRank(g->comm, &g->rank));
    if (status == TRINE_OK) status = check(g->nccl, "ncclCommCuDevice", g->nccl->CommCuDevice(g->comm, &number));
    if (status != TRINE_OK) return status;
    snprintf(name, sizeof name, "%s:%d", queue->backend->name, number);
    const int device = trine_device_find(queue->lib, name);
    if (device < 0)
        return trine_fail(TRINE_ERR_ARGUMENT, "%s: nccl is of %s, which is no device of trine's, but the queue of %s",
                          function, name, queue->device->info.name);
    status = trine_queue_open(queue->lib, device, NULL, &g->queue);
    if (status == TRINE_OK && device != queue->device_index)
        *refused_out = trine_fail(TRINE_ERR_ARGUMENT, "%s: nccl is of %s, but the queue of %s", function, name,
                                  queue->device->info.name);
    return status;
}

static void end(gathering *g) {
    if (g->queue == NULL || g->kept) return;
    trine_memory_free(g->queue, g->memory);
    trine_queue_close(g->queue);
}

trine_status trine_comm_open_nccl(trine_queue *queue, void *nccl, const trine_comm_options *options,
                                  trine_comm **comm_out) {
    library lib = { 0 };
    trine_comm_options own;
    trine_status refused = TRINE_OK, status = trine_queue_check(queue, function);
    if (status != TRINE_OK) return status;
    if (nccl == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "%s: nccl is NULL", function);
    if ((status = find_library(queue, &lib)) != TRINE_OK) return status;
    /* Those that are wrong are refused later, when the others can be told. */
    if (trine_comm_read_options(options, &own) != TRINE_OK) trine_comm_read_options(NULL, &own);
    gathering g = { .nccl = &lib, .comm = nccl, .timeout = own.timeout };
    status = begin(&g, queue, &refused);
    if (status == TRINE_OK)
        status = trine_comm_open_unless(refused, queue, g.rank, g.ranks, &(trine_bootstrap){ all_gather, &g }, options,
                                        comm_out);
    if (status == TRINE_ERR_COMM && g.status != TRINE_OK) status = trine_fail(g.status, "%s", g.words);
    char words[1024];
    if (status != TRINE_OK) snprintf(words, sizeof words, "%s", trine_error_message());
    if (status == TRINE_OK)
        (*comm_out)->opener = g.queue, (*comm_out)->opener_memory = g.memory;
    else
        end(&g);
    if (lib.handle != NULL) dlclose(lib.handle);
    return status == TRINE_OK ? TRINE_OK : trine_fail(status, "%s", words);
}
