/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads, one library: each has its own queue and its own messages, and all get the same bits, while their queues
 * share the CPU device's threads. And one call by many: products that share what they packed, rows and columns of
 * several pieces. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trine/trine.h>

#include "tap.h"

enum { THREADS = 8, ROUNDS = 40, ROWS = 128, COLUMNS = 257 };

static trine *lib;
static float input[ROWS * COLUMNS], expected[ROWS * COLUMNS];
static pthread_barrier_t start;

static trine_status softmax(trine_queue *queue, const float *x, float *y, int64_t columns) {
    const trine_tensor tx = trine_tensor_2d((void *)(uintptr_t)x, TRINE_F32, ROWS, COLUMNS),
                       ty = trine_tensor_2d(y, TRINE_F32, ROWS, columns);
    return trine_softmax(queue, &(trine_softmax_args){ TRINE_ARGS(softmax), .x = &tx, .y = &ty });
}

/* The same by a list of calls of a few rows, each of which one thread does. */
static trine_status softmax_list(trine_queue *queue, const float *x, float *y) {
    enum { CALLS = 32, PART = ROWS / CALLS };
    trine_tensor tx[CALLS], ty[CALLS];
    trine_softmax_args args[CALLS];
    const void *list[CALLS];
    for (int i = 0; i < CALLS; i++) {
        tx[i] = trine_tensor_2d((void *)(uintptr_t)(x + i * PART * COLUMNS), TRINE_F32, PART, COLUMNS);
        ty[i] = trine_tensor_2d(y + i * PART * COLUMNS, TRINE_F32, PART, COLUMNS);
        args[i] = (trine_softmax_args){ TRINE_ARGS(softmax), .x = &tx[i], .y = &ty[i] };
        list[i] = &args[i];
    }
    return trine_run_list(queue, TRINE_OP_SOFTMAX, list, CALLS);
}

/* Returns the number of things that went wrong. */
static void *work(void *argument) {
    const int self = (int)(intptr_t)argument;
    intptr_t wrong = 0;
    float *y = malloc(sizeof expected);
    const trine_queue_options options = { .struct_size = sizeof options, .threads = 4 };
    char message[128];
    snprintf(message, sizeof message, "softmax: y has shape [128, %d], but n = 257 from x", self + 1);
    pthread_barrier_wait(&start);
    for (int round = 0; round < ROUNDS; round++) {
        trine_queue *queue;
        if (trine_queue_open(lib, 0, &options, &queue) != TRINE_OK) {
            wrong++;
            continue;
        }
        wrong +=
            softmax(queue, input, y, self + 1) != TRINE_ERR_ARGUMENT || strstr(trine_error_message(), message) == NULL;
        wrong += softmax(queue, input, y, COLUMNS) != TRINE_OK || memcmp(y, expected, sizeof expected) != 0;
        memset(y, 0, sizeof expected);
        wrong += softmax_list(queue, input, y) != TRINE_OK || memcmp(y, expected, sizeof expected) != 0;
        trine_explanation why;
        const trine_tensor t = trine_tensor_1d(y, TRINE_F32, 3);
        const trine_scale_args args = { TRINE_ARGS(scale), .x = &t, .y = &t };
        wrong += trine_explain(queue, TRINE_OP_SCALE, &args, &why) != TRINE_OK || why.chosen < 0;
        trine_queue_close(queue);
    }
    free(y);
    return (void *)wrong;
}

/* Opens a library of its own, while others do. */
static void *open_own(void *unused) {
    (void)unused;
    intptr_t wrong = 0;
    pthread_barrier_wait(&start);
    for (int round = 0; round < 5; round++) {
        trine *own;
        if (trine_open(NULL, &own) != TRINE_OK) {
            wrong++;
            continue;
        }
        wrong += trine_device_count(own) < 1;
        trine_close(own);
    }
    return (void *)wrong;
}

/* ---------------------------------------------------------------------------------------------- one call by many */

enum { M = 600, N = 500, K = 400, LONG = 1 << 18, WIDE = 40000, TALL = 19 };
static float many[3 * LONG], few[WIDE], result[3 * LONG], sums[WIDE], first[3 * LONG], first_sums[WIDE];

