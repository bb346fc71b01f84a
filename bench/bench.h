/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring harness: roofs of this machine, timed calls with fresh inputs, statistics, reports. */
#ifndef TRINE_BENCH_H
#define TRINE_BENCH_H

#include <stdio.h>
#include <time.h>

#include <trine/ops.h>

#include "spec/case.h"

enum { BENCH_MOST_SAMPLES = 200 };

/* A load average above which other programs take part in the times. */
#define BENCH_BUSY 0.5

static inline double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------------------ roofs */

typedef enum bench_peak { PEAK_F32, PEAK_F64, PEAK_BF16, PEAK_I8, PEAK_F16, PEAK_TF32, PEAK_F8, PEAKS } bench_peak;

/* What the cores can do at best with so many threads, as measured: bytes read and written by the program per second,
 * and operations per second, a multiply-add counting two. A peak that no faster instruction exists for is the one it
 * falls back to (bf16: f32). */
typedef struct bench_roofs {
    int threads; /* 0: not measured */
    bool device; /* another than the CPU: of memory, only `copy` is measured */
    double read, write, copy, copy_nt;
    double peak[PEAKS];             /* 0: not known, of a device */
    const char *instruction[PEAKS]; /* which one gave the peak */
} bench_roofs;

/* Measures the roofs; the arrays are a multiple of `last_level` bytes of cache. A second measurement into the same
 * object keeps the better figures. */
bool bench_roofs_measure(bench_roofs *roofs, int threads, int64_t last_level, int64_t memory);
/* The same for the peaks alone. */
void bench_peaks_measure(bench_roofs *roofs, int threads);

/* Those of a device that work is sent to: copying within its memory, and multiply-adds, if its backend has loops of
 * them. */
bool bench_device_roofs_measure(bench_roofs *roofs, trine_queue *queue, int64_t last_level, int64_t memory);

double bench_memory_roof(const bench_roofs *roofs);
/* The peak that bounds a case: by the type of its first input. */
bench_peak bench_peak_of(const trine_case *c);
extern const char *const bench_peak_name[PEAKS];

/* ------------------------------------------------------------------------------------------------------- statistics */

double bench_quantile(const double *values, int count, double q);
/* The two-sided p-value of the Mann-Whitney test that two samples come from one distribution: exact without ties and
 * for up to 40 values in all, else by the normal approximation with the correction for ties. */
double bench_mann_whitney(const double *a, int na, const double *b, int nb);

/* -------------------------------------------------------------------------------------------------------- measuring */

/* A counter of the joules that a device has used. */
typedef struct bench_meter {
    bool (*read)(void *context, double *joules_out);
    void *context;
    const char *name;
    double grams; /* of CO2 for a kWh; 0: not asked */
} bench_meter;

typedef struct bench_plan {
    double seconds;           /* to spend on one case, about */
    int64_t last_level;       /* bytes of the last level of cache: inputs rotate over twice as much */
    int64_t memory;           /* bytes that may be allocated */
    double batch;             /* seconds that calls timed as one take at least; 0: 50 us */
    const bench_meter *meter; /* NULL: energy is not measured */
} bench_plan;

typedef struct bench_result {
    char op[32], name[96], text[320], kernel[64]; /* name: of the case; text: its types and dimensions */
    int samples, batch, sets;
    double sample[BENCH_MOST_SAMPLES]; /* seconds per call */
    double median, low, high;          /* quartiles */
    double bytes, flops;
    bench_peak peak;
    double bound;         /* seconds that the roofs allow at best; 0: no roofs */
    double fraction;      /* bound / median */
    bool above;           /* faster than the roofs allow */
    double joules, watts; /* of a call, and while calls ran one after the other; 0: not counted */
} bench_result;

/* Times call(context, i) for i = 0, 1, ... and fills the samples and quartiles; `finish` waits for the calls, NULL if
 * they are done when they return. False if a call fails. */
bool bench_time(bool (*call)(void *context, int64_t i), bool (*finish)(void *context), void *context,
                const bench_plan *plan, bench_result *result);

