/* SPDX-License-Identifier: Apache-2.0 */
/* The roof of a device that the program only sends work to: copying within its memory. */
#include "bench.h"

enum { COPIES = 8, REPEATS = 9, CACHES = 16 };

/* Seconds of some copies to and fro, all in the queue before it is waited for. */
static bool time_copies(trine_queue *queue, char *a, char *b, size_t bytes, double *seconds_out) {
    if (trine_queue_wait(queue) != TRINE_OK) return false;
    const double start = bench_now();
    for (int i = 0; i < COPIES; i++)
        if (trine_memory_copy(queue, i % 2 ? a : b, i % 2 ? b : a, bytes) != TRINE_OK) return false;
    if (trine_queue_wait(queue) != TRINE_OK) return false;
    *seconds_out = bench_now() - start;
    return true;
}

bool bench_device_roofs_measure(bench_roofs *roofs, trine_queue *queue, int64_t last_level, int64_t memory) {
    size_t bytes = (size_t)(last_level * CACHES < memory / 4 ? last_level * CACHES : memory / 4) & ~(size_t)4095;
    void *a = NULL, *b = NULL;
    bool ok = trine_memory_alloc(queue, bytes, &a) == TRINE_OK && trine_memory_alloc(queue, bytes, &b) == TRINE_OK;
    for (int i = 0; ok && i < REPEATS; i++) {
        double seconds;
        ok = time_copies(queue, a, b, bytes, &seconds);
        const double rate = ok ? 2.0 * COPIES * (double)bytes / seconds : 0;
        if (rate > roofs->copy) roofs->copy = rate;
    }
    trine_memory_free(queue, a);
    trine_memory_free(queue, b);
    roofs->device = ok;
    return ok;
}
