/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose exchange takes place in pieces, on ranks with devices of their own or of a device that they share: as
 * few lines to a piece as the memory for it has, and calls one after the other without a wait.
 *
 *     comm_pieces DEVICE DEVICES */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trine/trine.h>

#include "emulators/cuda/stub.h"
#include "tap.h"

enum { MOST = 4, RECORD = 1024, CALLS = 3, GAP = 4 };

static trine *lib;
static const char *first_device;
static int devices, ranks;
static bool graphs; /* of ranks with devices of their own, by a driver that records copies on another stream */
static size_t staging;
static pthread_barrier_t meeting;
static char gathered[MOST][RECORD];

typedef struct rank {
    int number;
    trine_queue *queue;
    trine_comm *comm;
    trine_status status;
    char message[512];
    int wrong;
} rank;

static int gather(void *context, const void *mine, void *all, size_t bytes) {
    const rank *r = context;
    if (bytes > RECORD) return 1;
    memcpy(gathered[r->number], mine, bytes);
    pthread_barrier_wait(&meeting);
    for (int other = 0; other < ranks; other++) memcpy((char *)all + (size_t)other * bytes, gathered[other], bytes);
    pthread_barrier_wait(&meeting);
    return 0;
}

static void keep(rank *r, trine_status status) {
    if (r->status != TRINE_OK || status == TRINE_OK) return;
    r->status = status;
    snprintf(r->message, sizeof r->message, "%s", trine_error_message());
}

/* A device that ranks share loads code of another op when their calls have ended. */
static void next(rank *r) {
    if (devices == 1 && r->status == TRINE_OK) keep(r, trine_queue_wait(r->queue));
}

/* Small integers, so that sums in f32 are exact. */
static float number_of(int call, int number, int64_t at) { return (float)((at * 7 + number * 3 + call * 5) % 9 - 4); }

/* Element (i, j) of rank s's rows by rank t's matrix. */
static float product_of(int call, int s, int t, int64_t i, int64_t j, int64_t n, int64_t k) {
    float sum = 0;
    for (int64_t p = 0; p < k; p++) sum += number_of(call, s, i * k + p) * number_of(call, t, p * n + j);
    return sum;
}
static float sum_of(int call, int64_t i, int64_t j, int64_t n, int64_t k) {
    float sum = 0;
    for (int s = 0; s < ranks; s++) sum += product_of(call, s, s, i, j, n, k);
    return sum;
}

/* The elements from a line to the next: ranks 1 and 3 have gaps, and rank 2 its lines backwards. */
static int64_t step_of(int number, int64_t k) { return number % 2 ? k + GAP : number == 2 ? -k : k; }

/* Of a call of each op: a by ranks, one below the other; b; outputs; the rows of all; and this rank's rows. */
typedef struct set {
    float *a, *b, *part, *whole, *each, *rest, *own;
} set;
typedef struct size {
    int64_t m, n, k; /* m: lines of each rank */
} size;

static int64_t floats_of(size s) { return ranks * s.m * (2 * s.k + 3 * s.n) + s.k * s.n + s.m * (s.k + GAP); }

static set fill(int call, int number, size s, float *at) {
    const int64_t all = ranks * s.m, step = step_of(number, s.k);
    set f = { .a = at, .b = at + all * s.k };
    f.part = f.b + s.k * s.n;
    f.whole = f.part + all * s.n;
    f.each = f.whole + all * s.n;
    f.rest = f.each + all * s.n;
    f.own = f.rest + all * s.k + (step < 0 ? (1 - s.m) * step : 0);
    for (float *out = f.part; out < f.rest + all * s.k; out++) *out = -1;
    for (int64_t i = 0; i < all * s.k; i++) f.a[i] = number_of(call, number, i);
    for (int64_t i = 0; i < s.k * s.n; i++) f.b[i] = number_of(call, number, i);
    for (int64_t i = 0; i < s.m * s.k; i++) f.own[i / s.k * step + i % s.k] = number_of(call, number, i);
    return f;
}

