/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: a tuning cache of any bytes. It opens, answers, takes a record, and the record is there afterwards. In the
 * input, byte 0xff stands for the columns that make a line this machine's own.
 * Run with -close_fd_mask=2: each corrupt file gives a warning. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch/dispatch.h"

static trine *lib;
static trine_queue *queue;
static char path[64], owner[1024];
static trine_call call;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, trine_error_message());
    abort();
}

static void write_bytes(const uint8_t *data, size_t size) {
    FILE *file = fopen(path, "w");
    must(file != NULL, path);
    for (size_t i = 0; i < size; i++)
        if (data[i] == 0xff)
            fputs(owner, file);
        else
            putc(data[i], file);
    fclose(file);
}

static void remove_files(void) {
    char lock[80];
    snprintf(lock, sizeof lock, "%s.lock", path);
    unlink(lock);
    unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const trine_options options = {
        .struct_size = sizeof options, .backends = "cpu", .isa = "baseline", .tune_file = ""
    };
    must(trine_open(&options, &lib) == TRINE_OK && trine_queue_open(lib, 0, NULL, &queue) == TRINE_OK, "open");
    const trine_tensor x = trine_tensor_1d(NULL, TRINE_F32, 8);
    must(trine_check(TRINE_OP_SCALE, &(trine_scale_args){ TRINE_ARGS(scale), .x = &x, .y = &x }, false, &call) ==
             TRINE_OK,
         "check");
    snprintf(path, sizeof path, "%s/trine-fuzz-tune-%ld", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (long)getpid());
    atexit(remove_files);
    /* A record tells what the own columns are. */
    lib->tune = trine_tune_open(path);
    must(lib->tune != NULL && trine_tune_record(queue, &call, "a", 1) == TRINE_OK, "record");
    trine_tune_close(lib->tune);
    char line[1024];
    FILE *file = fopen(path, "r");
    must(file != NULL && fgets(line, sizeof line, file) != NULL && fgets(line, sizeof line, file) != NULL, "read");
    fclose(file);
    char *end = line;
    for (int tab = 0; tab < 4; tab++) end = strchr(end, '\t') + 1;
    snprintf(owner, sizeof owner, "%.*s", (int)(end - line - 1), line);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    write_bytes(data, size);
    lib->tune = trine_tune_open(path);
    must(lib->tune != NULL, "open");
    const char *found = trine_tune_find(lib->tune, queue, &call);
    must(found == NULL || found[0] != 0, "find");
    must(trine_tune_record(queue, &call, "recorded", 1e-6) == TRINE_OK, "record");
    trine_tune_close(lib->tune);
    lib->tune = trine_tune_open(path);
    found = trine_tune_find(lib->tune, queue, &call);
    must(found != NULL && strcmp(found, "recorded") == 0, "the record is not there");
    trine_tune_close(lib->tune);
    lib->tune = NULL;
    return 0;
}
