/* SPDX-License-Identifier: Apache-2.0 */
/* JSON (RFC 8259), as models come with it. */
#ifndef GENERATE_JSON_H
#define GENERATE_JSON_H

#include "file.h"

typedef enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_type;

/* What is within an array or an object follows it; an object's are names and values in turn. */
typedef struct json_node {
    json_type type;
    int32_t after; /* the node after all that is within this one */
    slice text;    /* of a string, without escapes; of a number */
} json_node;

typedef struct json {
    json_node *node;
    int32_t nodes, room;
    char *unescaped; /* strings that had escapes */
    size_t unescaped_size;
} json;

/* The text must stay where it is. Node 0 is the whole. */
bool json_parse(json *j, slice text, problem *why);
void json_free(json *j);

/* The value of a name in an object; -1 where there is none, or null, or `object` is no object. */
int32_t json_member(const json *j, int32_t object, const char *name);

/* The values of names, as gguf_whole() and its like: where one is missing nothing is written and the result is true. */
bool json_whole(const json *j, int32_t object, const char *name, int64_t *out, problem *why);
bool json_number(const json *j, int32_t object, const char *name, double *out, problem *why);
bool json_text(const json *j, int32_t object, const char *name, slice *out, problem *why);
bool json_flag(const json *j, int32_t object, const char *name, bool *out, problem *why);

/* A node that is a whole number from 0 on. */
bool json_index(const json *j, int32_t node, uint64_t *out);

#endif
