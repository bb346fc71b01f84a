/* SPDX-License-Identifier: Apache-2.0 */
/* The roofs of a device that the program only sends work to: copying within its memory, and the loops of multiply-adds
 * of its backend. */
#include "bench.h"
#include "dispatch/dispatch.h"

enum { COPIES = 8, REPEATS = 9, CACHES = 16 };
static const double long_enough = 3e-3; /* of a loop, in seconds, so that its launch does not count */

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

static bool time_peak(trine_queue *queue, trine_peak *peak, double *rate_out) {
    const trine_backend *b = queue->backend;
    const double start = bench_now();
    if (b->peak(queue->device, queue->state, peak) != TRINE_OK || trine_queue_wait(queue) != TRINE_OK) return false;
    *rate_out = peak->operations / (bench_now() - start);
    return true;
}

/* The best of several runs; a type for which there is no loop stays without. */
static void measure_peak(bench_roofs *roofs, trine_queue *queue, bench_peak which, trine_peak peak) {
    double rate;
    peak.rounds = 1 << 8;
    if (!time_peak(queue, &peak, &rate)) return; /* loads the code */
    while (time_peak(queue, &peak, &rate) && peak.operations / rate < long_enough) peak.rounds *= 2;
    for (int i = 0; i < REPEATS && time_peak(queue, &peak, &rate); i++)
        if (rate > roofs->peak[which]) roofs->peak[which] = rate, roofs->instruction[which] = peak.instruction;
}

static void measure_peaks(bench_roofs *roofs, trine_queue *queue) {
    static const trine_peak loops[PEAKS] = {
        [PEAK_F32] = { .dtype = TRINE_F32 },   [PEAK_F64] = { .dtype = TRINE_F64 },
        [PEAK_BF16] = { .dtype = TRINE_BF16 }, [PEAK_I8] = { .dtype = TRINE_I8 },
        [PEAK_F16] = { .dtype = TRINE_F16 },   [PEAK_TF32] = { TRINE_F32, .cut = true },
        [PEAK_F8] = { .dtype = TRINE_E4M3 }
    };
    for (bench_peak p = 0; p < PEAKS && queue->backend->peak != NULL; p++) measure_peak(roofs, queue, p, loops[p]);
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
    if (ok) measure_peaks(roofs, queue);
    return ok;
}