/* The numbers are at `host`, and the same in the device's memory. */
static void submit(rank *r, const set *f, size s, char *memory, const char *host, bool gathered) {
#define THERE(x) (memory + ((const char *)(x) - host))
    const int64_t m = s.m, n = s.n, k = s.k, all = ranks * m;
    const trine_tensor by_rank = trine_tensor_3d(THERE(f->a), TRINE_F32, ranks, m, k),
                       below = trine_tensor_2d(THERE(f->a), TRINE_F32, all, k),
                       own = { THERE(f->own), TRINE_F32, 2, { m, k }, { step_of(r->number, k), 1 } },
                       b = trine_tensor_2d(THERE(f->b), TRINE_F32, k, n),
                       part = trine_tensor_2d(THERE(f->part), TRINE_F32, m, n),
                       whole = trine_tensor_2d(THERE(f->whole), TRINE_F32, all, n),
                       each = trine_tensor_3d(THERE(f->each), TRINE_F32, ranks, m, n),
                       rest = trine_tensor_3d(THERE(f->rest), TRINE_F32, ranks, m, k);
    const trine_matmul_reduce_scatter_args scatter = { TRINE_ARGS(matmul_reduce_scatter), r->comm, &by_rank, &b,
                                                       &part };
    const trine_matmul_all_reduce_args reduce = { TRINE_ARGS(matmul_all_reduce), r->comm, &below, &b, &whole };
    const trine_all_gather_matmul_args gather_rows = { TRINE_ARGS(all_gather_matmul), r->comm, &own, &b, &each,
                                                       gathered ? &rest : NULL };
    keep(r, trine_matmul_reduce_scatter(r->queue, &scatter));
    next(r);
    keep(r, trine_matmul_all_reduce(r->queue, &reduce));
    next(r);
    keep(r, trine_all_gather_matmul(r->queue, &gather_rows));
    next(r);
}

static int wrong_of(int call, int number, const set *f, size s, bool gathered) {
    const int64_t m = s.m, n = s.n, k = s.k;
    int wrong = 0;
    for (int64_t i = 0; i < m * n; i++) wrong += f->part[i] != sum_of(call, number * m + i / n, i % n, n, k);
    for (int64_t i = 0; i < ranks * m * n; i++) {
        wrong += f->whole[i] != sum_of(call, i / n, i % n, n, k);
        wrong += f->each[i] != product_of(call, (int)(i / n / m), number, i / n % m, i % n, n, k);
    }
    for (int64_t i = 0; gathered && i < ranks * m * k; i++)
        wrong += f->rest[i] != number_of(call, (int)(i / k / m), i % (m * k));
    return wrong;
}

/* A driver records one thread's work at a time, the stand-in. */
static trine_graph *record(rank *r, const set *f, size s, char *memory, const char *host) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    trine_graph *graph = NULL;
    pthread_mutex_lock(&lock);
    keep(r, trine_graph_begin(r->queue));
    submit(r, f, s, memory, host, true);
    keep(r, trine_graph_end(r->queue, &graph));
    pthread_mutex_unlock(&lock);
    return graph;
}

