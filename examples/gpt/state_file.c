/* SPDX-License-Identifier: Apache-2.0 */
/* A file that holds what memory cannot.
 *
 * It is read and written by calls, and with O_DIRECT where the file system can, not mapped. What a step needs next is
 * known, so that it can be asked for ahead of time, where a mapping would stop the step at each page; each byte is used
 * once a step, so that a cache of pages smaller than the file never has what is needed and takes memory from the rest;
 * and a disk that fails gives an error, where a mapping gives SIGBUS. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_DIRECT */
#endif
#include "state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool gpt_state_file_open(gpt_state_file *file, const char *path, int64_t bytes) {
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    *file = (gpt_state_file){ open(path, flags | O_DIRECT, 0600), true };
    if (file->descriptor < 0 && errno == EINVAL) {
        unlink(path); /* which some file systems have made by then */
        *file = (gpt_state_file){ open(path, flags, 0600), false };
    }
    if (file->descriptor < 0) return false;
    int reason = unlink(path) == 0 ? 0 : errno;
    if (reason == 0 && bytes > 0) reason = posix_fallocate(file->descriptor, 0, bytes);
    if (reason == 0) return true;
    gpt_state_file_close(file);
    errno = reason;
    return false;
}

bool gpt_state_file_read(const gpt_state_file *file, void *to, size_t bytes, int64_t place) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(file->descriptor, (char *)to + done, bytes - done, place + (int64_t)done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            return errno = got == 0 ? EIO : errno, false;
    }
    return true;
}

bool gpt_state_file_write(const gpt_state_file *file, const void *from, size_t bytes, int64_t place) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t put = pwrite(file->descriptor, (const char *)from + done, bytes - done, place + (int64_t)done);
        if (put > 0)
            done += (size_t)put;
        else if (put == 0 || errno != EINTR)
            return errno = put == 0 ? EIO : errno, false;
    }
    return true;
}

void gpt_state_file_close(gpt_state_file *file) {
    if (file->descriptor >= 0) close(file->descriptor);
    file->descriptor = -1;
}
