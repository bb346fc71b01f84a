/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the CPU backend: a list of free ones, a word for each that it sleeps on, and jobs whose pieces all may
 * take. */
#include "pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nodes.h"

enum {
    PIECES = 4,            /* of a thread's share */
    SPIN = 50000,          /* nanoseconds that a thread looks for work, or for the end of a job, before it sleeps */
    SPIN_CROWDED = 1000,   /* the same where there are more threads than CPUs */
    LATE = 100000,         /* nanoseconds: a thread that was kept from its core so long while a job waited for it ... */
    REST = 8,              /* ... is left out for so many times as long */
    REST_MOST = 200000000, /* nanoseconds of rest at most */
    AGAIN = 1000000000,    /* nanoseconds until threads are made again where one could not be made */
    STACK_LEAST = 1 << 20, /* bytes of a thread's stack, if the default is less */
    LINE = 128             /* bytes that processors fetch together */
};

/* glibc makes threads with a set of CPUs; elsewhere each takes it when it begins. */
#ifdef __GLIBC__
enum { MADE_BOUND = 1 };
#else
enum { MADE_BOUND = 0 };
#define pthread_attr_setaffinity_np(attributes, size, set) ((void)(attributes), sched_setaffinity(0, size, set))
#endif

/* What a thread does, a word that it sleeps on. */
enum { FREE, ASLEEP, CALLED, BUSY, AWAITED };

/* Items of a job that are still to be taken. */
typedef struct share {
    int64_t next, last;
} share;

typedef struct job {
    cpu_body *body;
    const void *context;
    int64_t piece; /* items */
    bool in_turn;
    share share; /* the caller's; in turn, everybody's */
    struct worker *first;
} job;

typedef struct worker {
    _Alignas(LINE) uint32_t word;
    int number; /* in the job's team, from 1 */
    int place;  /* in the pool, from 1 */
    const job *job_of;
    struct worker *next; /* in the job's team, or in the list of free ones */
    struct worker *older;
    cpu_pool *pool;
    int64_t rest_until, wall, cpu; /* nanoseconds; the clocks when it last woke */
    _Alignas(LINE) share share;
} worker;

struct cpu_pool {
    cpu_pool *older;
    pthread_mutex_t lock;
    worker *free, *newest; /* free: by their places */
    int threads, cpus;
    int64_t refused; /* when a thread could not be made; 0: never */
    size_t size;
    cpu_set_t *set;
    trine_places *places; /* NULL: one node */
};