/* Calls on for a second or more, and fills joules and watts; what else the device does at the time counts too. Where
 * the counter cannot be read or stands still they are 0. False if a call fails. */
bool bench_energy(bool (*call)(void *context, int64_t i), bool (*finish)(void *context), void *context,
                  const bench_meter *meter, bench_result *result);

/* Sets of tensors of a finished case, filled as the specification says, enough of them that a rotation passes the last
 * level of cache. */
typedef struct bench_sets {
    const trine_case *c;
    trine_queue *queue;
    int count;
    trine_case *set;
} bench_sets;

/* Makes the inputs that the specification derives from others and that are integers, in the case's memory. */
bool bench_derive(const trine_case *c, trine_queue *queue);

/* Times calls of the op on each set in turn. */
bool bench_time_sets(bench_sets *sets, const bench_plan *plan, bench_result *result);

/* False, with the reason in `error`, if memory is short. */
bool bench_sets_make(bench_sets *sets, const trine_case *c, trine_queue *queue, const bench_plan *plan, char *error,
                     size_t error_size);
void bench_sets_free(bench_sets *sets);

/* Measures a finished case on a queue; false, with the reason in `error`, if it cannot be run. */
bool bench_case(trine_queue *queue, const trine_case *c, const bench_plan *plan, bench_result *result, char *error,
                size_t error_size);
/* Fills bytes, flops and the peak of a result. */
void bench_work(const trine_case *c, bench_result *result);
/* Sets a result against the roofs. */
void bench_hold(bench_result *result, const bench_roofs *roofs);

/* Hands on the op and the case of each line of a file, "matmul square: T=bf16 m=4096 n=4096 k=4096"; empty lines and
 * those with # in front say nothing. All lines are read first: false, with the reason in `error` and nothing handed on,
 * if the file cannot be read or a line is wrong. */
bool bench_read_cases(const char *path, void (*each)(void *context, trine_op op, const char *text), void *context,
                      char *error, size_t error_size);

/* What a call costs the host, in nanoseconds, its work on a device not included: the median over short rounds of calls;
 * negative if one fails. */
double bench_nanoseconds(bool (*call)(void *context), bool (*finish)(void *context), void *context);
double bench_call_cost(trine_queue *queue, trine_op op, const void *args);

/* That of an op whose tensors are empty, and of one with a single element: the dispatcher alone, and with a launch. */
bool bench_dispatch(trine_queue *queue, double *empty_out, double *tiny_out, double *workspace_out);

/* ---------------------------------------------------------------------------------------------------------- reports */

typedef struct bench_report {
    const trine_device_info_t *device;
    int threads;
    double load;              /* average of the last minute when it began */
    const bench_meter *meter; /* NULL: energy was not measured */
    bench_roofs roofs;
    int count;
    bench_result *result;
} bench_report;

/* Prints `text` as a JSON string, quotes included; NULL as null; what is not UTF-8 as U+FFFD. */
void bench_json_text(FILE *file, const char *text);
/* Prints `before` and a member of an object that is such a string. */
void bench_json_member(FILE *file, const char *before, const char *name, const char *text);

/* Figures with units: "1.20 us", "1.50 GiB", "2.15 GFLOP". They return `out`. */
const char *bench_time_text(double seconds, char *out, size_t size);
const char *bench_bytes_text(double bytes, char *out, size_t size);
const char *bench_flops_text(double flops, char *out, size_t size);

void bench_print_roofs(FILE *file, const bench_roofs *roofs);
void bench_print_header(FILE *file);
void bench_print(FILE *file, const bench_result *result);
/* A line below it. */
void bench_print_energy(FILE *file, const bench_result *result, const bench_meter *meter);
bool bench_write_json(FILE *file, const bench_report *report);
bool bench_write_html(FILE *file, const bench_report *report);

/* Compares two JSON reports case by case and prints a table. Returns the number of cases that are slower by more than
 * `threshold` (0.05: 5 %) with p below `alpha`; -1 with the reason in `error` if a file cannot be read or no case is in
 * both. */
int bench_compare(const char *old_path, const char *new_path, double alpha, double threshold, char *error,
                  size_t error_size);

#endif
