/* SPDX-License-Identifier: Apache-2.0 */
/* Writes files beside their place and renames them. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 };

/* The files to remove if a signal ends the process. */
static char *volatile temporaries[MOST];

static void remove_temporaries(int signal_number) {
    for (int i = 0; i < MOST; i++)
        if (temporaries[i] != NULL) unlink(temporaries[i]);
    raise(signal_number); /* the handler is gone by now */
}

static void watch_signals(void) {
    static const int deadly[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT };
    static bool watched;
    if (watched) return;
    watched = true;
    signal(SIGXFSZ, SIG_IGN); /* beyond RLIMIT_FSIZE a write fails instead */
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        const struct sigaction action = { .sa_handler = remove_temporaries,
                                          .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };
        struct sigaction before;
        if (sigaction(deadly[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(deadly[i], &action, NULL);
    }
}

static bool note(char *temporary) {
    for (int i = 0; i < MOST; i++)
        if (temporaries[i] == NULL) {
            temporaries[i] = temporary;
            return true;
        }
    return false;
}

static void forget(const char *temporary) {
    for (int i = 0; i < MOST; i++)
        if (temporaries[i] == temporary) temporaries[i] = NULL;
}

static bool wrong(const char *path, char *error, size_t size) {
    const char *reason = strerror(errno);
    snprintf(error, size, "%s: %s", path, reason);
    return false;
}

static bool names_stdout(const char *path) {
    static const char *const names[] = { "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0) return true;
    return false;
}

bool output_is_stdout(const output *o) { return o->path != NULL && names_stdout(o->path); }

/* A file beside `target`, of a name that none has, and with the rights that `target` has or would get. */
static FILE *open_beside(output *o, const struct stat *before) {
    const char *slash = strrchr(o->target, '/');
    const int directory = slash ? (int)(slash + 1 - o->target) : 0;
    for (int i = 0; i < 1000; i++) {
        free(o->temporary);
        if (asprintf(&o->temporary, "%.*s.trine-%ld-%d", directory, o->target, (long)getpid(), i) < 0)
            o->temporary = NULL;
        const int file = o->temporary ? open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        if (file < 0 && o->temporary && errno == EEXIST) continue;
        if (file < 0) break;
        watch_signals();
        note(o->temporary);
        if (before == NULL || fchmod(file, before->st_mode & 07777) == 0) {
            FILE *stream = fdopen(file, "wb");
            if (stream != NULL) return stream;
        }
        const int reason = errno;
        close(file);
        unlink(o->temporary);
        forget(o->temporary);
        errno = reason;
        break;
    }
    free(o->temporary);
    o->temporary = NULL;
    return NULL;
}

bool output_open(output *o, const char *path, char *error, size_t error_size) {
    struct stat status, link;
    *o = (output){ .path = path };
    const bool exists = stat(path, &status) == 0, dangling = !exists && lstat(path, &link) == 0;
    if (names_stdout(path)) {
        const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        o->file = copy < 0 ? NULL : fdopen(copy, "wb");
        if (o->file == NULL && copy >= 0) close(copy);
    } else if (dangling || (exists && !S_ISREG(status.st_mode)) || strncmp(path, "/dev/fd/", 8) == 0 ||
               strncmp(path, "/proc/", 6) == 0) {
        o->file = fopen(path, "wb");
    } else {
        o->target = exists ? realpath(path, NULL) : strdup(path);
        if (o->target != NULL && (!exists || access(o->target, W_OK) == 0))
            o->file = open_beside(o, exists ? &status : NULL);
    }
    return o->file != NULL || wrong(path, error, error_size);
}

bool output_finish(output *o, char *error, size_t error_size) {
    if (o->file == NULL) return true;
    bool ok = fflush(o->file) == 0 && !ferror(o->file);
    if (o->target != NULL) ok = ok && fsync(fileno(o->file)) == 0;
    const int reason = errno;
    const bool closed = fclose(o->file) == 0;
    o->file = NULL;
    if (!ok) errno = reason;
    return (ok && closed) || wrong(o->path, error, error_size);
}

bool output_commit(output *o, char *error, size_t error_size) {
    if (o->temporary == NULL) return true;
    if (rename(o->temporary, o->target) != 0) return wrong(o->path, error, error_size);
    forget(o->temporary);
    free(o->temporary);
    o->temporary = NULL;
    return true;
}

void output_discard(output *o) {
    if (o->file != NULL) fclose(o->file);
    if (o->temporary != NULL) {
        unlink(o->temporary);
        forget(o->temporary);
    }
    free(o->temporary);
    free(o->target);
    *o = (output){ NULL };
}