/* Calls one after the other, and then those of the last as a graph, twice. */
static void multiply(rank *r, size s) {
    const int64_t floats = floats_of(s);
    const size_t bytes = (size_t)(CALLS * floats) * sizeof(float);
    float *host = calloc(bytes, 1);
    char *memory = NULL;
    set f[CALLS];
    keep(r, trine_memory_alloc(r->queue, bytes, (void **)&memory));
    for (int c = 0; c < CALLS; c++) f[c] = fill(c, r->number, s, host + c * floats);
    if (r->status == TRINE_OK) keep(r, trine_memory_write(r->queue, memory, host, bytes));
    for (int c = 0; c < CALLS && r->status == TRINE_OK; c++) submit(r, &f[c], s, memory, (char *)host, c % 2);
    if (r->status == TRINE_OK) keep(r, trine_memory_read(r->queue, host, memory, bytes));
    for (int c = 0; c < CALLS && r->status == TRINE_OK; c++) r->wrong += wrong_of(c, r->number, &f[c], s, c % 2);

    fill(0, r->number, s, host);
    if (r->status == TRINE_OK) keep(r, trine_memory_write(r->queue, memory, host, bytes));
    trine_graph *graph = graphs && r->status == TRINE_OK ? record(r, &f[0], s, memory, (char *)host) : NULL;
    for (int i = 0; i < 2 && graph != NULL && r->status == TRINE_OK; i++) keep(r, trine_graph_launch(r->queue, graph));
    if (r->status == TRINE_OK) keep(r, trine_memory_read(r->queue, host, memory, bytes));
    if (graph != NULL && r->status == TRINE_OK) r->wrong += wrong_of(0, r->number, &f[0], s, true);
    trine_graph_free(graph);
    trine_memory_free(r->queue, memory);
    free(host);
}

static void *live(void *context) {
    static const size sizes[] = { { 1, 1, 4 }, { 7, 90, 4 }, { 60, 3, 8 }, { 41, 17, 64 }, { 64, 64, 16 } };
    rank *r = context;
    char kernel[32], device[32];
    snprintf(kernel, sizeof kernel, "%.*s_in_pieces", (int)strcspn(first_device, ":"), first_device);
    snprintf(device, sizeof device, "%.*s:%d", (int)strcspn(first_device, ":"), first_device, r->number % devices);
    const trine_queue_options queue = { .struct_size = sizeof queue, .kernel = kernel };
    const trine_comm_options options = { .struct_size = sizeof options, .timeout = 60, .staging_bytes = staging };
    const trine_bootstrap bootstrap = { gather, r };
    keep(r, trine_queue_open(lib, trine_device_find(lib, device), &queue, &r->queue));
    keep(r, trine_comm_open(r->queue, r->number, ranks, &bootstrap, &options, &r->comm));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && r->status == TRINE_OK; i++) multiply(r, sizes[i]);
    trine_comm_close(r->comm);
    trine_queue_close(r->queue);
    return NULL;
}

/* Which of the ranks fails is told first. */
static void test_group(int of, size_t bytes) {
    rank all[MOST] = { 0 };
    pthread_t thread[MOST];
    const rank *told = &all[0];
    ranks = of;
    staging = bytes;
    graphs = ranks <= devices && strncmp(first_device, "cuda", 4) == 0;
    pthread_barrier_init(&meeting, NULL, (unsigned)ranks);
    for (int r = 0; r < ranks; r++) {
        all[r].number = r;
        pthread_create(&thread[r], NULL, live, &all[r]);
    }
    int wrong = 0;
    for (int r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
    for (int r = 0; r < ranks; r++) {
        wrong += all[r].wrong;
        if (told->status == TRINE_OK) told = &all[r];
    }
    pthread_barrier_destroy(&meeting);
    tap(told->status == TRINE_OK && wrong == 0, "%d ranks of %d devices, staging %zu: %d wrong %s", ranks, devices,
        bytes, wrong, told->message);
}

int main(int count, char **argument) {
    if (count != 3) return 2;
    alarm(240);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* a driver's, see group.h */
    first_device = argument[1];
    devices = atoi(argument[2]);
    stub_settings *stub = dlsym(RTLD_DEFAULT, STUB_SETTINGS);
    if (stub != NULL) stub->devices = devices;
    if (trine_open(NULL, &lib) != TRINE_OK) return 1;
    for (int of = 2; of <= MOST; of++) {
        test_group(of, 32768);
        test_group(of, 1 << 20);
        test_group(of, 0);
    }
    trine_close(lib);
    if (stub != NULL) tap(stub->uncut == 0, "no launch has an SM's memory cut anew: %d do", stub->uncut);
    return tap_end();
}
