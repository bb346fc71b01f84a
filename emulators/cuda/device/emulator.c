/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's threads: one stack each, switched by setjmp. */
#include "emulator.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 1 << 17 };

EMULATOR_OWN struct emulator emulator;

typedef struct fiber {
    void *stack; /* NULL: it has not been started */
    emulator_state state;
    int first, count; /* of the threads waited for in WAIT_PART */
    jmp_buf at;
} fiber_state;

/* What a thread of the host keeps for its launches. */
static EMULATOR_OWN struct machine {
    _Alignas(1024) char memory[EMULATOR_CLUSTER][EMULATOR_MEMORY];
    fiber_state fibers[EMULATOR_CLUSTER][EMULATOR_THREADS];
    uint64_t slot[EMULATOR_THREADS];
    jmp_buf scheduler;
    emulator_entry *running;
    const void *parameters;
} *machine;
static EMULATOR_OWN fiber_state *fiber; /* of the block that runs */

static pthread_key_t key;

static void free_machine(void *context) {
    struct machine *m = context;
    for (int rank = 0; rank < EMULATOR_CLUSTER; rank++)
        for (int i = 0; i < EMULATOR_THREADS; i++)
            if (m->fibers[rank][i].stack != NULL) munmap(m->fibers[rank][i].stack, STACK);
    munmap(m, sizeof *m);
}

static void make_key(void) { pthread_key_create(&key, free_machine); }

static void *map(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) return at;
    fprintf(stderr, "emulator: out of memory\n");
    abort();
}

static void find_machine(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (machine != NULL) return;
    pthread_once(&once, make_key);
    machine = map(sizeof *machine);
    pthread_setspecific(key, machine);
    emulator.slot = machine->slot;
    emulator.memory = machine->memory;
}

static void switch_to_scheduler(void) {
    const int self = emulator.thread;
    if (_setjmp(fiber[self].at) == 0) _longjmp(machine->scheduler, 1);
}

void emulator_wait(emulator_state state) {
    fiber[emulator.thread].state = state;
    switch_to_scheduler();
}

void emulator_wait_part(int first, int count) {
    fiber[emulator.thread].first = first;
    fiber[emulator.thread].count = count;
    emulator_wait(WAIT_PART);
}

/* A fiber outlives its kernel and serves the next. */
static void fiber_main(void) {
    for (;;) {
        machine->running(machine->parameters);
        emulator.slot[emulator.thread] = EMULATOR_GONE;
        emulator_wait(DONE);
    }
}

static void resume(int thread) {
    static ucontext_t unused;
    emulator.thread = thread;
    if (_setjmp(machine->scheduler) != 0) return;
    if (fiber[thread].stack != NULL) _longjmp(fiber[thread].at, 1);
    fiber[thread].stack = map(STACK);
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = fiber[thread].stack;
    start.uc_stack.ss_size = STACK;
    start.uc_link = &unused;
    makecontext(&start, fiber_main, 0);
    setcontext(&start);
}

/* Lets the threads first .. last-1 go on if all that have not returned wait in this state. */
static bool release(int first, int last, emulator_state state) {
    bool any = false;
    for (int i = first; i < last; i++) {
        if (fiber[i].state != state && fiber[i].state != DONE) return false;
        any |= fiber[i].state == state;
    }
    for (int i = first; any && i < last; i++)
        if (fiber[i].state == state) fiber[i].state = READY;
    return any;
}

/* The same of a part of a warp, if all of its threads wait for the same one. */
static bool release_part(int first, int count) {
    for (int i = first; i < first + count; i++)
        if (fiber[i].state != WAIT_PART || fiber[i].first != first || fiber[i].count != count) return false;
    return release(first, first + count, WAIT_PART);
}

/* Lets the block's threads look again that wait for a change; false: there are none. */
static bool release_changed(int threads) {
    bool any = false;
    for (int i = 0; i < threads; i++) {
        if (fiber[i].state != WAIT_CHANGE) continue;
        fiber[i].state = READY;
        any = true;
    }
    return any;
}

/* Until all threads wait for the cluster, or for what another block does, or have returned. */
static void run_block(int threads, bool reverse) {
    bool progress = true;
    uint64_t changes = emulator.changes;
    while (progress) {
        progress = false;
        for (int k = 0; k < threads; k++) {
            const int thread = reverse ? threads - 1 - k : k;
            if (fiber[thread].state == READY) resume(thread);
        }
        for (int i = 0; i < threads; i++)
            if (fiber[i].state == WAIT_PART && fiber[i].first == i) progress |= release_part(i, fiber[i].count);
        for (int i = 0; i < threads; i += EMULATOR_WARP)
            progress |= release(i, i + EMULATOR_WARP < threads ? i + EMULATOR_WARP : threads, WAIT_WARP);
        progress |= release(0, threads, WAIT_BLOCK);
        for (int i = 0; i < threads; i++) progress |= fiber[i].state == READY; /* it waits for another launch */
        progress |= emulator.changes != changes && release_changed(threads);
        changes = emulator.changes;
    }
    for (int i = 0; i < threads; i++) {
        if (fiber[i].state >= WAIT_CLUSTER) continue;
        fprintf(stderr, "emulator: thread %d of block %lld waits for ever\n", i, (long long)emulator.block);
        abort();
    }
}

/* The cluster's threads go on if all that have not returned wait for it. */
static bool release_cluster(int threads) {
    bool any = false, all = true;
    for (int rank = 0; rank < emulator.cluster; rank++)
        for (int i = 0; i < threads; i++) {
            any |= machine->fibers[rank][i].state == WAIT_CLUSTER;
            all &= machine->fibers[rank][i].state == WAIT_CLUSTER || machine->fibers[rank][i].state == DONE;
        }
    for (int rank = 0; any && all && rank < emulator.cluster; rank++)
        for (int i = 0; i < threads; i++)
            if (machine->fibers[rank][i].state == WAIT_CLUSTER) machine->fibers[rank][i].state = READY;
    return any && all;
}

static void run_cluster(int64_t first, int threads, bool reverse) {
    bool done = false, progress = true;
    for (int rank = 0; rank < emulator.cluster; rank++)
        for (int i = 0; i < threads; i++) machine->fibers[rank][i].state = READY;
    while (!done && progress) {
        const uint64_t changes = emulator.changes;
        done = true;
        for (int k = 0; k < emulator.cluster; k++) {
            emulator.rank = reverse ? emulator.cluster - 1 - k : k;
            emulator.block = first + emulator.rank;
            fiber = machine->fibers[emulator.rank];
            release_changed(threads);
            run_block(threads, reverse);
            for (int i = 0; i < threads; i++) done &= fiber[i].state == DONE;
        }
        progress = emulator.changes != changes;
        progress |= release_cluster(threads);
    }
    if (done) return;
    fprintf(stderr, "emulator: blocks of the cluster of block %lld wait for ever\n", (long long)first);
    abort();
}

void emulator_launch(emulator_entry *entry, const void *params, int64_t blocks, int threads, int cluster) {
    static _Atomic unsigned launches;
    const bool reverse = launches++ % 2;
    find_machine();
    machine->running = entry;
    machine->parameters = params;
    emulator.threads = threads;
    emulator.blocks = blocks;
    emulator.cluster = cluster;
    const bool from_end = reverse && !(entry(NULL) & EMULATOR_ALONE); /* else blocks would wait for each other */
    for (int64_t i = 0; i < blocks; i += cluster) run_cluster(from_end ? blocks - cluster - i : i, threads, reverse);
}
