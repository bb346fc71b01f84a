/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds that pass. */
#ifndef GENERATE_CLOCK_H
#define GENERATE_CLOCK_H

#include <time.h>

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
