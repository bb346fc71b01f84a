/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of all ranks of a group: each rank has a thread, a queue and a communicator, which stay with the queue that was
 * asked. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm.h"
#include "queue.h"

enum { RECORD_MOST = 1024, GROUPS_MOST = 2 };
_Static_assert(TRINE_MAX_RANKS == 64, "the tables of spec/comm/ require no more ranks");

typedef struct member {
    trine_whole *whole;
    int rank;
    pthread_t thread; /* of all but the first, which is the caller's */
    trine_queue *queue;
    trine_comm *comm;
    trine_status status;
    int gathers; /* that it took part in */
    char message[1024];
} member;

struct trine_whole {
    trine_whole *next;
    int ranks;
    pid_t process; /* its threads are in this one alone */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t turn; /* of the jobs */
    int running, threads;
    void (*job)(member *m); /* NULL: the threads end */
    pthread_barrier_t meeting;
    char (*gathered)[RECORD_MOST];
    const trine_queue *owner;
    const trine_call *call;
    const void *args;
    char *workspace; /* of all ranks */
    member member[];
};

/* ---------------------------------------------------------------------------------------------------------- threads */

static void do_job(member *m) {
    m->whole->job(m);
    if (m->status != TRINE_OK) snprintf(m->message, sizeof m->message, "%s", trine_error_message());
}

static void *live(void *context) {
    member *m = context;
    trine_whole *w = m->whole;
    for (uint64_t turn = 1;; turn++) {
        pthread_mutex_lock(&w->lock);
        while (w->turn < turn) pthread_cond_wait(&w->changed, &w->lock);
        pthread_mutex_unlock(&w->lock);
        if (w->job == NULL) return NULL;
        do_job(m);
        pthread_mutex_lock(&w->lock);
        if (--w->running == 0) pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
    }
}

