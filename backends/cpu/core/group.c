/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks on the CPU: a file without a name for each rank, which the others open by way of /proc and map, and
 * so nothing is left behind, whatever ends. */
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <trine/ops.h>

#include "spec/number.h"

enum {
    LINE = 128, /* bytes that one core holds at a time: two lines on x86 (Intel SDM, adjacent-line prefetch) */
    WORDS = 240,
    SPINS = 2000, /* looks at another rank's count before sleeping, where `spins` is set */
    DEFAULT_STAGING = 1 << 20
};
static const double slice = 0.02; /* seconds of sleep after which a rank looks whether the others are still there */

/* What a rank says of the call that it makes. */
typedef struct note {
    int32_t op, way;
    int32_t refused, reserved;
    int64_t dim[TRINE_MAX_SYMBOLS];
    int32_t type[TRINE_MAX_SYMBOLS];
    double param[TRINE_MAX_PARAMS];
    char words[WORDS];
} note;

enum { STATE_OPEN, STATE_CLOSED, STATE_ABORTED, STATE_BROKEN };

/* The head of a rank's memory. It alone writes there; the others have mapped it for reading. */
typedef struct head {
    uint64_t magic, nonce[2];
    _Alignas(LINE) _Atomic uint32_t posted; /* steps, modulo 2^32 */
    _Atomic uint32_t asleep;                /* is the rank in futex()? */
    _Atomic uint32_t state;
    char words[WORDS]; /* of STATE_BROKEN, written before it */
    _Alignas(LINE) note note[2];
} head;

#define HEAD_MAGIC 0x7472696e65686561u

/* What the others need to find it. */
typedef struct blob {
    uint64_t nonce[2], size, cpus; /* a hash of the CPUs that it may run on */
    int32_t pid, file;
} blob;

typedef struct peer {
    head *head;     /* NULL: not mapped */
    int pid, pidfd; /* pidfd -1: there is none */
} peer;

typedef struct group {
    const trine_host *host;
    int rank, ranks, file; /* file -1: closed, as all have opened it */
    pid_t process;
    double timeout;
    size_t head_bytes, half, size;
    uint32_t step; /* that is written or was posted last */
    bool written;  /* its half may be */
    bool broken;
    bool spins; /* may each rank on these CPUs have a core? Ranks that are bound have CPUs of their own */
    _Atomic bool aborted;
    char words[WORDS];
    head *own;
    peer peer[];
} group;

_Static_assert(sizeof(blob) <= TRINE_COMM_BLOB, "a rank's blob");

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static trine_status fail(const group *g, trine_status status, const char *what) {
    return g->host->error(status, "trine_comm_open: rank %d of %d: %s: %s", g->rank, g->ranks, what, strerror(errno));
}

