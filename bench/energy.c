/* SPDX-License-Identifier: Apache-2.0 */
/* Joules of a call, by a counter of the device. */
#include "bench.h"

/* Counters move in steps, some only every tenth of a second: from one step to another, of at least so many seconds. */
enum { FEWEST_SECONDS = 1, MOST_SECONDS = 30 };

bool bench_energy(bool (*call)(void *context, int64_t i), bool (*finish)(void *context), void *context,
                  const bench_meter *meter, bench_result *result) {
    static const double pause = 2e-3; /* between readings, which take time too */
    double at[2] = { 0 }, joules[2] = { 0 }, last, now = bench_now();
    int64_t calls = 0, counted[2] = { 0 };
    int steps = 0;
    result->joules = result->watts = 0;
    if (!meter->read(meter->context, &last)) return true;
    for (const double begin = now; now - begin < MOST_SECONDS && (steps < 2 || at[1] - at[0] < FEWEST_SECONDS);) {
        const double enough = now + pause;
        double found;
        do {
            for (int i = 0; i < result->batch; i++)
                if (!call(context, calls++)) return false;
            if (finish && !finish(context)) return false;
            now = bench_now();
        } while (now < enough);
        if (!meter->read(meter->context, &found)) return true;
        if (found == last) continue;
        const int edge = steps++ > 0;
        at[edge] = now;
        joules[edge] = last = found;
        counted[edge] = calls;
    }
    if (steps < 2) return true;
    result->joules = (joules[1] - joules[0]) / (double)(counted[1] - counted[0]);
    result->watts = (joules[1] - joules[0]) / (at[1] - at[0]);
    return true;
}
