/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of a device module over a driver for tests share: work for its devices, and scenarios in processes of
 * their own, since a module is initialised once. */
#ifndef TRINE_TESTS_MODULE_H
#define TRINE_TESTS_MODULE_H

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <trine/trine.h>

#include "tap.h"

static inline trine *open_backend(const char *name) {
    trine *lib = NULL;
    if (trine_open(&(trine_options){ .struct_size = sizeof(trine_options), .backends = name, .tune_file = "/dev/null" },
                   &lib) != TRINE_OK)
        fprintf(stderr, "%s\n", trine_error_message());
    return lib;
}

/* Why the module of this name was refused; NULL if it was not. */
static inline const char *refusal(const trine *lib, const char *name) {
    for (int i = 0; i < trine_backend_count(lib); i++) {
        trine_backend_info_t info;
        if (trine_backend_info(lib, i, &info) == TRINE_OK && strcmp(info.name, name) == 0) return info.refused;
    }
    return "there is no such module";
}

/* Was it refused with a reason that begins so? */
static inline bool refused_for(const trine *lib, const char *name, const char *reason) {
    const char *words = refusal(lib, name);
    if (words != NULL && strncmp(words, reason, strlen(reason)) == 0) return true;
    fprintf(stderr, "refused: %s\n", words != NULL ? words : "no");
    return false;
}

/* Records that the copy of x to y is doubled, and launches it twice. */
static inline trine_status double_recorded(trine_queue *queue, void *x, void *y, bool *ended_out) {
    const trine_tensor t = trine_tensor_1d(y, TRINE_F32, 3);
    trine_graph *graph = NULL;
    trine_status status = trine_graph_begin(queue), ended;
    *ended_out = status != TRINE_OK;
    if (status != TRINE_OK) return status;
    status = trine_memory_copy(queue, y, x, 3 * sizeof(float));
    if (status == TRINE_OK)
        status = trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t, .alpha = 2 });
    ended = trine_graph_end(queue, &graph);
    *ended_out = ended == TRINE_OK;
    if (status == TRINE_OK) status = ended;
    for (int i = 0; status == TRINE_OK && i < 2; i++) status = trine_graph_launch(queue, graph);
    if (status == TRINE_OK) status = trine_queue_wait(queue);
    trine_graph_free(graph);
    return status;
}

/* What a recording would not survive is refused, and it goes on: calls that wait or allocate, and an op with too little
 * workspace. */
static inline bool refuses_while_recorded(trine *lib, int device) {
    enum { N = 1 << 18 };
    trine_queue *queue;
    trine_graph *graph = NULL;
    void *x, *sums, *more;
    float y[4], fours[4] = { 4, 4, 4, 4 };
    size_t bytes = 0;
    if (trine_queue_open(lib, device, NULL, &queue) != TRINE_OK ||
        trine_memory_alloc(queue, N * sizeof(float), &x) != TRINE_OK)
        return false;
    if (trine_memory_alloc(queue, sizeof y, &sums) != TRINE_OK ||
        trine_memory_write(queue, sums, fours, sizeof fours) != TRINE_OK)
        return false;
    const trine_tensor tall = trine_tensor_2d(x, TRINE_F32, N / 4, 4), of_columns = trine_tensor_1d(sums, TRINE_F32, 4);
    const trine_reduce_sum_args sum = { TRINE_ARGS(reduce_sum), .x = &tall, .column_sums = &of_columns };
    if (trine_workspace(queue, TRINE_OP_REDUCE_SUM, &sum, &bytes) != TRINE_OK || bytes == 0) return false;
    bool good = trine_graph_end(queue, &graph) == TRINE_ERR_ARGUMENT && trine_graph_begin(queue) == TRINE_OK;
    const trine_status refused[] = { trine_queue_wait(queue),
                                     trine_queue_reserve(queue, 1),
                                     trine_memory_alloc(queue, 1, &more),
                                     trine_memory_free(queue, x),
                                     trine_memory_alloc_host(queue, 1, &more),
                                     trine_memory_free_host(queue, y),
                                     trine_memory_write(queue, x, y, sizeof y),
                                     trine_memory_read(queue, y, x, sizeof y) };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) good &= refused[i] == TRINE_ERR_UNSUPPORTED;
    good &= strstr(trine_error_message(), "trine_memory_read: the queue's work is being recorded") != NULL;
    good &= trine_graph_begin(queue) == TRINE_ERR_ARGUMENT;
    good &= trine_reduce_sum(queue, &sum) == TRINE_ERR_WORKSPACE &&
            strstr(trine_error_message(), "while the queue is recorded") != NULL;
    good &= trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &of_columns, .y = &of_columns,
                                                    .alpha = 2 }) == TRINE_OK;
    good &= trine_graph_end(queue, &graph) == TRINE_OK && trine_graph_launch(queue, graph) == TRINE_OK;
    good &= trine_memory_read(queue, y, sums, sizeof y) == TRINE_OK && y[0] == 8 && y[3] == 8;
    if (!good) fprintf(stderr, "recording: %s\n", trine_error_message());
    trine_graph_free(graph);
    good &= trine_memory_free(queue, x) == TRINE_OK && trine_memory_free(queue, sums) == TRINE_OK;
    trine_queue_close(queue);
    return good;
}

