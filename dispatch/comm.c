/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a group of ranks, so that all open it or none, and calls of its ops, which a rank that is refused tells the
 * others of. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm.h"
#include "queue.h"
#include "select.h"
#include "spec/spec_hash.h"

static const char function[] = "trine_comm_open";

/* ---------------------------------------------------------------------------------------------------------- opening */

enum { WORDS = 200 };
static const double default_timeout = 300;

/* What each rank tells the others; all judge all records, and so refuse alike. Only arrays and numbers: the bytes mean
 * the same in all processes of a machine. */
typedef struct record {
    uint64_t magic, spec_hash, staging, pid_space;
    double timeout;
    int32_t status, rank, ranks, user;
    char version[16], backend[32], boot[48], words[WORDS];
    unsigned char blob[TRINE_COMM_BLOB];
} record;

/* How a rank's second step went. */
typedef struct outcome {
    int32_t status;
    char words[WORDS];
} outcome;

#define RECORD_MAGIC 0x7472696e6572616eu

/* The thread's message, without the name of the function, this or trine_comm_open_nccl(): whoever tells it puts one in
 * front again. */
static void keep_words(char *words) {
    const char *message = trine_error_message();
    const char *end = strncmp(message, function, sizeof function - 1) == 0 ? strstr(message, ": ") : NULL;
    snprintf(words, WORDS, "%s", end != NULL ? end + 2 : message);
}

/* The machine and its PID namespace: what processes must share to find each other's memory. */
static void tell_place(record *mine) {
    struct stat space;
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, mine->boot, sizeof mine->boot - 1) : 0;
    if (file >= 0) close(file);
    mine->boot[length > 0 ? strcspn(mine->boot, "\n") : 0] = 0;
    if (stat("/proc/self/ns/pid", &space) == 0) mine->pid_space = (uint64_t)space.st_ino;
    mine->user = (int32_t)geteuid();
}

trine_status trine_comm_read_options(const trine_comm_options *options, trine_comm_options *own) {
    *own = (trine_comm_options){ .struct_size = sizeof *own };
    if (options != NULL) {
        if (options->struct_size < sizeof(size_t) || options->struct_size % sizeof(void *) != 0)
            return trine_fail(TRINE_ERR_ARGUMENT, "%s: struct_size is %zu", function, options->struct_size);
        memcpy(own, options, options->struct_size < sizeof *own ? options->struct_size : sizeof *own);
    }
    if (!isfinite(own->timeout) || own->timeout < 0)
        return trine_fail(TRINE_ERR_ARGUMENT, "%s: timeout is %g, but must be finite and at least 0", function,
                          own->timeout);
    if (own->staging_bytes > (size_t)1 << 32)
        return trine_fail(TRINE_ERR_ARGUMENT, "%s: staging_bytes is %zu, but at most 4 GiB are possible", function,
                          own->staging_bytes);
    if (own->timeout == 0) own->timeout = default_timeout;
    return TRINE_OK;
}

/* This rank's part, unmade where something is wrong: the others learn of that from the record. */
static trine_status make_part(trine_queue *queue, trine_comm *comm, const trine_comm_options *options, record *mine) {
    const trine_backend *b = queue->backend;
    trine_comm_options own;
    const trine_status status = trine_comm_read_options(options, &own);
    if (status != TRINE_OK) return status;
    mine->timeout = own.timeout;
    mine->staging = own.staging_bytes;
    if (b->comm_make == NULL)
        return trine_fail(TRINE_ERR_UNSUPPORTED, "%s: the %s backend has no groups", function, b->name);
    const trine_comm_setup setup = { .host = &queue->lib->host,
                                     .rank = comm->rank,
                                     .ranks = comm->ranks,
                                     .staging = own.staging_bytes,
                                     .timeout = own.timeout };
    return b->comm_make(queue->device, queue->state, &setup, mine->blob, &comm->state);
}

/* The number of bytes that two texts of a record may have before they differ in meaning. */
static bool same_text(const char *a, const char *b, size_t size) { return strncmp(a, b, size) == 0; }

#define REFUSE(status, ...) return trine_fail(status, "trine_comm_open: " __VA_ARGS__)

