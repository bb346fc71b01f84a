/* SPDX-License-Identifier: Apache-2.0 */
/* The part of DLPack 1.3 that the binding uses: how array libraries lend each other their memory. The names are ours,
 * the layout is https://github.com/dmlc/dlpack, include/dlpack/dlpack.h. */
#ifndef BINDING_DLPACK_H
#define BINDING_DLPACK_H

#include <stdint.h>

enum { DL_MAJOR = 1, DL_MINOR = 3 };
enum {
    DL_CPU = 1,
    DL_CUDA = 2,
    DL_CUDA_HOST = 3,
    DL_ROCM = 10,
    DL_ROCM_HOST = 11,
    DL_CUDA_MANAGED = 13
}; /* device types */
enum { DL_READ_ONLY = 1 };

typedef struct dl_version {
    uint32_t major, minor;
} dl_version;

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits; /* a trine_dtype is code << 8 | bits, where lanes is 1 */
    uint16_t lanes;
    int64_t *shape, *stride; /* strides in elements; NULL before 1.2: row-major */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed { /* in a capsule "dltensor" */
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned { /* in a capsule "dltensor_versioned" */
    dl_version version;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

/* What a type has as __dlpack_c_exchange_api__, in a capsule "dlpack_exchange_api". Functions return 0, or -1 with a
 * Python error; the first takes a function that sets it. */
typedef struct dl_exchange {
    dl_version version;
    const struct dl_exchange *previous;
    int (*allocate)(dl_tensor *prototype, dl_versioned **out, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message));
    int (*managed_of)(void *object, dl_versioned **out);
    int (*object_of)(dl_versioned *tensor, void **object_out); /* takes the tensor over */
    int (*view_of)(void *object, dl_tensor *out);              /* may be NULL; lent while the object is not changed */
    int (*stream)(int32_t device_type, int32_t device_id, void **stream_out);
} dl_exchange;

#endif
