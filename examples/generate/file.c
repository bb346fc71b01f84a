/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences, slices, cursors and mappings. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

bool refuse(problem *why, const char *format, ...) {
    if (why->text[0]) return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    for (char *c = why->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    return false;
}

slice slice_of(const char *text) { return (slice){ text, strlen(text) }; }

bool slice_is(slice s, const char *text) { return slice_same(s, slice_of(text)); }

bool slice_same(slice a, slice b) { return a.size == b.size && (a.size == 0 || !memcmp(a.bytes, b.bytes, a.size)); }

bool cursor_take(cursor *c, uint64_t bytes, const uint8_t **out) {
    if (bytes > (uint64_t)(c->end - c->at)) return false;
    *out = c->at;
    c->at += bytes;
    return true;
}

uint64_t little_endian(const uint8_t *at, int bytes) {
    uint64_t x = 0;
    for (int i = bytes - 1; i >= 0; i--) x = x << 8 | at[i];
    return x;
}

bool cursor_u32(cursor *c, uint32_t *out) {
    const uint8_t *at;
    if (!cursor_take(c, 4, &at)) return false;
    *out = (uint32_t)little_endian(at, 4);
    return true;
}

bool cursor_u64(cursor *c, uint64_t *out) {
    const uint8_t *at;
    if (!cursor_take(c, 8, &at)) return false;
    *out = little_endian(at, 8);
    return true;
}

bool mapping_open(mapping *m, const char *path, problem *why) {
    struct stat s;
    *m = (mapping){ 0 };
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return refuse(why, "%s: %s", path, strerror(errno));
    void *bytes = MAP_FAILED;
    if (fstat(file, &s) != 0)
        refuse(why, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(s.st_mode))
        refuse(why, "%s: not a file", path);
    else if (s.st_size == 0)
        refuse(why, "%s: the file is empty", path);
    else if ((bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, file, 0)) == MAP_FAILED)
        refuse(why, "%s: %s", path, strerror(errno));
    else
        *m = (mapping){ bytes, (size_t)s.st_size };
    close(file);
    return m->bytes != NULL;
}

void mapping_close(mapping *m) {
    if (m->bytes) munmap((void *)(uintptr_t)m->bytes, m->size);
    *m = (mapping){ 0 };
}
