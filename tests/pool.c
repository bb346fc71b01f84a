/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the CPU device: what they are, that none is waited for before it begins, and that a program which
 * cannot make them goes on. */
#include <dirent.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <trine/trine.h>

#include "backends/cpu/core/pool.h"
#include "tap.h"

enum { ROWS = 512, COLUMNS = 1024 };

static float input[ROWS * COLUMNS], expected[ROWS * COLUMNS], output[ROWS * COLUMNS];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool softmax(trine *lib, int threads, float *y) {
    trine_queue *queue;
    const trine_tensor tx = trine_tensor_2d(input, TRINE_F32, ROWS, COLUMNS),
                       ty = trine_tensor_2d(y, TRINE_F32, ROWS, COLUMNS);
    if (trine_queue_open(lib, 0,
                         &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .threads = threads },
                         &queue) != TRINE_OK)
        return false;
    const trine_status status = trine_softmax(queue, &(trine_softmax_args){ TRINE_ARGS(softmax), .x = &tx, .y = &ty });
    trine_queue_close(queue);
    return status == TRINE_OK;
}

static int in_child(int (*child)(void)) {
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(child());
    }
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* --------------------------------------------------------------------------------------------- no threads to be had */

static int without_threads(void) {
    trine *lib;
    enum { NOBODY = 65534 };
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || setrlimit(RLIMIT_NPROC, &(struct rlimit){ 1, 1 }) != 0) return 2;
    if (trine_open(NULL, &lib) != TRINE_OK || !softmax(lib, 1, expected) || !softmax(lib, 4, output)) return 3;
    trine_close(lib);
    return memcmp(output, expected, sizeof output) != 0;
}

/* ---------------------------------------------------------------------------------------------------- what they are */

/* Of the threads named "trine", of which there must be some: does a field of their status say so? */
static bool all_say(const char *field, const char *value) {
    DIR *folder = opendir("/proc/self/task");
    int threads = 0;
    bool good = true;
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[320], line[512], found[512] = "";
        bool ours = false;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            line[strcspn(line, "\n")] = 0;
            if (strcmp(line, "Name:\ttrine") == 0) ours = true;
            if (strncmp(line, field, strlen(field)) == 0) snprintf(found, sizeof found, "%s", line + strlen(field) + 2);
        }
        if (file != NULL) fclose(file);
        threads += ours;
        good &= !ours || strcmp(found, value) == 0;
    }
    if (folder != NULL) closedir(folder);
    return good && threads > 0;
}

/* Within a few seconds: a thread that has just been made has not set all about itself. */
static bool threads_say(const char *field, const char *value) {
    for (int i = 0; i < 100; i++) {
        if (all_say(field, value)) return true;
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    }
    return false;
}

/* After the affinity widens, a library and a queue opened anew have the cores and threads of all CPUs. */
static int widened(void) {
    trine *narrow, *wide;
    trine_device_info_t one, all;
    cpu_set_t every, first;
    sched_getaffinity(0, sizeof every, &every);
    CPU_ZERO(&first);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &every) && CPU_COUNT(&first) == 0) CPU_SET(i, &first);
    if (sched_setaffinity(0, sizeof first, &first) != 0 || trine_open(NULL, &narrow) != TRINE_OK) return 2;
    if (trine_device_info(narrow, 0, &one) != TRINE_OK || one.units != 1) return 3;
    if (sched_setaffinity(0, sizeof every, &every) != 0 || trine_open(NULL, &wide) != TRINE_OK) return 4;
    if (trine_device_info(wide, 0, &all) != TRINE_OK || all.units < 2) return 5;
    if (trine_device_info(narrow, 0, &one) != TRINE_OK || one.units != 1) return 6;
    if (!softmax(wide, 2, output) || memcmp(output, expected, sizeof output) != 0) return 7;
    char line[512], list[512] = "";
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Cpus_allowed_list: %511s", list) == 1) break;
    if (file != NULL) fclose(file);
    return threads_say("Cpus_allowed_list", list) ? 0 : 8;
}