/* Is there a group in these records? What is said of it is the same on every rank. */
static trine_status judge(const record *all, int ranks) {
    for (int r = 0; r < ranks; r++) {
        const record *a = &all[0], *b = &all[r];
        if (b->magic != RECORD_MAGIC)
            REFUSE(TRINE_ERR_COMM, "what the bootstrap has of rank %d is not of trine_comm_open()", r);
        if (!same_text(a->version, b->version, sizeof a->version) || a->spec_hash != b->spec_hash)
            REFUSE(TRINE_ERR_COMM, "rank %d is trine %.16s with specification %016llx, rank 0 %.16s with %016llx", r,
                   b->version, (unsigned long long)b->spec_hash, a->version, (unsigned long long)a->spec_hash);
        for (int other = 0; other < r; other++)
            if (all[other].rank == b->rank)
                REFUSE(TRINE_ERR_COMM, "two ranks say that they are rank %d of %d", b->rank, b->ranks);
        if (b->ranks != ranks)
            REFUSE(TRINE_ERR_COMM, "rank %d says that there are %d ranks, this one %d", r, b->ranks, ranks);
        if (b->rank != r) REFUSE(TRINE_ERR_COMM, "rank %d is at place %d of what the bootstrap gathered", b->rank, r);
    }
    for (int r = 0; r < ranks; r++) {
        const record *a = &all[0], *b = &all[r];
        if (b->status != TRINE_OK) REFUSE(TRINE_ERR_COMM, "rank %d failed: %.200s", r, b->words);
        if (!same_text(a->backend, b->backend, sizeof a->backend))
            REFUSE(TRINE_ERR_COMM, "rank %d is on %.32s, rank 0 on %.32s", r, b->backend, a->backend);
        if (!same_text(a->boot, b->boot, sizeof a->boot))
            REFUSE(TRINE_ERR_UNSUPPORTED, "rank %d is on another machine than rank 0", r);
        if (a->pid_space != b->pid_space)
            REFUSE(TRINE_ERR_UNSUPPORTED, "rank %d is in another PID namespace than rank 0", r);
        if (a->user != b->user)
            REFUSE(TRINE_ERR_UNSUPPORTED, "rank %d belongs to user %d, rank 0 to %d", r, b->user, a->user);
        if (a->staging != b->staging)
            REFUSE(TRINE_ERR_COMM, "staging_bytes of rank %d is %llu, of rank 0 %llu", r,
                   (unsigned long long)b->staging, (unsigned long long)a->staging);
    }
    return TRINE_OK;
}

static trine_status gather(const trine_bootstrap *bootstrap, const void *mine, void *all, size_t bytes) {
    const int failed = bootstrap->all_gather(bootstrap->context, mine, all, bytes);
    if (failed == 0) return TRINE_OK;
    REFUSE(TRINE_ERR_COMM, "the bootstrap's all_gather returned %d", failed);
}

/* Both steps: a rank's own error is told in its own words. */
static trine_status open_part(trine_status refused, trine_queue *queue, trine_comm *comm,
                              const trine_bootstrap *bootstrap, const trine_comm_options *options, record *all,
                              outcome *ends) {
    record mine = { .magic = RECORD_MAGIC,
                    .spec_hash = TRINE_SPEC_HASH,
                    .rank = comm->rank,
                    .ranks = comm->ranks,
                    .version = TRINE_VERSION };
    snprintf(mine.backend, sizeof mine.backend, "%s", queue->backend->name);
    tell_place(&mine);
    trine_status own = refused == TRINE_OK ? make_part(queue, comm, options, &mine) : refused;
    mine.status = own;
    if (own != TRINE_OK) keep_words(mine.words);
    trine_status status = gather(bootstrap, &mine, all, sizeof mine);
    if (status == TRINE_OK) status = judge(all, comm->ranks);
    if (own != TRINE_OK) return trine_fail(own, "%s: %s", function, mine.words);
    if (status != TRINE_OK) return status;

    outcome end = { 0 };
    for (int r = 0; r < comm->ranks; r++)
        memmove((char *)all + (size_t)r * TRINE_COMM_BLOB, all[r].blob, TRINE_COMM_BLOB);
    end.status = own = comm->backend->comm_join(comm->state, all);
    if (own != TRINE_OK) keep_words(end.words);
    status = gather(bootstrap, &end, ends, sizeof end);
    if (own != TRINE_OK) return trine_fail(own, "%s: %s", function, end.words);
    for (int r = 0; status == TRINE_OK && r < comm->ranks; r++)
        if (ends[r].status != TRINE_OK) REFUSE(TRINE_ERR_COMM, "rank %d failed: %.200s", r, ends[r].words);
    if (status == TRINE_OK) comm->backend->comm_joined(comm->state);
    return status;
}

trine_status trine_comm_open_unless(trine_status refused, trine_queue *queue, int rank, int ranks,
                                    const trine_bootstrap *bootstrap, const trine_comm_options *options,
                                    trine_comm **comm_out) {
    trine_status status = trine_queue_check(queue, function);
    if (status != TRINE_OK) return status;
    if (bootstrap == NULL || bootstrap->all_gather == NULL || comm_out == NULL)
        REFUSE(TRINE_ERR_ARGUMENT, "%s is NULL", comm_out == NULL ? "comm_out" : "bootstrap");
    if (ranks < 1 || ranks > TRINE_MAX_RANKS)
        REFUSE(TRINE_ERR_ARGUMENT, "ranks is %d, but 1 to %d are possible", ranks, TRINE_MAX_RANKS);
    if (rank < 0 || rank >= ranks) REFUSE(TRINE_ERR_ARGUMENT, "rank is %d, but 0 to %d are possible", rank, ranks - 1);
    trine_comm *comm = calloc(1, sizeof *comm);
    record *all = calloc((size_t)ranks, sizeof *all);
    outcome *ends = calloc((size_t)ranks, sizeof *ends);
    if (comm == NULL || all == NULL || ends == NULL) {
        free(comm), free(all), free(ends);
        REFUSE(TRINE_ERR_MEMORY, "out of memory");
    }
    *comm = (trine_comm){ .lib = queue->lib,
                          .device_index = queue->device_index,
                          .backend = queue->backend,
                          .rank = rank,
                          .ranks = ranks,
                          .process = getpid() };
    status = open_part(refused, queue, comm, bootstrap, options, all, ends);
    free(all), free(ends);
    if (status != TRINE_OK) {
        if (comm->state != NULL) comm->backend->comm_close(comm->state);
        free(comm);
        return status;
    }
    comm->magic = COMM_MAGIC;
    *comm_out = comm;
    return TRINE_OK;
}