/* Opens a queue, doubles three numbers on it, by hand, recorded and as a measurement, and closes it.
 * The first error ends it. */
static inline trine_status double_numbers_on(trine *lib, int device, const trine_queue_options *options,
                                             bool *right_out) {
    const float x[3] = { 1, 2, 3 };
    float y[3] = { 0 }, twice[3] = { 0 };
    void *memory = NULL, *copy = NULL, *host = NULL;
    bool ended = true; /* a driver that cannot end a recording cannot free either */
    trine_queue *queue = NULL;
    trine_status status = trine_queue_open(lib, device, options, &queue);
    if (status == TRINE_OK) status = trine_memory_alloc(queue, sizeof x, &memory);
    if (status == TRINE_OK) status = trine_memory_alloc(queue, sizeof x, &copy);
    if (status == TRINE_OK) status = trine_memory_alloc_host(queue, sizeof x, &host);
    if (status == TRINE_OK) memcpy(host, x, sizeof x);
    if (status == TRINE_OK) status = trine_memory_write(queue, memory, host, sizeof x);
    const trine_tensor t = trine_tensor_1d(memory, TRINE_F32, 3);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &t, .y = &t, .alpha = 2 };
    if (status == TRINE_OK) status = trine_scale(queue, &args);
    if (status == TRINE_OK) status = trine_queue_wait(queue);
    if (status == TRINE_OK) status = trine_memory_read(queue, y, memory, sizeof y);
    if (status == TRINE_OK && device > 0) status = double_recorded(queue, memory, copy, &ended);
    if (status == TRINE_OK) status = trine_memory_read(queue, twice, device > 0 ? copy : memory, sizeof twice);
    if (status == TRINE_OK) status = trine_tune_call(queue, TRINE_OP_SCALE, &args);
    /* there is no cache to write the measurement to, or it is of a part of the device */
    if (status == (options->sm_count > 0 ? TRINE_ERR_UNSUPPORTED : TRINE_ERR_IO)) status = TRINE_OK;
    trine_status freed = memory != NULL && ended ? trine_memory_free(queue, memory) : TRINE_OK;
    if (copy != NULL && ended && freed == TRINE_OK) freed = trine_memory_free(queue, copy);
    if (host != NULL && ended && freed == TRINE_OK) freed = trine_memory_free_host(queue, host);
    trine_queue_close(queue);
    const float times = device > 0 ? 2 : 1;
    *right_out = true;
    for (int i = 0; i < 3; i++) *right_out &= y[i] == 2 * x[i] && twice[i] == times * y[i];
    return status == TRINE_OK ? freed : status;
}

static inline trine_status double_numbers(trine *lib, int device, void *stream, bool *right_out) {
    const trine_queue_options options = { .struct_size = sizeof options, .stream = stream };
    return double_numbers_on(lib, device, &options, right_out);
}

/* Opens a queue with a part of the device. */
static inline trine_status open_part(trine *lib, int device, int count, trine_queue **queue_out) {
    const trine_queue_options options = { .struct_size = sizeof options, .sm_count = count };
    return trine_queue_open(lib, device, &options, queue_out);
}

/* Is so large a part refused, with these words? */
static inline bool part_refused(trine *lib, int device, int count, trine_status status, const char *words) {
    trine_queue *queue;
    if (open_part(lib, device, count, &queue) == status && strstr(trine_error_message(), words) != NULL) return true;
    fprintf(stderr, "sm_count %d: %s\n", count, trine_error_message());
    return false;
}

static inline bool works(trine *lib, int device) {
    bool right;
    if (double_numbers(lib, device, NULL, &right) == TRINE_OK && right) return true;
    fprintf(stderr, "device %d: %s\n", device, trine_error_message());
    return false;
}

/* Runs a scenario in a process of its own. */
static inline bool alone(bool (*scenario)(const void *context), const void *context) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(scenario(context) ? 0 : 1);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The dynamic section of a module's file names no library of a vendor. */
static inline bool needs_nothing(const void *path) {
    char line[512], command[512];
    bool read = false, clean = true;
    snprintf(command, sizeof command, "readelf -d '%s'", (const char *)path);
    FILE *sections = popen(command, "r");
    while (sections != NULL && fgets(line, sizeof line, sections) != NULL) {
        if (strstr(line, "(NEEDED)") == NULL) continue;
        read = true;
        if (strstr(line, "libc.so") || strstr(line, "libm.so") || strstr(line, "ld-linux")) continue;
        clean = false;
        fprintf(stderr, "%s", line);
    }
    return sections != NULL && pclose(sections) == 0 && read && clean;
}

#endif
