/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples of papers share: a queue on the CPU, made numbers, and the end of a program that failed. */
#ifndef PAPERS_H
#define PAPERS_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <trine/trine.h>

/* Ends the program if a call did not go well. */
static inline void need(trine_status status) {
    if (status == TRINE_OK) return;
    fprintf(stderr, "%s: %s\n", trine_status_name(status), trine_error_message());
    exit(1);
}

static inline trine_queue *cpu_queue(trine_library **lib_out) {
    trine_queue *queue = NULL;
    need(trine_open(NULL, lib_out));
    need(trine_queue_open(*lib_out, 0, NULL, &queue));
    return queue;
}

/* Uniform in [0, 1), and normal with mean 0 and deviation 1: the same numbers in each run. */
static uint64_t random_state = 1;
static inline double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}
static inline float normal(void) { return (float)(sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform())); }

static inline float *floats(int64_t count) {
    float *x = calloc((size_t)count, sizeof *x);
    if (x == NULL) exit(1);
    return x;
}

/* |a - b| / |b| */
static inline double distance(const float *a, const float *b, int64_t count) {
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(apart / size);
}

/* Says what is too large, the distance from a direct computation as a rule, and remembers that something was. */
static int disagreements;
static inline void agree(const char *what, double apart, double most) {
    if (apart <= most) return;
    printf("%s: %g, more than %g\n", what, apart, most);
    disagreements++;
}

#endif