trine_status trine_comm_open(trine_queue *queue, int rank, int ranks, const trine_bootstrap *bootstrap,
                             const trine_comm_options *options, trine_comm **comm_out) {
    return trine_comm_open_unless(TRINE_OK, queue, rank, ranks, bootstrap, options, comm_out);
}

static bool is_open(const trine_comm *comm) { return comm != NULL && comm->magic == COMM_MAGIC; }

void trine_comm_close(trine_comm *comm) {
    if (!is_open(comm)) return;
    comm->backend->comm_close(comm->state);
    if (comm->opener != NULL) {
        trine_memory_free(comm->opener, comm->opener_memory);
        trine_queue_close(comm->opener);
    }
    comm->magic = 0;
    free(comm);
}

trine_status trine_comm_abort(trine_comm *comm) {
    if (!is_open(comm)) return trine_fail(TRINE_ERR_ARGUMENT, "trine_comm_abort: comm is not an open communicator");
    comm->backend->comm_abort(comm->state);
    return TRINE_OK;
}

int trine_comm_rank(const trine_comm *comm) { return is_open(comm) ? comm->rank : -1; }

int trine_comm_ranks(const trine_comm *comm) { return is_open(comm) ? comm->ranks : -1; }

/* ------------------------------------------------------------------------------------------------------------ calls */

trine_status trine_comm_check(const trine_queue *queue, const trine_call *call) {
    const char *op = call->plan->spec->name;
    const trine_comm *comm = trine_comm_of(call->plan, call->args);
    if (comm == NULL) return TRINE_OK;
    if (comm->lib != queue->lib || comm->device_index != queue->device_index)
        return trine_fail(TRINE_ERR_ARGUMENT, "%s: comm is of another device than the queue, %s", op,
                          queue->device->info.name);
    if (comm->process != getpid())
        return trine_fail(TRINE_ERR_ARGUMENT, "%s: comm belongs to process %d, of which this is a child", op,
                          (int)comm->process);
    return TRINE_OK;
}

/* The communicator of arguments that need not be right; NULL: there is none. */
static trine_comm *find_comm(const trine_plan *plan, const void *args) {
    const size_t end = plan->spec->params[plan->comm].offset + sizeof(trine_comm *);
    size_t size = 0;
    if (args != NULL) memcpy(&size, args, sizeof size);
    trine_comm *comm = size >= end && size <= plan->spec->args_size + 4096 ? trine_comm_of(plan, args) : NULL;
    return is_open(comm) && comm->process == getpid() ? comm : NULL;
}

/* The thread's message stays this rank's own. */
static trine_status refuse(const trine_plan *plan, trine_comm *comm, trine_status status) {
    char words[1024];
    if (comm == NULL) return status;
    snprintf(words, sizeof words, "%s", trine_error_message());
    comm->backend->comm_refuse(comm->state, plan->op, words);
    return trine_fail(status, "%s", words);
}

trine_status trine_comm_refuse_list(trine_op op, const void *const *args, int64_t count, trine_status status) {
    const trine_plan *plan = trine_plan_get(op);
    trine_comm *comm = NULL;
    for (int64_t i = 0; i < count && comm == NULL; i++) comm = find_comm(plan, args[i]);
    return refuse(plan, comm, status);
}

trine_status trine_comm_run(trine_queue *queue, trine_op op, const void *args) {
    trine_call call;
    const trine_kernel *kernel;
    trine_status status = trine_prepare(queue, op, args, true, &call);
    if (status == TRINE_OK && call.comm == NULL && call.empty) return TRINE_OK;
    if (status == TRINE_OK) status = trine_select(queue, &call, &kernel);
    if (status == TRINE_OK) status = trine_queue_take_workspace(queue, call.plan->spec->name, call.workspace_size);
    if (status == TRINE_OK && trine_whole_is(&call)) return trine_whole_run(queue, &call, args);
    if (status != TRINE_OK) return refuse(trine_plan_get(op), find_comm(trine_plan_get(op), args), status);
    call.workspace = call.workspace_size > 0 ? queue->workspace : NULL;
    const double start = queue->lib->verbose ? trine_seconds() : 0;
    status = kernel->launch(&call);
    if (queue->lib->verbose) trine_trace(queue, &call, kernel, trine_seconds() - start);
    return status;
}
