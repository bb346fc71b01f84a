/* SPDX-License-Identifier: Apache-2.0 */
/* Times the kernels that take a call and records the fastest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "float_env.h"
#include "queue.h"

enum { LEAST_RUNS = 5, MOST_RUNS = 101 };
static const double enough = 0.05; /* seconds for one kernel, if LEAST_RUNS take less */

/* One run, by the device's clock where it has one. */
static trine_status time_once(trine_queue *queue, trine_op op, const void *args, double *seconds_out) {
    const trine_backend *b = queue->backend;
    const double start = trine_seconds();
    trine_status status = b->mark != NULL ? b->mark(queue->device, queue->state, 0) : TRINE_OK;
    if (status == TRINE_OK) status = trine_run(queue, op, args);
    if (status == TRINE_OK && b->mark != NULL) status = b->mark(queue->device, queue->state, 1);
    if (status == TRINE_OK) status = b->queue_wait(queue->device, queue->state);
    *seconds_out = trine_seconds() - start;
    if (status == TRINE_OK && b->mark != NULL) status = b->elapsed(queue->device, queue->state, 0, 1, seconds_out);
    return status;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of several runs of the forced kernel; the first, which may reserve workspace and load code, is not
 * counted. */
static trine_status time_kernel(trine_queue *queue, trine_op op, const void *args, double *seconds_out) {
    double seconds[MOST_RUNS], total = 0;
    int runs = 0;
    trine_status status = time_once(queue, op, args, &seconds[0]);
    while (status == TRINE_OK && runs < MOST_RUNS && (runs < LEAST_RUNS || total < enough)) {
        status = time_once(queue, op, args, &seconds[runs]);
        total += seconds[runs++];
    }
    if (status != TRINE_OK) return status;
    qsort(seconds, (size_t)runs, sizeof seconds[0], by_value);
    *seconds_out = seconds[runs / 2];
    return TRINE_OK;
}

static FLOAT_ENV_INSIDE trine_status tune_call(trine_queue *queue, trine_op op, const void *args) {
    trine_explanation candidates;
    trine_call call;
    const trine_kernel *chosen;
    trine_status status = trine_explain(queue, op, args, &candidates);
    if (status != TRINE_OK || (status = trine_prepare(queue, op, args, true, &call)) != TRINE_OK || call.empty)
        return status;
    if (call.plan->comm >= 0) return trine_tune_record(queue, &call, "", 0); /* which refuses it */
    if ((status = trine_select(queue, &call, &chosen)) != TRINE_OK) return status;
    char forced[sizeof queue->kernel];
    memcpy(forced, queue->kernel, sizeof forced);
    const char *best = NULL;
    double least = 0;
    for (int i = 0; i < candidates.count && status == TRINE_OK; i++) {
        if (candidates.candidate[i].refused != NULL) continue;
        double seconds;
        memset(queue->kernel, 0, sizeof queue->kernel);
        memcpy(queue->kernel, candidates.candidate[i].kernel,
               strnlen(candidates.candidate[i].kernel, sizeof queue->kernel - 1));
        status = time_kernel(queue, op, args, &seconds);
        /* within the noise, the earlier in the list is the better guess */
        if (status != TRINE_OK || (best != NULL && seconds >= 0.98 * least)) continue;
        best = candidates.candidate[i].kernel;
        least = seconds;
    }
    memcpy(queue->kernel, forced, sizeof forced);
    return status == TRINE_OK ? trine_tune_record(queue, &call, best, least) : status;
}

trine_status trine_tune_call(trine_queue *queue, trine_op op, const void *args) {
    const float_env env = float_env_enter();
    const trine_status status = tune_call(queue, op, args);
    float_env_leave(env);
    return status;
}

static FLOAT_ENV_INSIDE trine_status tune_choose(trine_queue *queue, trine_op op, const void *args, const char *kernel,
                                                 double seconds) {
    trine_explanation candidates;
    trine_call call;
    if (kernel == NULL || !(isfinite(seconds) && seconds >= 0))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_tune_choose: %s",
                          kernel == NULL ? "kernel is NULL" : "seconds is not a time");
    trine_status status = trine_explain(queue, op, args, &candidates);
    if (status != TRINE_OK || (status = trine_prepare(queue, op, args, true, &call)) != TRINE_OK || call.empty)
        return status;
    for (int i = 0; i < candidates.count; i++)
        if (candidates.candidate[i].refused == NULL && strcmp(candidates.candidate[i].kernel, kernel) == 0)
            return trine_tune_record(queue, &call, kernel, seconds);
    return trine_fail(TRINE_ERR_NOT_FOUND, "trine_tune_choose: no kernel \"%s\" takes the call", kernel);
}

trine_status trine_tune_choose(trine_queue *queue, trine_op op, const void *args, const char *kernel, double seconds) {
    const float_env env = float_env_enter();
    const trine_status status = tune_choose(queue, op, args, kernel, seconds);
    float_env_leave(env);
    return status;
}