static void begin(trine_whole *w, void (*job)(member *m)) {
    pthread_mutex_lock(&w->lock);
    w->job = job;
    w->running = w->threads;
    w->turn++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Does a job on every rank. Of several errors the first that is no consequence of another rank's is told. */
static trine_status do_all(trine_whole *w, void (*job)(member *m)) {
    begin(w, job);
    do_job(&w->member[0]);
    pthread_mutex_lock(&w->lock);
    while (w->running > 0) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    const member *told = NULL;
    for (int r = 0; r < w->ranks; r++) {
        const member *m = &w->member[r];
        if (m->status != TRINE_OK && (told == NULL || (told->status == TRINE_ERR_COMM && m->status != TRINE_ERR_COMM)))
            told = m;
    }
    return told == NULL ? TRINE_OK : trine_fail(told->status, "%s", told->message);
}

/* Signals are for the program's own threads. */
static bool make_threads(trine_whole *w) {
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < 5; i++) sigdelset(&all, (const int[]){ SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP }[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (w->threads < w->ranks - 1 &&
           pthread_create(&w->member[w->threads + 1].thread, NULL, live, &w->member[w->threads + 1]) == 0)
        w->threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w->threads == w->ranks - 1;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static int gather(void *context, const void *mine, void *all, size_t bytes) {
    member *m = context;
    trine_whole *w = m->whole;
    if (bytes > RECORD_MOST) return 1;
    m->gathers++;
    memcpy(w->gathered[m->rank], mine, bytes);
    pthread_barrier_wait(&w->meeting);
    for (int r = 0; r < w->ranks; r++) memcpy((char *)all + (size_t)r * bytes, w->gathered[r], bytes);
    pthread_barrier_wait(&w->meeting);
    return 0;
}

static void open_queue(member *m) {
    const trine_queue *owner = m->whole->owner;
    const uint32_t kept = owner->flags & ~(uint32_t)(TRINE_QUEUE_DEFAULT_STREAM | TRINE_QUEUE_STRICT_WORKSPACE);
    const trine_queue_options options = { .struct_size = sizeof options,
                                          .flags = kept,
                                          .threads = owner->threads,
                                          .kernel = owner->kernel[0] ? owner->kernel : NULL };
    m->status = trine_queue_open(owner->lib, owner->device_index, &options, &m->queue);
}

static void open_comm(member *m) {
    const trine_bootstrap bootstrap = { gather, m };
    m->status = trine_comm_open(m->queue, m->rank, m->whole->ranks, &bootstrap, NULL, &m->comm);
    if (m->status == TRINE_OK || m->gathers > 0) return;
    /* It had no memory to begin with: what is there in place of its record, zeros, is refused by the others. */
    pthread_barrier_wait(&m->whole->meeting);
    pthread_barrier_wait(&m->whole->meeting);
}

static void free_one(trine_whole *w) {
    const bool ours = w->process == getpid();
    if (ours && w->threads > 0) begin(w, NULL);
    for (int r = 1; ours && r <= w->threads; r++) pthread_join(w->member[r].thread, NULL);
    for (int r = 0; r < w->ranks; r++) {
        trine_comm_close(w->member[r].comm);
        trine_queue_close(w->member[r].queue);
    }
    if (ours) pthread_barrier_destroy(&w->meeting);
    free(w->gathered);
    free(w);
}

void trine_whole_free(trine_whole *whole) {
    while (whole != NULL) {
        trine_whole *next = whole->next;
        free_one(whole);
        whole = next;
    }
}

static trine_status open_group(trine_queue *queue, int ranks, trine_whole **out) {
    trine_whole *w = calloc(1, sizeof *w + (size_t)ranks * sizeof w->member[0]);
    char(*gathered)[RECORD_MOST] = calloc((size_t)ranks, sizeof *gathered);
    if (w == NULL || gathered == NULL) {
        free(w), free(gathered);
        return trine_fail(TRINE_ERR_MEMORY, "a call of all ranks: out of memory");
    }
    w->ranks = ranks;
    w->process = getpid();
    w->owner = queue;
    w->gathered = gathered;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    pthread_barrier_init(&w->meeting, NULL, (unsigned)ranks);
    for (int r = 0; r < ranks; r++) w->member[r].whole = w, w->member[r].rank = r;
    trine_status status =
        make_threads(w) ? TRINE_OK
                        : trine_fail(TRINE_ERR_MEMORY, "a call of all ranks: %d of %d threads", w->threads + 1, ranks);
    if (status == TRINE_OK) status = do_all(w, open_queue);
    if (status == TRINE_OK) status = do_all(w, open_comm);
    if (status != TRINE_OK)
        free_one(w);
    else
        *out = w;
    return status;
}

/* The group of so many ranks; a few are kept, the one used last in front. */
static trine_status find_group(trine_queue *queue, int ranks, trine_whole **out) {
    int count = 0;
    for (trine_whole **at = &queue->whole; *at != NULL; at = &(*at)->next, count++) {
        trine_whole *w = *at;
        const bool usable = w->ranks == ranks && w->process == getpid();
        if (!usable && count + 1 < GROUPS_MOST) continue;
        *at = w->next;
        w->next = NULL;
        if (!usable) {
            trine_whole_free(w);
            break;
        }
        w->next = queue->whole;
        queue->whole = *out = w;
        return TRINE_OK;
    }
    const trine_status status = open_group(queue, ranks, out);
    if (status != TRINE_OK) return status;
    (*out)->next = queue->whole;
    queue->whole = *out;
    return TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------------ calls */

enum { ALIGNMENT = 256 };

bool trine_whole_is(const trine_call *call) {
    return call->plan->comm >= 0 && call->comm == NULL && call->backend->comm_make != NULL;
}

/* Bytes from one rank's to the next one's, each but the last having whole ones. */
static size_t workspace_step(const trine_call *call) {
    const size_t ranks = (size_t)call->dim[call->plan->ranks];
    return (call->workspace_size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT / ranks;
}

size_t trine_whole_workspace(const trine_call *call, size_t own) {
    const size_t step = (own + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return own > 0 ? (size_t)(call->dim[call->plan->ranks] - 1) * step + own : 0;
}

/* This rank's part of the workspace that the call was given. */
static trine_status lend_workspace(member *m) {
    const trine_call *call = m->whole->call;
    const size_t step = workspace_step(call), own = call->workspace_size - (size_t)(m->whole->ranks - 1) * step;
    if (call->workspace_size == 0) return TRINE_OK;
    return trine_queue_set_workspace(m->queue, m->whole->workspace + (size_t)m->rank * step, own);
}

/* The call that this rank would make. */
static void run_rank(member *m) {
    const trine_whole *w = m->whole;
    const trine_call *call = w->call;
    const trine_plan *plan = call->plan;
    _Alignas(16) unsigned char args[TRINE_MAX_ARGS] = { 0 };
    trine_tensor tensor[TRINE_MAX_TENSORS];
    size_t size;
    memcpy(&size, w->args, sizeof size);
    memcpy(args, w->args, size < plan->spec->args_size ? size : plan->spec->args_size);
    memcpy(args, &plan->spec->args_size, sizeof size);
    memcpy(args + plan->spec->params[plan->comm].offset, &m->comm, sizeof m->comm);
    for (int i = 0; i < plan->tensors; i++) {
        const trine_tensor *all = trine_call_given(call, i);
        trine_tensor *own = &tensor[i];
        if (all == NULL) continue;
        *own = (trine_tensor){ .data = all->data, .dtype = all->dtype, .rank = all->rank - 1 };
        memcpy(own->shape, all->shape + 1, sizeof own->shape - sizeof own->shape[0]);
        memcpy(own->stride, all->stride + 1, sizeof own->stride - sizeof own->stride[0]);
        if (trine_tensor_count(all) > 0)
            own->data = (char *)all->data + m->rank * all->stride[0] * (int64_t)trine_dtype_size(all->dtype);
        memcpy(args + plan->tensor[i].spec->offset, &own, sizeof own);
    }
    m->status = lend_workspace(m);
    if (m->status == TRINE_OK) m->status = trine_comm_run(m->queue, (trine_op)plan->op, args);
    const trine_status waited = trine_queue_wait(m->queue);
    if (m->status == TRINE_OK) m->status = waited;
    if (call->workspace_size > 0) trine_queue_set_workspace(m->queue, NULL, 0);
}

trine_status trine_whole_run(trine_queue *queue, const trine_call *call, const void *args) {
    trine_whole *w = NULL;
    trine_status status = trine_queue_immediate(queue, call->plan->spec->name);
    if (status == TRINE_OK) status = find_group(queue, (int)call->dim[call->plan->ranks], &w);
    if (status == TRINE_OK) status = trine_queue_wait(queue);
    if (status != TRINE_OK) return status;
    w->call = call;
    w->args = args;
    w->workspace = queue->workspace;
    status = do_all(w, run_rank);
    if (status == TRINE_OK) return status;
    char words[1024];
    snprintf(words, sizeof words, "%s", trine_error_message());
    queue->whole = w->next; /* what failed may have broken the group */
    free_one(w);
    return trine_fail(status, "%s", words);
}
