/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the text, and holding a part of it out. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data.h"

enum { BLOCK = 1024, HOLD_OUT = 10, FILE_LIMIT = 1 << 20, DEPTH = 16, PATH_SIZE = 4096 };
#define TEXT_LIMIT ((int64_t)1 << 31)

typedef struct text {
    uint8_t *bytes;
    int64_t size, room, files;
    char *error;
    size_t error_size;
} text;

uint64_t gpt_hash(uint64_t hash, const void *bytes, size_t size) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

uint8_t *gpt_read_file(const char *path, int64_t limit, size_t *size_out) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    uint8_t *bytes = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (size == room) {
            room = room ? 2 * room : 1 << 16;
            uint8_t *more = realloc(bytes, room);
            if (!more) break;
            bytes = more;
        }
        const size_t got = fread(bytes + size, 1, room - size, file);
        size += got;
        if ((int64_t)size > limit) {
            errno = EFBIG;
            break;
        }
        if (got == 0 && !ferror(file)) {
            fclose(file);
            *size_out = size;
            return bytes;
        }
        if (got == 0) break;
    }
    const int reason = errno;
    fclose(file);
    free(bytes);
    errno = reason;
    return NULL;
}

static bool fail(text *t, const char *path) {
    snprintf(t->error, t->error_size, "%s: %s", path, strerror(errno));
    return false;
}

static bool append(text *t, const char *path, const uint8_t *bytes, int64_t size) {
    if (t->size + size > TEXT_LIMIT) {
        errno = EFBIG;
        return fail(t, path);
    }
    if (t->size + size > t->room) {
        const int64_t room = 2 * (t->size + size);
        uint8_t *more = realloc(t->bytes, (size_t)room);
        if (!more) return fail(t, path);
        t->bytes = more;
        t->room = room;
    }
    memcpy(t->bytes + t->size, bytes, (size_t)size);
    t->size += size;
    t->files++;
    return true;
}

static bool add_file(text *t, const char *path, bool asked_for) {
    size_t size = 0;
    uint8_t *bytes = gpt_read_file(path, asked_for ? TEXT_LIMIT : FILE_LIMIT, &size);
    if (!bytes) return (!asked_for && errno == EFBIG) || fail(t, path);
    const bool good = (!asked_for && memchr(bytes, 0, size)) || append(t, path, bytes, (int64_t)size);
    free(bytes);
    return good;
}

static bool is_text_name(const char *name) {
    static const char *const extensions[] = { ".c",   ".h",     ".cu",  ".hip", ".inl", ".cc",    ".cpp",
                                              ".py",  ".sh",    ".md",  ".rst", ".txt", ".build", ".scd",
                                              ".def", ".cmake", ".map", ".in",  NULL };
    static const char *const names[] = { "README", "NEWS", "LICENSE", "dev", NULL };
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && extensions[i]; i++)
        if (!strcmp(dot, extensions[i])) return true;
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static int seen(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* By bytes, so that the order does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static bool is_build_directory(const char *path) {
    char name[PATH_SIZE];
    struct stat s;
    return snprintf(name, sizeof name, "%s/build.ninja", path) < (int)sizeof name && stat(name, &s) == 0;
}

static bool add_directory(text *t, const char *path, int depth) {
    struct dirent **entry = NULL;
    const int count = scandir(path, &entry, seen, by_name);
    if (count < 0) return fail(t, path);
    bool good = true;
    for (int i = 0; i < count; i++) {
        char name[PATH_SIZE];
        struct stat s;
        const bool fits = snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name) < (int)sizeof name;
        if (good && fits && lstat(name, &s) == 0) {
            if (S_ISDIR(s.st_mode) && depth < DEPTH && !is_build_directory(name))
                good = add_directory(t, name, depth + 1);
            else if (S_ISREG(s.st_mode) && is_text_name(entry[i]->d_name))
                good = add_file(t, name, false);
        }
        free(entry[i]);
    }
    free(entry);
    return good;
}

static bool split(gpt_data *data, const text *t) {
    const int64_t blocks = (t->size + BLOCK - 1) / BLOCK;
    data->train = malloc((size_t)t->size + 1);
    data->held_out = malloc((size_t)t->size + 1);
    if (!data->train || !data->held_out) return false;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t size = t->size - b * BLOCK < BLOCK ? t->size - b * BLOCK : BLOCK;
        const bool held = b % HOLD_OUT == HOLD_OUT - 1;
        memcpy(held ? data->held_out + data->held_out_size : data->train + data->train_size, t->bytes + b * BLOCK,
               (size_t)size);
        *(held ? &data->held_out_size : &data->train_size) += size;
    }
    data->files = t->files;
    data->hash = gpt_hash(GPT_HASH_START, t->bytes, (size_t)t->size);
    return true;
}

bool gpt_data_load(gpt_data *data, const char *path, int64_t least, char *error_out, size_t error_size) {
    *data = (gpt_data){ 0 };
    text t = { .error = error_out, .error_size = error_size };
    struct stat s;
    bool good = stat(path, &s) == 0 ? S_ISDIR(s.st_mode) ? add_directory(&t, path, 0) : add_file(&t, path, true)
                                    : fail(&t, path);
    if (good && !split(data, &t)) good = fail(&t, path);
    if (good && (data->train_size < least || data->held_out_size < least)) {
        snprintf(error_out, error_size, "%s: %lld bytes of text leave %lld to hold out; %lld are needed", path,
                 (long long)t.size, (long long)data->held_out_size, (long long)least);
        good = false;
    }
    free(t.bytes);
    if (!good) gpt_data_free(data);
    return good;
}

void gpt_data_free(gpt_data *data) {
    free(data->train);
    free(data->held_out);
    *data = (gpt_data){ 0 };
}
