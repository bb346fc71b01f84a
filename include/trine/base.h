/* SPDX-License-Identifier: Apache-2.0 */
/* What all headers share: statuses, element types, tensors, and the names of the library and of a queue. */
#ifndef TRINE_BASE_H
#define TRINE_BASE_H

#include <stddef.h>
#include <stdint.h>

#include <trine/version.h>

#if defined(__GNUC__) || defined(__clang__)
#define TRINE_API __attribute__((visibility("default")))
#else
#define TRINE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------------------- status */

typedef enum trine_status {
    TRINE_OK = 0,
    TRINE_ERR_ARGUMENT = 1,    /* an argument contradicts the op's specification; nothing was read or written */
    TRINE_ERR_UNSUPPORTED = 2, /* valid, but no kernel of the device takes it; trine_explain() has the reasons */
    TRINE_ERR_WORKSPACE = 3,   /* strict queue: the reserved workspace is too small; the message names the bytes */
    TRINE_ERR_MEMORY = 4,      /* out of memory on the host or the device */
    TRINE_ERR_DEVICE = 5,      /* the device or its driver reported an error; the message holds the driver's words */
    TRINE_ERR_NOT_FOUND = 6,   /* no such device, op, kernel or file */
    TRINE_ERR_IO = 7,          /* a file could not be read or written */
    TRINE_ERR_INTERNAL = 8,    /* a defect of trine */
    TRINE_ERR_COMM = 9         /* another rank of a group is missing, has ended, or does something else */
} trine_status;

/* The name of a status, as in "TRINE_ERR_ARGUMENT". Never NULL. */
TRINE_API const char *trine_status_name(trine_status status);

/* What went wrong in the calling thread's last failed call; "" if none failed. Valid until its next failing call. */
TRINE_API const char *trine_error_message(void);

/* ---------------------------------------------------------------------------------------------------------- tensors */

/* Element types. The codes are DLPack's: (type code << 8) | bits, lanes 1. */
typedef enum trine_dtype {
    TRINE_NONE = 0,
    TRINE_I8 = 0x0008,
    TRINE_I16 = 0x0010,
    TRINE_I32 = 0x0020,
    TRINE_I64 = 0x0040,
    TRINE_U8 = 0x0108,
    TRINE_U32 = 0x0120,
    TRINE_F16 = 0x0210,
    TRINE_F32 = 0x0220,
    TRINE_F64 = 0x0240,
    TRINE_BF16 = 0x0410,
    TRINE_E4M3 = 0x0a08,     /* OCP float8 e4m3fn: no Inf, NaN 0x7f and 0xff, largest 448 */
    TRINE_E4M3FNUZ = 0x0b08, /* float8 of CDNA3: no Inf, no -0, NaN 0x80, largest 240 */
    TRINE_E5M2 = 0x0c08,     /* OCP float8 e5m2: Inf and NaN as IEEE, largest 57344 */
    TRINE_E5M2FNUZ = 0x0d08, /* float8 of CDNA3: no Inf, no -0, NaN 0x80, largest 57344 */
    TRINE_E8M0 = 0x0e08      /* OCP scale of MX formats: 2^(byte - 127); no sign, no 0, no Inf, NaN 0xff */
} trine_dtype;

/* The name of an element type ("bf16"), or NULL for an unknown code; its size in bytes (0 if unknown); and the type of
 * a name (TRINE_NONE if unknown). */
TRINE_API const char *trine_dtype_name(trine_dtype dtype);
TRINE_API size_t trine_dtype_size(trine_dtype dtype);
TRINE_API trine_dtype trine_dtype_parse(const char *name);

#define TRINE_MAX_RANK 8

/* A view of memory the caller owns. Strides are in elements and may be anything that the op's specification admits:
 * usually the last dimension is contiguous and leading strides are free. A dimension of length 1 has no meaning for its
 * stride. */
typedef struct trine_tensor {
    void *data;        /* where element (0, ..., 0) is; may be NULL if a dimension is 0 */
    trine_dtype dtype; /* element type */
    int32_t rank;      /* number of dimensions, 0..TRINE_MAX_RANK; 0 is a scalar */
    int64_t shape[TRINE_MAX_RANK];
    int64_t stride[TRINE_MAX_RANK];
} trine_tensor;

/* A row-major contiguous tensor of up to four dimensions over `data`. */
TRINE_API trine_tensor trine_tensor_1d(void *data, trine_dtype dtype, int64_t n0);
TRINE_API trine_tensor trine_tensor_2d(void *data, trine_dtype dtype, int64_t n0, int64_t n1);
TRINE_API trine_tensor trine_tensor_3d(void *data, trine_dtype dtype, int64_t n0, int64_t n1, int64_t n2);
TRINE_API trine_tensor trine_tensor_4d(void *data, trine_dtype dtype, int64_t n0, int64_t n1, int64_t n2, int64_t n3);

/* The same elements with the last two dimensions exchanged: how a transposed operand is written.
 * Rank must be at least 2. */
TRINE_API trine_tensor trine_tensor_transpose(const trine_tensor *tensor);

/* The number of elements, or -1 if the shape is negative or the product overflows. */
TRINE_API int64_t trine_tensor_count(const trine_tensor *tensor);

/* The most edges that trine_explain_edges() tells of. */
#define TRINE_MAX_EDGES 64

/* The library, and a queue of work on one of its devices: trine.h opens them. In C the library is `trine` for short; in
 * C++ that is the namespace of trine.hpp. */
typedef struct trine_library trine_library;
#ifndef __cplusplus
typedef trine_library trine;
#endif
typedef struct trine_queue trine_queue;

/* A rank's part in a group: group.h opens it. */
typedef struct trine_comm trine_comm;

#ifdef __cplusplus
}
#endif

#endif
