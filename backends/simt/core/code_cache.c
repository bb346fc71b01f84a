/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of device code that was compiled at run time: a directory with a file for each key, which several processes
 * may read and write at once.
 *
 * A file is written under a name of its own and renamed. It says its length and a hash of its bytes: one that was cut
 * short, that a disk has spoiled or that is another's is passed over, and what is compiled then takes its place. Device
 * code is trusted as a library is: only a file that its owner alone can write, and that is the user's or root's, is
 * read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile.h"

enum { FILE_LIMIT = 64 << 20 };

static const char magic[16] = "trine code 1\n";

typedef struct header {
    char magic[16];
    simt_code_key key, check;
    uint64_t size;
} header;

/* ------------------------------------------------------------------------------------------------------------- keys */

static void add(simt_code_key *key, const unsigned char *bytes, size_t size) {
    uint64_t a = key->word[0], b = key->word[1];
    for (size_t i = 0; i < size; i++) {
        a = (a ^ bytes[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
        b = ((b << 23 | b >> 41) ^ bytes[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    *key = (simt_code_key){ { a, b } };
}

void simt_code_key_add(simt_code_key *key, const void *bytes, size_t size) {
    const uint64_t length = size + 1; /* a key that has seen nothing is left by the first byte */
    add(key, (const unsigned char *)&length, sizeof length);
    add(key, bytes, size);
}

static simt_code_key key_of(const void *bytes, size_t size) {
    simt_code_key key = { { 0, 0 } };
    simt_code_key_add(&key, bytes, size);
    return key;
}

static bool same_key(const simt_code_key *a, const simt_code_key *b) {
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* ------------------------------------------------------------------------------------------------------------ paths */

/* The directory, with '/' at its end; false: there is no cache. */
static bool directory_of(const trine_host *host, char *path_out, size_t size) {
    const char *chosen = host->environment("TRINE_CODE"), *cache = secure_getenv("XDG_CACHE_HOME"),
               *home = secure_getenv("HOME");
    int length = (int)size;
    if (chosen != NULL)
        length = strcmp(chosen, "/dev/null") == 0 ? length : snprintf(path_out, size, "%s/", chosen);
    else if (cache != NULL && cache[0] == '/')
        length = snprintf(path_out, size, "%s/trine/code/", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(path_out, size, "%s/.cache/trine/code/", home);
    return length < (int)size;
}

static bool path_of(const trine_host *host, const simt_code_key *key, char *path_out, size_t size) {
    if (!directory_of(host, path_out, size)) return false;
    const size_t length = strlen(path_out);
    return snprintf(path_out + length, size - length, "%016llx%016llx", (unsigned long long)key->word[0],
                    (unsigned long long)key->word[1]) < (int)(size - length);
}

/* Makes the directories above `path`. */
static bool make_directories(char *path) {
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = 0;
        const bool there = access(path, F_OK) == 0 || mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!there) return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static bool read_all(int file, void *to, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t got = read(file, (char *)to + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static bool trusted(const struct stat *status) {
    return S_ISREG(status->st_mode) && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           (status->st_uid == geteuid() || status->st_uid == 0) && status->st_size > (off_t)sizeof(header) &&
           status->st_size <= FILE_LIMIT;
}

void *simt_code_cache_read(const trine_host *host, const simt_code_key *key, size_t *size_out) {
    char path[PATH_MAX];
    struct stat status;
    header h;
    if (!path_of(host, key, path, sizeof path)) return NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return NULL;
    void *image = NULL;
    if (fstat(file, &status) == 0 && trusted(&status) && read_all(file, &h, sizeof h) &&
        memcmp(h.magic, magic, sizeof magic) == 0 && same_key(&h.key, key) &&
        h.size == (uint64_t)status.st_size - sizeof h)
        image = malloc((size_t)h.size);
    if (image != NULL) {
        const bool whole = read_all(file, image, (size_t)h.size);
        const simt_code_key check = key_of(image, whole ? (size_t)h.size : 0);
        if (!whole || !same_key(&check, &h.check)) {
            free(image);
            image = NULL;
        }
    }
    close(file);
    if (image != NULL) *size_out = (size_t)h.size;
    return image;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static bool write_all(int file, const void *from, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t put = write(file, (const char *)from + done, size - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += (size_t)put;
    }
    return true;
}

/* What was not on the disk yet when a machine stops is found wanting by its hash: there is no need to wait for it. */
void simt_code_cache_write(const trine_host *host, const simt_code_key *key, const void *image, size_t size) {
    char path[PATH_MAX], temporary[PATH_MAX + 32];
    header h = { .key = *key, .check = key_of(image, size), .size = size };
    memcpy(h.magic, magic, sizeof magic);
    if (size + sizeof h > FILE_LIMIT || !path_of(host, key, path, sizeof path) || !make_directories(path)) return;
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0) return;
    const bool written = write_all(file, &h, sizeof h) && write_all(file, image, size);
    if (close(file) != 0 || !written || rename(temporary, path) != 0) unlink(temporary);
}
