/* SPDX-License-Identifier: Apache-2.0 */
/* What the Criterion tests share: temporary directories, child processes, and assertions about statuses and
 * messages. */
#ifndef TRINE_TESTS_SUPPORT_H
#define TRINE_TESTS_SUPPORT_H

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <trine/trine.h>

/* The call must give this status and a message that is equal to, or contains, this text. */
#define expect_fail(call, wanted, text) \
    do { \
        const trine_status got_ = (call); \
        cr_expect(got_ == (wanted), "%s gave %s: %s", #call, trine_status_name(got_), trine_error_message()); \
        cr_expect(strstr(trine_error_message(), text) != NULL, "%s said \"%s\", not \"%s\"", #call, \
                  trine_error_message(), (text)); \
    } while (0)
#define expect_message(call, wanted, text) \
    do { \
        const trine_status got_ = (call); \
        cr_expect(got_ == (wanted), "%s gave %s: %s", #call, trine_status_name(got_), trine_error_message()); \
        cr_expect(strcmp(trine_error_message(), text) == 0, "%s said \"%s\", not \"%s\"", #call, \
                  trine_error_message(), (text)); \
    } while (0)
#define assert_ok(call) \
    do { \
        const trine_status got_ = (call); \
        cr_assert(got_ == TRINE_OK, "%s gave %s: %s", #call, trine_status_name(got_), trine_error_message()); \
    } while (0)

/* A private directory that remove_directory() takes away with all that is in it. */
static inline void make_directory(char path_out[128]) {
    const char *base = getenv("TMPDIR");
    snprintf(path_out, 128, "%.100s/trine-test-XXXXXX", base != NULL && base[0] == '/' ? base : "/tmp");
    cr_assert(mkdtemp(path_out) != NULL);
}

static inline int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path);
}
static inline void remove_directory(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

/* Writes `size` bytes to a new file. */
static inline void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL, "%s", path);
    cr_assert(fwrite(data, 1, size, file) == size);
    cr_assert(fclose(file) == 0);
}

/* The file's bytes with a 0 behind; the caller frees them. */
static inline char *read_whole(const char *path, size_t *size_out) {
    FILE *file = fopen(path, "re");
    cr_assert(file != NULL, "%s", path);
    struct stat status;
    cr_assert(fstat(fileno(file), &status) == 0);
    char *data = malloc((size_t)status.st_size + 1);
    cr_assert(fread(data, 1, (size_t)status.st_size, file) == (size_t)status.st_size);
    data[status.st_size] = 0;
    fclose(file);
    if (size_out != NULL) *size_out = (size_t)status.st_size;
    return data;
}

/* Takes this library's variables out of the environment: a test's child is to see only those the test gives it. */
static inline void clear_variables(void) {
    for (char **variable = environ; *variable != NULL;) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*variable, "="), *variable);
        if (strncmp(name, "TRINE_", 6) == 0 && unsetenv(name) == 0)
            variable = environ;
        else
            variable++;
    }
}

/* How often a text has these words. */
static inline int count_lines(const char *text, const char *with) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, with)) != NULL; at++) count++;
    return count;
}

/* What a shell command prints on both streams, at most size-1 bytes; returns its exit status. */
static inline int run_command(const char *command, char *output, size_t size) {
    clear_variables();
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    size_t used = fread(output, 1, size - 1, pipe);
    output[used] = 0;
    char rest[256];
    while (fread(rest, 1, sizeof rest, pipe) > 0) continue;
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A library without a tuning cache of its own. */
static inline trine *open_plain(const char *plugin_path) {
    trine *lib = NULL;
    const trine_options options = { .struct_size = sizeof options, .plugin_path = plugin_path, .tune_file = "" };
    cr_assert(trine_open(&options, &lib) == TRINE_OK, "%s", trine_error_message());
    return lib;
}

#endif
