/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the roofs of this machine's cores: memory, and multiply-adds by the best instruction there is.
 *
 * Every loop carries its result from one round to the next and ends in a volatile store, so that no compiler can leave
 * it out. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "peak.h"
#include "team.h"

const char *const bench_peak_name[PEAKS] = { "f32", "f64", "bf16", "i8", "f16", "tf32", "f8" };

enum { REPEATS = 7 };

typedef uint64_t wide __attribute__((vector_size(32), may_alias));

static volatile uint64_t sink;

static void read_all(const char *from, size_t bytes) {
    const wide *v = (const wide *)from;
    wide sum[8] = { 0 };
    for (size_t i = 0; i + 8 <= bytes / sizeof *v; i += 8)
        for (int k = 0; k < 8; k++) sum[k] ^= v[i + (size_t)k];
    for (int k = 1; k < 8; k++) sum[0] ^= sum[k];
    sink = sum[0][0] ^ sum[0][1] ^ sum[0][2] ^ sum[0][3];
}

static void copy_all(char *to, const char *from, size_t bytes) {
    wide *out = (wide *)to;
    const wide *in = (const wide *)from;
    for (size_t i = 0; i < bytes / sizeof *in; i++) out[i] = in[i];
    __asm__ volatile("" ::: "memory");
}

typedef enum pass { PASS_READ, PASS_WRITE, PASS_WRITE_LIBC, PASS_COPY, PASS_COPY_NT } pass;

static void run_pass(pass what, char *to, char *from, size_t bytes) {
    switch (what) {
    case PASS_READ: read_all(from, bytes); break;
    case PASS_WRITE: peak_stream_fill(to, bytes); break;
    case PASS_WRITE_LIBC: memset(to, 1, bytes); break;
    case PASS_COPY: copy_all(to, from, bytes); break;
    default: peak_stream_copy(to, from, bytes);
    }
}

/* Seconds that this thread has run. The roofs are made of these: a thread that waits for a core that others use says
 * nothing about the core. */
static double thread_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The share of a core that each of so many threads can have. */
static double core_share(int threads) {
    cpu_set_t set;
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : threads;
    return cores < threads ? (double)cores / threads : 1;
}

/* What the threads of a team have to do, and what they found. */
typedef struct task {
    pass what;
    char *to, *from;
    size_t bytes;
    const peak_loop *loop;
    int64_t rounds;
    pthread_mutex_t lock;
    double rate, longest; /* the sum of the threads' rates; the longest of their times */
} task;

static void tell(task *t, double rate, double seconds) {
    pthread_mutex_lock(&t->lock);
    t->rate += rate;
    if (seconds > t->longest) t->longest = seconds;
    pthread_mutex_unlock(&t->lock);
}

/* The part of a thread's, in bytes: whole pages of 4 KiB. */
static size_t part_begin(const task *t, int number, int all) {
    return t->bytes / 4096 * (size_t)number / (size_t)all * 4096;
}

static void pass_body(void *data, int number, int all) {
    task *t = data;
    const size_t first = part_begin(t, number, all), last = part_begin(t, number + 1, all);
    const double start = thread_seconds();
    run_pass(t->what, t->to + first, t->from + first, last - first);
    const double seconds = thread_seconds() - start;
    tell(t, (double)(last - first) * (t->what >= PASS_COPY ? 2 : 1) / seconds, seconds);
}

static void peak_body(void *data, int number, int all) {
    task *t = data;
    const double start = thread_seconds();
    (void)number, (void)all;
    t->loop->run(t->rounds);
    const double seconds = thread_seconds() - start;
    tell(t, t->loop->operations * (double)t->rounds / seconds, seconds);
}

/* Each thread touches first what it will work on. */
static void touch_body(void *data, int number, int all) {
    const task *t = data;
    const size_t first = part_begin(t, number, all), last = part_begin(t, number + 1, all);
    memset(t->from + first, 1, last - first);
    memset(t->to + first, 2, last - first);
}

static void run_task(task *t, void (*body)(void *data, int number, int all), int threads) {
    pthread_mutex_init(&t->lock, NULL);
    bench_team_run(threads, body, t);
    pthread_mutex_destroy(&t->lock);
}

/* Bytes a second, summed over the threads, of the best of some passes over `bytes`. */
static double time_pass(pass what, char *to, char *from, size_t bytes, int threads) {
    double best = 0;
    for (int r = 0; r < REPEATS; r++) {
        task t = { .what = what, .to = to, .from = from, .bytes = bytes };
        run_task(&t, pass_body, threads);
        const double rate = t.rate * core_share(threads);
        if (rate > best) best = rate;
    }
    return best;
}

static double time_peak(const peak_loop *loop, int threads) {
    double best = 0;
    int64_t rounds = 20000;
    for (int r = 0; r < REPEATS;) {
        task t = { .loop = loop, .rounds = rounds };
        run_task(&t, peak_body, threads);
        if (t.longest < 2e-3 && rounds < INT64_C(1) << 40) {
            rounds *= 4;
            continue;
        }
        const double rate = t.rate * core_share(threads);
        if (rate > best) best = rate;
        r++;
    }
    return best;
}

void bench_peaks_measure(bench_roofs *roofs, int threads) {
    for (const peak_loop *loop = peak_loops; loop->name; loop++) {
        if (!loop->usable()) continue;
        const double rate = time_peak(loop, threads);
        for (bench_peak p = 0; p < PEAKS; p++) {
            if (!(loop->types >> p & 1) || rate <= roofs->peak[p]) continue;
            roofs->peak[p] = rate;
            roofs->instruction[p] = loop->name;
        }
    }
    roofs->threads = threads;
}

bool bench_roofs_measure(bench_roofs *roofs, int threads, int64_t last_level, int64_t memory) {
    size_t bytes = last_level < (INT64_C(16) << 20) ? (size_t)64 << 20 : (size_t)last_level * 4;
    if ((int64_t)bytes > memory / 8) bytes = (size_t)memory / 8;
    bytes &= ~(size_t)4095;
    char *a = aligned_alloc(4096, bytes), *b = aligned_alloc(4096, bytes);
    if (a == NULL || b == NULL) {
        free(a);
        free(b);
        return false;
    }
    task touch = { .from = a, .to = b, .bytes = bytes };
    run_task(&touch, touch_body, threads);
    double *const rates[] = { &roofs->read, &roofs->write, &roofs->write, &roofs->copy, &roofs->copy_nt };
    for (pass p = PASS_READ; p <= PASS_COPY_NT; p++) {
        const double rate = time_pass(p, a, b, bytes, threads);
        if (rate > *rates[p]) *rates[p] = rate;
    }
    free(a);
    free(b);
    bench_peaks_measure(roofs, threads);
    return true;
}

double bench_memory_roof(const bench_roofs *roofs) {
    const double rates[] = { roofs->read, roofs->write, roofs->copy, roofs->copy_nt };
    double best = 0;
    for (int i = 0; i < 4; i++)
        if (rates[i] > best) best = rates[i];
    return best;
}
