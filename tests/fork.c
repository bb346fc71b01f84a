/* SPDX-License-Identifier: Apache-2.0 */
/* After fork(), CPU queues go on working in the child, with the same bits, although the parent's threads are not in
 * it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <trine/trine.h>

#include "tap.h"

/* By exit(), so that the runtime's own end is tried too; but LeakSanitizer would look for the parent's threads
 * there. */
#if defined(__SANITIZE_ADDRESS__)
#define LEAVE _exit
#else
#define LEAVE exit
#endif

enum { ROWS = 64, COLUMNS = 4099, SIZE = 192 };

static float input[ROWS * COLUMNS], before[ROWS * COLUMNS], after[ROWS * COLUMNS];
static float product[SIZE * SIZE], again[SIZE * SIZE];

static bool run(trine_queue *queue, float *y, float *d) {
    const trine_tensor tx = trine_tensor_2d(input, TRINE_F32, ROWS, COLUMNS),
                       ty = trine_tensor_2d(y, TRINE_F32, ROWS, COLUMNS);
    const trine_tensor ta = trine_tensor_2d(input, TRINE_F32, SIZE, SIZE),
                       td = trine_tensor_2d(d, TRINE_F32, SIZE, SIZE);
    return trine_softmax(queue, &(trine_softmax_args){ TRINE_ARGS(softmax), .x = &tx, .y = &ty }) == TRINE_OK &&
           trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &ta, .b = &ta, .d = &td }) == TRINE_OK;
}

/* What `child` returns in a forked process; 99 if that died or hung. */
static int in_child(int (*child)(trine *lib, trine_queue *queue), trine *lib, trine_queue *queue) {
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        LEAVE(child(lib, queue));
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return 99;
    return WEXITSTATUS(status);
}

static bool same_bits(void) {
    return memcmp(before, after, sizeof before) == 0 && memcmp(product, again, sizeof product) == 0;
}

static int old_queue(trine *lib, trine_queue *queue) {
    (void)lib;
    return run(queue, after, again) && same_bits() ? 0 : 1;
}

static int new_queue(trine *lib, trine_queue *queue) {
    (void)queue;
    trine_queue *own;
    const trine_queue_options options = { .struct_size = sizeof options, .threads = 2 };
    const bool good = trine_queue_open(lib, 0, &options, &own) == TRINE_OK && run(own, after, again) && same_bits();
    trine_queue_close(own);
    return good ? 0 : 1;
}

static int new_library(trine *lib, trine_queue *queue) {
    (void)lib;
    trine *own;
    if (trine_open(NULL, &own) != TRINE_OK) return 2;
    const int status = new_queue(own, queue);
    trine_close(own);
    return status;
}

static int grandchild(trine *lib, trine_queue *queue) { return in_child(old_queue, lib, queue); }

int main(void) {
    alarm(240);
    trine *lib;
    trine_queue *queue;
    const trine_queue_options options = { .struct_size = sizeof options, .threads = 2 };
    for (int i = 0; i < ROWS * COLUMNS; i++) input[i] = (float)(i * 7919 % 1000) / 1000;
    if (!tap(trine_open(NULL, &lib) == TRINE_OK && trine_queue_open(lib, 0, &options, &queue) == TRINE_OK, "opened: %s",
             trine_error_message()))
        return tap_end();
    tap(run(queue, before, product), "two threads in the parent: %s", trine_error_message());
    tap(in_child(old_queue, lib, queue) == 0, "the parent's queue in a child");
    tap(in_child(new_queue, lib, queue) == 0, "a new queue in a child");
    tap(in_child(new_library, lib, queue) == 0, "a new library in a child");
    tap(in_child(grandchild, lib, queue) == 0, "the queue in a child's child");
    tap(run(queue, after, again) && same_bits(), "the parent goes on");
    trine_queue_close(queue);
    trine_close(lib);
    return tap_end();
}