/* ----------------------------------------------------------------------------------------------------- late threads */

typedef struct late {
    int64_t n, done; /* items; those done */
    int stuck;       /* 1: another thread has begun and waits for the rest to be done */
    bool waits;      /* does the caller wait for another thread to begin? */
    double nap;      /* seconds another thread sleeps on its first item */
    bool held_up;
} late;

static void wait_for(const int *flag, double seconds) {
    const double start = now();
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0 && now() - start < seconds) sched_yield();
}

/* A second thread stays at its first piece until all others are done: only then is it not late for ever. */
static void late_body(const void *context, int64_t first, int64_t last, int thread) {
    late *l = (late *)(uintptr_t)context;
    if (thread > 0 && __atomic_exchange_n(&l->stuck, 1, __ATOMIC_ACQ_REL) == 0) {
        const double start = now();
        while (l->nap == 0 && __atomic_load_n(&l->done, __ATOMIC_ACQUIRE) < l->n - (last - first) && now() - start < 5)
            sched_yield();
        l->held_up |= now() - start >= 5;
        const struct timespec t = { 0, (long)(1e9 * l->nap) };
        if (l->nap > 0) nanosleep(&t, NULL);
    }
    if (thread == 0 && l->waits) {
        wait_for(&l->stuck, 1);
        l->waits = false;
    }
    __atomic_fetch_add(&l->done, last - first, __ATOMIC_ACQ_REL);
}

/* Until a second thread takes part: on a busy machine it may have been late, and rest. */
static late run_late(cpu_pool *pool, bool in_turn, double nap) {
    late l = { 0 };
    for (int round = 0; round < 20 && !l.stuck; round++) {
        if (round > 0) nanosleep(&(struct timespec){ 0, 250000000 }, NULL);
        l = (late){ .n = 64, .waits = true, .nap = nap };
        trine_cpu_pool_run(pool, 2, l.n, in_turn, late_body, &l);
    }
    return l;
}

static void late_threads(void) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    cpu_pool *pool = trine_cpu_pool(&set, sizeof set);
    for (int in_turn = 0; in_turn < 2; in_turn++) {
        const late l = run_late(pool, in_turn, 0);
        tap(l.stuck && !l.held_up && l.done == l.n, "%s: the rest is done while one thread stays at a piece",
            in_turn ? "in turn" : "in shares");
    }
    const late slow = run_late(pool, true, 0.05);
    late next = { .n = 64 };
    trine_cpu_pool_run(pool, 2, next.n, true, late_body, &next);
    tap(slow.stuck && slow.done == slow.n && next.done == next.n && !next.stuck,
        "a thread that was kept from its core is left out");
    const late later = run_late(pool, true, 0);
    tap(later.stuck && later.done == later.n, "and is back later");
}

int main(void) {
    alarm(240);
    trine *lib;
    cpu_set_t set;
    for (int i = 0; i < ROWS * COLUMNS; i++) input[i] = (float)((int64_t)i * 7919 % 1000) / 100;
    if (geteuid() == 0) /* before the library has threads */
        tap(in_child(without_threads) == 0, "a program that may have no more threads goes on");
    else
        tap(true, "a program that may have no more threads # SKIP only root can become a user that has none");
    if (!tap(trine_open(NULL, &lib) == TRINE_OK && softmax(lib, 1, expected), "one thread: %s", trine_error_message()))
        return tap_end();
    sched_getaffinity(0, sizeof set, &set);
    const int status = CPU_COUNT(&set) > 1 ? in_child(widened) : 0;
    tap(status == 0, "a wider affinity is seen: %d", status);
    tap(softmax(lib, 4, output) && memcmp(output, expected, sizeof output) == 0, "four threads: the same bits");
    tap(threads_say("SigBlk", "fffffffe3ffbfa27"), "signals are blocked, but for those of faults");
    late_threads();
    trine_close(lib);
    return tap_end();
}