/* The file, whose size nobody can change, with all of its memory taken now. */
static trine_status make_file(group *g) {
    g->file = memfd_create("trine-rank", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (g->file < 0) return fail(g, TRINE_ERR_MEMORY, "no shared memory");
    if (ftruncate(g->file, (off_t)g->size) != 0) return fail(g, TRINE_ERR_MEMORY, "no shared memory");
    errno = posix_fallocate(g->file, 0, (off_t)g->size);
    if (errno != 0) return fail(g, TRINE_ERR_MEMORY, "no shared memory");
    if (fcntl(g->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return fail(g, TRINE_ERR_DEVICE, "shared memory cannot be sealed");
    void *all = mmap(NULL, g->size, PROT_READ | PROT_WRITE, MAP_SHARED, g->file, 0);
    if (all == MAP_FAILED) return fail(g, TRINE_ERR_MEMORY, "shared memory cannot be mapped");
    g->own = all;
    return TRINE_OK;
}

/* Of the thread's affinity mask; 0: it is not known. */
static uint64_t hash_cpus(void) {
    unsigned char mask[1024] = { 0 };
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const long size = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    for (long i = 0; i < size; i++) hash = (hash ^ mask[i]) * UINT64_C(0x100000001b3);
    return size > 0 ? hash : 0;
}

trine_status trine_cpu_group_make(const trine_device *device, void *queue, const trine_comm_setup *setup, void *out,
                                  void **comm_out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    group *g = calloc(1, sizeof *g + (size_t)setup->ranks * sizeof g->peer[0]);
    (void)device, (void)queue;
    if (g == NULL) return setup->host->error(TRINE_ERR_MEMORY, "trine_comm_open: out of memory");
    *comm_out = g;
    g->host = setup->host;
    g->rank = setup->rank;
    g->ranks = setup->ranks;
    g->process = getpid();
    g->timeout = setup->timeout;
    g->head_bytes = round_up(sizeof *g->own, page);
    g->half = round_up(((setup->staging > 0 ? setup->staging : DEFAULT_STAGING) + 1) / 2, page);
    g->size = g->head_bytes + 2 * g->half;
    for (int r = 0; r < g->ranks; r++) g->peer[r].pidfd = -1;
    const trine_status status = make_file(g);
    if (status != TRINE_OK) return status;
    if (getrandom(g->own->nonce, sizeof g->own->nonce, 0) != (ssize_t)sizeof g->own->nonce)
        return fail(g, TRINE_ERR_DEVICE, "no random numbers");
    g->own->magic = HEAD_MAGIC;
    blob mine = { .size = g->size, .cpus = hash_cpus(), .pid = (int32_t)g->process, .file = g->file };
    memcpy(mine.nonce, g->own->nonce, sizeof mine.nonce);
    memset(out, 0, TRINE_COMM_BLOB);
    memcpy(out, &mine, sizeof mine);
    return TRINE_OK;
}

/* Opens what a rank says is its memory, and sees that it is: a number of a process may have come to another one. */
static trine_status map_peer(group *g, int r, const blob *b) {
    char path[64], what[128];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", b->pid, b->file);
    snprintf(what, sizeof what, "the memory of rank %d (process %d) cannot be opened", r, b->pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail(g, TRINE_ERR_COMM, what);
    errno = EINVAL;
    const bool fits = b->size == g->size && fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
                      (uint64_t)about.st_size == b->size && (fcntl(file, F_GET_SEALS) & F_SEAL_SHRINK) != 0;
    void *all = fits ? mmap(NULL, g->size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    const int why = errno;
    close(file);
    errno = why;
    if (all == MAP_FAILED) return fail(g, TRINE_ERR_COMM, what);
    head *const theirs = all;
    g->peer[r].head = theirs;
    if (theirs->magic == HEAD_MAGIC && memcmp(theirs->nonce, b->nonce, sizeof b->nonce) == 0) return TRINE_OK;
    return g->host->error(TRINE_ERR_COMM,
                          "trine_comm_open: rank %d of %d: the memory of rank %d (process %d) is not "
                          "what it said",
                          g->rank, g->ranks, r, b->pid);
}

trine_status trine_cpu_group_join(void *comm, const void *blobs) {
    group *g = comm;
    blob own;
    int beside = 0;
    memcpy(&own, (const char *)blobs + (size_t)g->rank * TRINE_COMM_BLOB, sizeof own);
    for (int r = 0; r < g->ranks; r++) {
        blob b;
        memcpy(&b, (const char *)blobs + (size_t)r * TRINE_COMM_BLOB, sizeof b);
        beside += b.cpus == own.cpus;
        g->peer[r].pid = b.pid;
        if (r == g->rank) continue;
        const trine_status status = map_peer(g, r, &b);
        if (status != TRINE_OK) return status;
        /* Where Linux has no such call (before 5.3), the time-out alone tells that a process has ended. */
        if (b.pid != (int32_t)g->process) g->peer[r].pidfd = (int)syscall(SYS_pidfd_open, b.pid, 0);
    }
    g->spins = beside <= g->host->cores;
    g->peer[g->rank].head = g->own;
    return TRINE_OK;
}

void trine_cpu_group_joined(void *comm) {
    group *g = comm;
    close(g->file);
    g->file = -1;
}

static void wake(head *own) { syscall(SYS_futex, &own->posted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

static void set_state(head *own, uint32_t state) {
    uint32_t before = STATE_OPEN;
    atomic_compare_exchange_strong(&own->state, &before, state);
    wake(own);
}

void trine_cpu_group_close(void *comm) {
    group *g = comm;
    if (g->own != NULL && g->process == getpid()) set_state(g->own, STATE_CLOSED);
    for (int r = 0; r < g->ranks; r++) {
        if (g->peer[r].pidfd >= 0) close(g->peer[r].pidfd);
        if (g->peer[r].head != NULL && r != g->rank) munmap(g->peer[r].head, g->size);
    }
    if (g->own != NULL) munmap(g->own, g->size);
    if (g->file >= 0) close(g->file);
    free(g);
}

void trine_cpu_group_abort(void *comm) {
    group *g = comm;
    atomic_store(&g->aborted, true);
    set_state(g->own, STATE_ABORTED);
}

/* ---------------------------------------------------------------------------------------------------------- waiting */

/* What ended the group, in words that all ranks can understand; all later calls return it. */
__attribute__((format(printf, 3, 4))) static trine_status give_up(group *g, int op, const char *format, ...) {
    va_list list;
    va_start(list, format);
    trine_vsnprintf(g->words, sizeof g->words, format, list);
    va_end(list);
    g->broken = true;
    memcpy(g->own->words, g->words, sizeof g->words);
    set_state(g->own, STATE_BROKEN);
    return g->host->error(TRINE_ERR_COMM, "%s: %s", trine_specs[op]->name, g->words);
}

static bool has_ended(const peer *p) {
    struct pollfd ends = { .fd = p->pidfd, .events = POLLIN };
    return p->pidfd >= 0 && poll(&ends, 1, 0) == 1;
}

static bool has_posted(const head *h, uint32_t step) {
    return (int32_t)(atomic_load_explicit(&h->posted, memory_order_acquire) - step) >= 0;
}

/* Is there a reason not to wait for `step`? A rank that has posted it may close and end. */
static trine_status look_round(group *g, int op, uint32_t step, bool ended) {
    if (atomic_load(&g->aborted)) return give_up(g, op, "rank %d aborted the group", g->rank);
    for (int r = 0; r < g->ranks; r++) {
        const peer *p = &g->peer[r];
        if (r == g->rank) continue;
        const uint32_t state = atomic_load(&p->head->state);
        if (state == STATE_ABORTED) return give_up(g, op, "rank %d aborted the group", r);
        if (has_posted(p->head, step)) continue;
        if (state == STATE_BROKEN) return give_up(g, op, "%.*s", WORDS - 1, p->head->words);
        if (state == STATE_CLOSED && !has_posted(p->head, step))
            return give_up(g, op, "rank %d has closed its communicator", r);
        if (ended && has_ended(p) && !has_posted(p->head, step))
            return give_up(g, op, "rank %d (process %d) has ended", r, p->pid);
    }
    return TRINE_OK;
}

static void pause_core(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps until the rank posts something, or for a slice. */
static void sleep_for(group *g, peer *p, uint32_t step) {
    const struct timespec most = { .tv_nsec = (long)(slice * 1e9) };
    atomic_store(&g->own->asleep, 1);
    const uint32_t seen = atomic_load(&p->head->posted);
    if ((int32_t)(seen - step) < 0) syscall(SYS_futex, &p->head->posted, FUTEX_WAIT, seen, &most, NULL, 0);
    atomic_store(&g->own->asleep, 0);
}

static trine_status wait_for(group *g, int op, int r, uint32_t step) {
    peer *p = &g->peer[r];
    if (has_posted(p->head, step)) return TRINE_OK;
    for (int i = g->spins ? SPINS : 0; i > 0; i--) {
        pause_core();
        if (has_posted(p->head, step)) return TRINE_OK;
    }
    const double start = now();
    double looked = start;
    while (!has_posted(p->head, step)) {
        const double time = now();
        const bool late = time - looked >= slice;
        const trine_status status = look_round(g, op, step, late);
        if (status != TRINE_OK) return status;
        if (late) looked = time;
        if (time - start >= g->timeout)
            return give_up(g, op, "rank %d of %d did not come within %g s", r, g->ranks, g->timeout);
        sleep_for(g, p, step);
    }
    return TRINE_OK;
}

static trine_status wait_for_all(group *g, int op, uint32_t step) {
    for (int i = 1; i < g->ranks; i++) {
        const trine_status status = wait_for(g, op, (g->rank + i) % g->ranks, step);
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static char *half_of(const group *g, int rank) {
    return (char *)g->peer[rank].head + g->head_bytes + (g->step & 1) * g->half;
}

/* The next step, whose half the others have read if they have posted the one before. */
static trine_status begin_step(group *g, int op) {
    if (atomic_load(&g->aborted) && !g->broken) return give_up(g, op, "rank %d aborted the group", g->rank);
    if (g->broken)
        return g->host->error(TRINE_ERR_COMM, "%s: the group is broken: %s", trine_specs[op]->name, g->words);
    for (int r = 0; r < g->ranks; r++) {
        const uint32_t state = r != g->rank ? atomic_load(&g->peer[r].head->state) : STATE_OPEN;
        if (state == STATE_ABORTED) return give_up(g, op, "rank %d aborted the group", r);
        if (state == STATE_BROKEN) return give_up(g, op, "%.*s", WORDS - 1, g->peer[r].head->words);
    }
    if (g->written) return TRINE_OK;
    const trine_status status = wait_for_all(g, op, g->step);
    if (status != TRINE_OK) return status;
    g->step++;
    g->written = true;
    return TRINE_OK;
}

static void post(group *g) {
    g->written = false;
    atomic_store(&g->own->posted, g->step);
    for (int r = 0; r < g->ranks; r++)
        if (r != g->rank && atomic_load(&g->peer[r].head->asleep)) {
            wake(g->own);
            return;
        }
}

/* What this rank says of a call. */
static void write_note(note *to, const trine_call *call, int way) {
    memset(to, 0, sizeof *to);
    to->op = call->plan->op;
    to->way = way;
    for (int i = 0; i < call->plan->symbols; i++) to->dim[i] = call->dim[i];
    for (int i = 0; i < call->plan->types; i++) to->type[i] = (int32_t)call->type[i];
    for (int i = 0; i < call->plan->params; i++) to->param[i] = trine_param_get(call->plan, i, call->args);
}

static const char *op_name(int op) { return op > 0 && op < TRINE_OP_COUNT ? trine_specs[op]->name : "another op"; }

static bool note_differs(group *g, const trine_call *call, const note *a, const note *b, int r, trine_status *status) {
    const trine_plan *plan = call->plan;
    if (a->op != b->op) {
        *status = give_up(g, plan->op, "rank %d calls %s, rank %d %s", r, op_name(b->op), g->rank, op_name(a->op));
        return true;
    }
    for (int i = 0; i < plan->symbols; i++)
        if (a->dim[i] != b->dim[i]) {
            *status = give_up(g, plan->op, "rank %d has %s = %" PRId64 ", rank %d %" PRId64, r, plan->symbol_name[i],
                              b->dim[i], g->rank, a->dim[i]);
            return true;
        }
    for (int i = 0; i < plan->types; i++)
        if (a->type[i] != b->type[i]) {
            const char *theirs = trine_dtype_name((trine_dtype)b->type[i]);
            *status = give_up(g, plan->op, "rank %d has %s = %s, rank %d %s", r, plan->type_name[i],
                              theirs != NULL ? theirs : "?", g->rank, trine_dtype_name((trine_dtype)a->type[i]));
            return true;
        }
    for (int i = 0; i < plan->params; i++)
        if (a->param[i] != b->param[i]) {
            *status = give_up(g, plan->op, "rank %d has %s = %g, rank %d %g", r, plan->spec->params[i].name,
                              b->param[i], g->rank, a->param[i]);
            return true;
        }
    if (a->way == b->way) return false;
    *status = give_up(g, plan->op, "ranks %d and %d run different kernels", r, g->rank);
    return true;
}

/* All ranks' calls against this one. A rank that was refused has used up the step as all others have. */
static trine_status compare_notes(group *g, const trine_call *call) {
    const note *mine = &g->own->note[g->step & 1];
    trine_status status = TRINE_OK;
    for (int r = 0; r < g->ranks; r++) {
        const note *theirs = &g->peer[r].head->note[g->step & 1];
        if (theirs->refused && r != g->rank)
            return g->host->error(TRINE_ERR_COMM, "%s: rank %d was refused: %.*s", call->plan->spec->name, r, WORDS - 1,
                                  theirs->words);
    }
    for (int r = 0; r < g->ranks; r++)
        if (r != g->rank && note_differs(g, call, mine, &g->peer[r].head->note[g->step & 1], r, &status)) return status;
    return TRINE_OK;
}

/* A refused call's words are the thread's message, and stay it. */
void trine_cpu_group_refuse(void *comm, int op, const char *message) {
    group *g = comm;
    char words[WORDS];
    snprintf(words, sizeof words, "%s", message);
    const bool posts = !g->broken && begin_step(g, op) == TRINE_OK;
    if (posts) {
        note *mine = &g->own->note[g->step & 1];
        memset(mine, 0, sizeof *mine);
        mine->op = op;
        mine->refused = 1;
        memcpy(mine->words, words, sizeof words);
        post(g);
    }
}

int64_t trine_cpu_group_bytes(const trine_call *call) {
    return call->comm != NULL ? (int64_t)((const group *)call->comm)->half : DEFAULT_STAGING / 2;
}

int trine_cpu_group_rank(const trine_call *call) { return ((const group *)call->comm)->rank; }

trine_status trine_cpu_group_ready(const trine_call *call, char **half_out) {
    group *g = call->comm;
    const trine_status status = begin_step(g, call->plan->op);
    if (status == TRINE_OK) *half_out = half_of(g, g->rank);
    return status;
}

trine_status trine_cpu_group_post(const trine_call *call, bool first, int way) {
    group *g = call->comm;
    note *mine = &g->own->note[g->step & 1];
    if (first) write_note(mine, call, way);
    post(g);
    const trine_status status = wait_for_all(g, call->plan->op, g->step);
    return status == TRINE_OK && first ? compare_notes(g, call) : status;
}

const char *trine_cpu_group_half(const trine_call *call, int rank) { return half_of(call->comm, rank); }
