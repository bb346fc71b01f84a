/* SPDX-License-Identifier: Apache-2.0 */
/* The part of XLA's foreign function interface, version 0.3, that the binding uses: how XLA calls functions of others.
 * The names are ours, the layout is https://github.com/openxla/xla, xla/ffi/api/c_api.h. All structures begin with
 * their size and a chain of extensions. */
#ifndef BINDING_XLA_H
#define BINDING_XLA_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_MAJOR = 0, XLA_MINOR = 3 };
enum { XLA_EXTENSION_METADATA = 1, XLA_BUFFER = 1, XLA_STRING = 4, XLA_EXECUTE = 3 };
enum {
    XLA_S8 = 2,
    XLA_S16 = 3,
    XLA_S32 = 4,
    XLA_S64 = 5,
    XLA_U8 = 6,
    XLA_U32 = 8,
    XLA_F16 = 10,
    XLA_F32 = 11,
    XLA_F64 = 12,
    XLA_BF16 = 16,
    XLA_F8E5M2 = 19,
    XLA_F8E4M3FN = 20,
    XLA_F8E5M2FNUZ = 24,
    XLA_F8E4M3FNUZ = 25,
    XLA_F8E8M0FNU = 33,
    XLA_TYPES = 34
}; /* of elements */
enum { XLA_INVALID_ARGUMENT = 3, XLA_EXHAUSTED = 8, XLA_UNIMPLEMENTED = 12, XLA_INTERNAL = 13 }; /* errors */

typedef struct xla_error xla_error;
typedef struct xla_context xla_context;

typedef struct xla_extension {
    size_t size;
    int type;
    struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
    size_t size;
    xla_extension *extension;
    int major, minor;
} xla_version;

typedef struct xla_metadata {
    size_t size;
    xla_version version;
    uint32_t traits;
    int64_t state_type;
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_buffer {
    size_t size;
    xla_extension *extension;
    int type;
    void *data;
    int64_t rank;
    int64_t *shape;
} xla_buffer;

typedef struct xla_span {
    const char *text;
    size_t length;
} xla_span;

typedef struct xla_buffers { /* arguments, results */
    size_t size;
    xla_extension *extension;
    int64_t count;
    int *kinds;
    void **values;
} xla_buffers;

typedef struct xla_attributes {
    size_t size;
    xla_extension *extension;
    int64_t count;
    int *kinds;
    xla_span **names;
    void **values;
} xla_attributes;

/* What functions of the API take. */
typedef struct xla_error_args {
    size_t size;
    xla_extension *extension;
    const char *message;
    int code;
} xla_error_args;

typedef struct xla_destroy_args {
    size_t size;
    xla_extension *extension;
    xla_error *error;
} xla_destroy_args;

typedef struct xla_stream_args {
    size_t size;
    xla_extension *extension;
    xla_context *context;
    void *stream; /* out */
} xla_stream_args;

typedef struct xla_ordinal_args {
    size_t size;
    xla_extension *extension;
    xla_context *context;
    int32_t ordinal; /* out */
} xla_ordinal_args;

typedef struct xla_allocate_args {
    size_t size;
    xla_extension *extension;
    xla_context *context;
    size_t bytes, alignment;
    void *memory; /* out */
} xla_allocate_args;

typedef struct xla_free_args {
    size_t size;
    xla_extension *extension;
    xla_context *context;
    size_t bytes;
    void *memory;
} xla_free_args;

typedef struct xla_api {
    size_t size;
    xla_extension *extension;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_args *args);
    void (*error_message)(void *args);
    void (*error_destroy)(xla_destroy_args *args);
    void *handler_register;
    xla_error *(*stream)(xla_stream_args *args);
    void *type_register, *context_get, *state_set, *state_get;
    xla_error *(*allocate)(xla_allocate_args *args);
    xla_error *(*free)(xla_free_args *args);
    void *pool_schedule, *pool_threads, *future_create, *future_available, *future_error, *run_id;
    xla_error *(*ordinal)(xla_ordinal_args *args);
} xla_api;

typedef struct xla_frame {
    size_t size;
    xla_extension *extension;
    const xla_api *api;
    xla_context *context;
    int stage;
    xla_buffers arguments, results;
    xla_attributes attributes;
    void *future; /* out */
} xla_frame;

typedef xla_error *xla_handler(xla_frame *frame);

#endif
