/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of a device module over a driver for tests share: work for its devices, and scenarios in processes of their own, since a module is
 * initialised once. */
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
    if (trine_open(&(trine_options){ .struct_size = sizeof(trine_options), .backends = name, .tune_file = "/dev/null" }, &lib) != TRINE_OK)
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

/* Opens a queue, doubles three numbers on it, by hand and as a measurement, and closes it. The first error ends it. */
static inline trine_status double_numbers(trine *lib, int device, void *stream, bool *right_out) {
    const float x[3] = { 1, 2, 3 };
    float y[3] = { 0 };
    void *memory = NULL;
    trine_queue *queue = NULL;
    trine_status status = trine_queue_open(lib, device, &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .stream = stream }, &queue);
    if (status == TRINE_OK) status = trine_memory_alloc(queue, sizeof x, &memory);
    if (status == TRINE_OK) status = trine_memory_write(queue, memory, x, sizeof x);
    const trine_tensor t = trine_tensor_1d(memory, TRINE_F32, 3);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &t, .y = &t, .alpha = 2 };
    if (status == TRINE_OK) status = trine_scale(queue, &args);
    if (status == TRINE_OK) status = trine_queue_wait(queue);
    if (status == TRINE_OK) status = trine_memory_read(queue, y, memory, sizeof y);
    if (status == TRINE_OK) status = trine_tune_call(queue, TRINE_OP_SCALE, &args);
    if (status == TRINE_ERR_IO) status = TRINE_OK; /* there is no cache to write the measurement to */
    const trine_status freed = memory != NULL ? trine_memory_free(queue, memory) : TRINE_OK;
    trine_queue_close(queue);
    *right_out = y[0] == 2 && y[1] == 4 && y[2] == 6;
    return status == TRINE_OK ? freed : status;
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