static cpu_pool *pools;
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t clock_now(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void futex_wait(uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}
static void futex_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static uint32_t word_of(const worker *w) { return __atomic_load_n(&w->word, __ATOMIC_ACQUIRE); }
static bool word_change(worker *w, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&w->word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Waits a little for the word to be something else than `value`. */
static bool spin_while(const worker *w, uint32_t value) {
    const int64_t most = __atomic_load_n(&w->pool->threads, __ATOMIC_RELAXED) < w->pool->cpus ? SPIN : SPIN_CROWDED;
    const int64_t start = clock_now(CLOCK_MONOTONIC);
    do {
        for (int i = 0; i < 16; i++) {
            if (word_of(w) != value) return true;
            pause_briefly();
        }
    } while (clock_now(CLOCK_MONOTONIC) - start < most);
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ a job */

static void take_pieces(const job *j, share *s, int thread) {
    for (;;) {
        if (__atomic_load_n(&s->next, __ATOMIC_RELAXED) >= s->last) return;
        const int64_t first = __atomic_fetch_add(&s->next, j->piece, __ATOMIC_RELAXED);
        if (first >= s->last) return;
        j->body(j->context, first, s->last - first < j->piece ? s->last : first + j->piece, thread);
    }
}

/* The thread's own share, then what is left of the others', in the order of the team. `self`: NULL for the caller. */
static void take_part(job *j, worker *self) {
    const int thread = self != NULL ? self->number : 0;
    if (!j->in_turn && self != NULL) take_pieces(j, &self->share, thread);
    for (worker *w = self != NULL ? self->next : NULL; !j->in_turn && w != NULL; w = w->next)
        take_pieces(j, &w->share, thread);
    take_pieces(j, &j->share, thread);
    for (worker *w = j->first; !j->in_turn && w != self; w = w->next) take_pieces(j, &w->share, thread);
}

/* --------------------------------------------------------------------------------------------------------- a thread */

static void sleep_until_called(worker *w) {
    if (spin_while(w, FREE) || !word_change(w, FREE, ASLEEP)) return;
    while (word_of(w) == ASLEEP) futex_wait(&w->word, ASLEEP);
    w->wall = clock_now(CLOCK_MONOTONIC);
    w->cpu = clock_now(CLOCK_THREAD_CPUTIME_ID);
}

/* Since it last woke it has worked or spun: where the clocks differ, it was kept from its core. */
static void rest_if_late(worker *w) {
    const int64_t wall = clock_now(CLOCK_MONOTONIC), cpu = clock_now(CLOCK_THREAD_CPUTIME_ID),
                  late = (wall - w->wall) - (cpu - w->cpu);
    w->wall = wall;
    w->cpu = cpu;
    if (late < LATE) return;
    w->rest_until = wall + (REST * late < REST_MOST ? REST * late : REST_MOST);
}

static void bind(const worker *w, pthread_attr_t *attributes);

static void *thread_main(void *argument) {
    worker *w = argument;
    if (!MADE_BOUND) bind(w, NULL);
    w->wall = clock_now(CLOCK_MONOTONIC);
    w->cpu = clock_now(CLOCK_THREAD_CPUTIME_ID);
    for (;;) {
        sleep_until_called(w);
        if (!word_change(w, CALLED, BUSY)) continue;
        take_part((job *)(uintptr_t)w->job_of, w);
        if (word_of(w) == AWAITED) rest_if_late(w);
        if (__atomic_exchange_n(&w->word, FREE, __ATOMIC_ACQ_REL) == AWAITED) futex_wake(&w->word);
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------------- nodes */

int trine_cpu_pool_node(const trine_places *places, int number) {
    int cores = 0, node = 0;
    for (int k = 0; k < places->nodes; k++) cores += places->cores[k];
    if (cores == 0) return 0;
    for (number %= cores; number >= places->cores[node]; node++) number -= places->cores[node];
    return node;
}

int trine_cpu_pool_nodes(const cpu_pool *pool) { return pool != NULL && pool->places ? pool->places->nodes : 1; }

static void find_places(cpu_pool *p) {
    p->places = malloc(sizeof *p->places);
    if (p->places != NULL) trine_topology_places(p->places);
    if (p->places == NULL || p->places->nodes > 1) return;
    free(p->places);
    p->places = NULL;
}

/* Of the pool's CPUs those of the thread's node; all, where a made-up topology has others. */
static void bind(const worker *w, pthread_attr_t *attributes) {
    const cpu_pool *p = w->pool;
    cpu_set_t *near = p->places ? calloc(1, p->size) : NULL;
    const int node = p->places ? trine_cpu_pool_node(p->places, w->place) : 0;
    for (size_t cpu = 0; near != NULL && cpu < p->size * 8 && cpu < PLACES_CPUS; cpu++)
        if (CPU_ISSET_S(cpu, p->size, p->set) && p->places->of_cpu[cpu] == node) CPU_SET_S(cpu, p->size, near);
    const bool some = near != NULL && CPU_COUNT_S(p->size, near) > 0;
    pthread_attr_setaffinity_np(attributes, p->size, some ? near : p->set);
    free(near);
}

/* Signals are for the program's own threads; those that a fault raises are not blocked, so that its handlers see
 * them. */
static bool thread_start(worker *w) {
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
    pthread_attr_t attributes;
    sigset_t all, before;
    size_t stack = 0;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < STACK_LEAST)
        pthread_attr_setstacksize(&attributes, STACK_LEAST);
    if (MADE_BOUND) bind(w, &attributes);
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool made = pthread_create(&thread, &attributes, thread_main, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (made) pthread_setname_np(thread, "trine");
    return made;
}

/* ----------------------------------------------------------------------------------------------------------- a pool */

/* A child has none of its parent's threads. At a fork the locks are held, so that the lists are whole. */
static void fork_begins(void) {
    pthread_mutex_lock(&pools_lock);
    for (cpu_pool *p = pools; p != NULL; p = p->older) pthread_mutex_lock(&p->lock);
}
static void fork_ends(void) {
    for (cpu_pool *p = pools; p != NULL; p = p->older) pthread_mutex_unlock(&p->lock);
    pthread_mutex_unlock(&pools_lock);
}
static void fork_ends_in_child(void) {
    for (cpu_pool *p = pools; p != NULL; p = p->older) {
        while (p->newest != NULL) {
            worker *gone = p->newest;
            p->newest = gone->older;
            free(gone);
        }
        p->free = NULL;
        p->threads = 0;
        p->refused = 0;
    }
    fork_ends();
}

cpu_pool *trine_cpu_pool(const cpu_set_t *cpus, size_t size) {
    static bool watched;
    pthread_mutex_lock(&pools_lock);
    if (!watched) watched = pthread_atfork(fork_begins, fork_ends, fork_ends_in_child) == 0;
    cpu_pool *p = pools;
    while (p != NULL && (p->size != size || memcmp(p->set, cpus, size) != 0)) p = p->older;
    if (p == NULL && watched && (p = calloc(1, sizeof *p)) != NULL) {
        *p = (cpu_pool){ .older = pools,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .cpus = CPU_COUNT_S(size, cpus),
                         .size = size,
                         .set = malloc(size) };
        if (p->set != NULL) {
            memcpy(p->set, cpus, size);
            find_places(p);
            pools = p;
        } else {
            free(p);
            p = NULL;
        }
    }
    pthread_mutex_unlock(&pools_lock);
    return p;
}

/* One more thread, if one can be made; NULL otherwise. The pool is locked. */
static worker *make_worker(cpu_pool *p) {
    if (p->refused != 0 && clock_now(CLOCK_MONOTONIC) - p->refused < AGAIN) return NULL;
    worker *w = NULL;
    if (posix_memalign((void **)&w, LINE, sizeof *w) != 0) return NULL;
    *w = (worker){ .word = FREE, .pool = p, .older = p->newest, .place = p->threads + 1 };
    if (!thread_start(w)) {
        p->refused = clock_now(CLOCK_MONOTONIC);
        free(w);
        return NULL;
    }
    p->newest = w;
    __atomic_store_n(&p->threads, p->threads + 1, __ATOMIC_RELAXED);
    return w;
}

/* Takes up to `most` threads that neither work nor rest, in the order of the list, and makes more while the CPUs, or
 * else this team, are not used up. Returns how many. */
static int claim(cpu_pool *p, int most, worker **first_out) {
    int count = 0;
    int64_t now = 0;
    worker **from = &p->free, **to = first_out;
    pthread_mutex_lock(&p->lock);
    const int limit = p->cpus - 1 > most ? p->cpus - 1 : most;
    while (count < most) {
        worker *w = *from;
        if (w != NULL && w->rest_until != 0) {
            if (now == 0) now = clock_now(CLOCK_MONOTONIC);
            if (now < w->rest_until) {
                from = &w->next;
                continue;
            }
            w->rest_until = 0;
        }
        if (w != NULL)
            *from = w->next;
        else if (p->threads >= limit || (w = make_worker(p)) == NULL)
            break;
        *to = w;
        to = &w->next;
        count++;
    }
    *to = NULL;
    pthread_mutex_unlock(&p->lock);
    return count;
}

/* Both lists are in the order of places. */
static void release(cpu_pool *p, worker *first) {
    pthread_mutex_lock(&p->lock);
    for (worker **at = &p->free; first != NULL; at = &(*at)->next) {
        if (*at != NULL && (*at)->place < first->place) continue;
        worker *w = first;
        first = w->next;
        w->next = *at;
        *at = w;
    }
    pthread_mutex_unlock(&p->lock);
}

static void call(worker *w) {
    if (__atomic_exchange_n(&w->word, CALLED, __ATOMIC_ACQ_REL) == ASLEEP) futex_wake(&w->word);
}

/* Takes back a thread that has not begun; waits for one that has. */
static void dismiss(worker *w) {
    if (word_change(w, CALLED, FREE)) return;
    if (word_of(w) == BUSY && !spin_while(w, BUSY) && word_change(w, BUSY, AWAITED))
        while (word_of(w) == AWAITED) futex_wait(&w->word, AWAITED);
}

void trine_cpu_pool_run(cpu_pool *pool, int team, int64_t n, bool in_turn, cpu_body *body, const void *context) {
    job j = { .body = body, .context = context, .piece = 1, .in_turn = in_turn, .share = { 0, n } };
    const int helpers = pool != NULL && team > 1 ? claim(pool, team - 1, &j.first) : 0;
    if (helpers == 0) {
        if (!in_turn) j.piece = n;
        take_pieces(&j, &j.share, 0);
        return;
    }
    const int64_t shares = helpers + 1;
    if (!in_turn) {
        j.piece = (n + shares * PIECES - 1) / (shares * PIECES);
        j.share.last = n / shares;
    }
    int number = 0;
    for (worker *w = j.first; w != NULL; w = w->next) {
        w->number = ++number;
        w->job_of = &j;
        w->share = in_turn ? (share){ 0, 0 } : (share){ n * number / shares, n * (number + 1) / shares };
    }
    for (worker *w = j.first; w != NULL; w = w->next) call(w);
    take_part(&j, NULL);
    for (worker *w = j.first; w != NULL; w = w->next) dismiss(w);
    release(pool, j.first);
}
