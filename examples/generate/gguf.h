/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files, versions 2 and 3: key and value pairs, then tensors. */
#ifndef GENERATE_GGUF_H
#define GENERATE_GGUF_H

#include "storage.h"

/* The types of values. */
enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

typedef struct gguf_value {
    slice key;
    uint32_t type, element; /* GGUF_*; the second of an array's elements */
    uint64_t count;         /* of an array's elements */
    cursor data;            /* its bytes: of an array those of its elements, of a string with its length */
} gguf_value;

typedef struct gguf {
    gguf_value *value;
    int64_t values;
    stored *tensor;
    int64_t tensors;
} gguf;

/* Takes a file apart: names and data stay where they are in `bytes`. Every value and tensor lies within them. */
bool gguf_parse(gguf *g, const uint8_t *bytes, size_t size, problem *why);
void gguf_free(gguf *g);

const gguf_value *gguf_find(const gguf *g, const char *key);

/* The value of a key: a whole number of any size and sign, any number, a text, true or false. Where the key is missing
 * nothing is written and the result is true; what is there in another type, or beyond int64_t, is refused. */
bool gguf_whole(const gguf *g, const char *key, int64_t *out, problem *why);
bool gguf_number(const gguf *g, const char *key, double *out, problem *why);
bool gguf_text(const gguf *g, const char *key, slice *out, problem *why);
bool gguf_flag(const gguf *g, const char *key, bool *out, problem *why);

/* The next string of an array of strings, or number of an array of i32 or u32, from a cursor that began as its data. */
bool gguf_next_text(cursor *c, slice *out);
bool gguf_next_i32(cursor *c, int32_t *out);

#endif
