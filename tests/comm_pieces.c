/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose exchange takes place in pieces, on ranks with devices of their own or of a device that they share: as
 * few lines to a piece as the memory for it has, and calls one after the other without a wait.
 *
 *     comm_pieces DEVICE DEVICES */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trine/trine.h>

#include "emulators/cuda/stub.h"
#include "tap.h"

enum { MOST = 4, RECORD = 1024, CALLS = 3 };

static trine *lib;
static const char *first_device;
static int devices, ranks;
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

/* Of one size, m lines for each rank. */
static void multiply(rank *r, int64_t m, int64_t n, int64_t k) {
    const int64_t all = ranks * m, rows = all * k, columns = k * n, out = all * n;
    const size_t bytes = (size_t)(CALLS * (rows + columns + 3 * out + all * k)) * sizeof(float);
    char *memory = NULL, *const host = calloc(bytes, 1);
    keep(r, trine_memory_alloc(r->queue, bytes, (void **)&memory));
    float *at = (float *)(void *)host, *b[CALLS], *x[CALLS], *d[CALLS][3], *rest[CALLS];
    for (int c = 0; c < CALLS; c++) {
        x[c] = at, at += rows;
        b[c] = at, at += columns;
        for (int i = 0; i < 3; i++) d[c][i] = at, at += out;
        rest[c] = at, at += all * k;
        for (int64_t i = 0; i < rows; i++) x[c][i] = number_of(c, r->number, i);
        for (int64_t i = 0; i < columns; i++) b[c][i] = number_of(c, r->number, i);
    }
    if (r->status == TRINE_OK) keep(r, trine_memory_write(r->queue, memory, host, bytes));
#define THERE(x) (memory + ((char *)(x) - host))
    for (int c = 0; c < CALLS && r->status == TRINE_OK; c++) {
        const trine_tensor by_rank = trine_tensor_3d(THERE(x[c]), TRINE_F32, ranks, m, k),
                           below = trine_tensor_2d(THERE(x[c]), TRINE_F32, all, k),
                           own = trine_tensor_2d(THERE(x[c]), TRINE_F32, m, k),
                           tb = trine_tensor_2d(THERE(b[c]), TRINE_F32, k, n),
                           part = trine_tensor_2d(THERE(d[c][0]), TRINE_F32, m, n),
                           whole = trine_tensor_2d(THERE(d[c][1]), TRINE_F32, all, n),
                           each = trine_tensor_3d(THERE(d[c][2]), TRINE_F32, ranks, m, n),
                           there = trine_tensor_3d(THERE(rest[c]), TRINE_F32, ranks, m, k);
        keep(r, trine_matmul_reduce_scatter(r->queue,
                                            &(trine_matmul_reduce_scatter_args){ TRINE_ARGS(matmul_reduce_scatter),
                                                                                 r->comm, &by_rank, &tb, &part }));
        next(r);
        keep(r, trine_matmul_all_reduce(r->queue, &(trine_matmul_all_reduce_args){ TRINE_ARGS(matmul_all_reduce),
                                                                                   r->comm, &below, &tb, &whole }));
        next(r);
        keep(r, trine_all_gather_matmul(r->queue,
                                        &(trine_all_gather_matmul_args){ TRINE_ARGS(all_gather_matmul), r->comm, &own,
                                                                         &tb, &each, c % 2 ? &there : NULL }));
        next(r);
    }
    if (r->status == TRINE_OK) keep(r, trine_memory_read(r->queue, host, memory, bytes));
    for (int c = 0; c < CALLS && r->status == TRINE_OK; c++) {
        for (int64_t i = 0; i < m * n; i++) r->wrong += d[c][0][i] != sum_of(c, r->number * m + i / n, i % n, n, k);
        for (int64_t i = 0; i < out; i++) {
            r->wrong += d[c][1][i] != sum_of(c, i / n, i % n, n, k);
            r->wrong += d[c][2][i] != product_of(c, (int)(i / n / m), r->number, i / n % m, i % n, n, k);
        }
        for (int64_t i = 0; c % 2 && i < all * k; i++)
            r->wrong += rest[c][i] != number_of(c, (int)(i / k / m), i % (m * k));
    }
    trine_memory_free(r->queue, memory);
    free(host);
}

static void *live(void *context) {
    static const int64_t sizes[][3] = { { 1, 1, 4 }, { 7, 90, 4 }, { 60, 3, 8 }, { 41, 17, 64 }, { 64, 64, 16 } };
    rank *r = context;
    char kernel[32], device[32];
    snprintf(kernel, sizeof kernel, "%.*s_in_pieces", (int)strcspn(first_device, ":"), first_device);
    snprintf(device, sizeof device, "%.*s:%d", (int)strcspn(first_device, ":"), first_device, r->number % devices);
    const trine_queue_options queue = { .struct_size = sizeof queue, .kernel = kernel };
    const trine_comm_options options = { .struct_size = sizeof options, .timeout = 60, .staging_bytes = staging };
    const trine_bootstrap bootstrap = { gather, r };
    keep(r, trine_queue_open(lib, trine_device_find(lib, device), &queue, &r->queue));
    keep(r, trine_comm_open(r->queue, r->number, ranks, &bootstrap, &options, &r->comm));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && r->status == TRINE_OK; i++)
        multiply(r, sizes[i][0], sizes[i][1], sizes[i][2]);
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
