/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory, read with care: what it says may be anything.
 *
 * Functions of this program that return bool and take a problem return false when they fail; the problem then says
 * why, in a sentence. */
#ifndef GENERATE_FILE_H
#define GENERATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct problem {
    char text[400];
} problem;

/* Sets the sentence, unless one is there already, since the first reason is the right one. Bytes that would move a
 * terminal's cursor are replaced. Always false. */
bool refuse(problem *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes that belong to another: text without an end mark. */
typedef struct slice {
    const char *bytes;
    size_t size;
} slice;

slice slice_of(const char *text);
bool slice_is(slice s, const char *text);
bool slice_same(slice a, slice b);

/* For "%.*s": at most 80 bytes of it. */
#define SHOWN(s) (int)((s).size < 80 ? (s).size : 80), (s).bytes

/* The bytes of a file that are still to be read. */
typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

/* Each returns false, and reads nothing, where fewer bytes are left. */
bool cursor_take(cursor *c, uint64_t bytes, const uint8_t **out);
bool cursor_u32(cursor *c, uint32_t *out);
bool cursor_u64(cursor *c, uint64_t *out);

/* `bytes` <= 8 of them as a number, the least significant first. */
uint64_t little_endian(const uint8_t *at, int bytes);

/* A whole file, mapped to be read. */
typedef struct mapping {
    const uint8_t *bytes;
    size_t size;
} mapping;

bool mapping_open(mapping *m, const char *path, problem *why);
void mapping_close(mapping *m);

#endif