static trine_status product(trine_queue *queue) {
    const trine_tensor a = trine_tensor_2d(many, TRINE_F32, M, K), b = trine_tensor_2d(many + M * K, TRINE_F32, K, N),
                       d = trine_tensor_2d(result, TRINE_F32, M, N);
    return trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &a, .b = &b, .d = &d });
}

static trine_status long_rows(trine_queue *queue) {
    const trine_tensor x = trine_tensor_2d(many, TRINE_F32, 3, LONG), y = trine_tensor_2d(result, TRINE_F32, 3, LONG);
    return trine_softmax(queue, &(trine_softmax_args){ TRINE_ARGS(softmax), .x = &x, .y = &y });
}

static trine_status wide_columns(trine_queue *queue) {
    const trine_tensor x = trine_tensor_2d(many, TRINE_F32, TALL, WIDE), weight = trine_tensor_1d(few, TRINE_F32, WIDE),
                       rstd = trine_tensor_1d(few, TRINE_F32, TALL),
                       dx = trine_tensor_2d(result, TRINE_F32, TALL, WIDE),
                       dweight = trine_tensor_1d(sums, TRINE_F32, WIDE);
    return trine_rms_norm_backward(queue, &(trine_rms_norm_backward_args){ TRINE_ARGS(rms_norm_backward), .dy = &x,
                                                                           .h = &x, .weight = &weight, .rstd = &rstd,
                                                                           .dx = &dx, .dweight = &dweight });
}

/* Are a call's bits with so many threads those with one? */
static bool same_bits(trine_status (*call)(trine_queue *queue), int threads) {
    trine_queue *queue;
    const trine_queue_options options = { .struct_size = sizeof options, .threads = threads };
    if (trine_queue_open(lib, 0, &options, &queue) != TRINE_OK) return false;
    memset(result, 0, sizeof result);
    memset(sums, 0, sizeof sums);
    const bool ran = call(queue) == TRINE_OK;
    trine_queue_close(queue);
    if (threads == 1) {
        memcpy(first, result, sizeof result);
        memcpy(first_sums, sums, sizeof sums);
    }
    return ran && memcmp(first, result, sizeof result) == 0 && memcmp(first_sums, sums, sizeof sums) == 0;
}

static void one_call_by_many(void) {
    static const struct {
        const char *what;
        trine_status (*call)(trine_queue *queue);
    } calls[] = { { "a product", product }, { "long rows", long_rows }, { "wide columns", wide_columns } };
    for (int i = 0; i < 3 * LONG; i++) many[i] = (float)(i * 7919LL % 1000) / 1000;
    for (int i = 0; i < WIDE; i++) few[i] = (float)(i % 7 + 1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int threads = 1; threads <= 8; threads *= 2)
            tap(same_bits(calls[i].call, threads), "%s by %d thread(s): %s", calls[i].what, threads,
                trine_error_message());
}

static intptr_t run(void *(*function)(void *)) {
    pthread_t thread[THREADS];
    intptr_t wrong = 0;
    pthread_barrier_init(&start, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, function, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        wrong += (intptr_t)result;
    }
    pthread_barrier_destroy(&start);
    return wrong;
}

int main(void) {
    alarm(240);
    tap(run(open_own) == 0, "%d threads open libraries at once", THREADS);
    if (!tap(trine_open(NULL, &lib) == TRINE_OK, "opened: %s", trine_error_message())) return tap_end();
    trine_queue *queue;
    const trine_queue_options options = { .struct_size = sizeof options, .threads = 1 };
    for (int i = 0; i < ROWS * COLUMNS; i++) input[i] = (float)(i * 7919 % 1000) / 100;
    tap(trine_queue_open(lib, 0, &options, &queue) == TRINE_OK && softmax(queue, input, expected, COLUMNS) == TRINE_OK,
        "reference: %s", trine_error_message());
    trine_queue_close(queue);
    tap(run(work) == 0, "%d threads share a library: same bits, own messages", THREADS);
    one_call_by_many();
    trine_close(lib);
    return tap_end();
}
