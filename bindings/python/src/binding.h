/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the Python module: arrays of other libraries (array.c), queues (queue.c), shapes (shape.c), calls of ops
 * (call.c) and of XLA (xla.c), which follow the tables that generate.py writes. Functions that return int return 0, or
 * -1 with a Python error; those that take a failure have it there instead, and need not hold the GIL. */
#ifndef BINDING_H
#define BINDING_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdbool.h>

#include <trine/trine.h>

#include "dlpack.h"

/* Why something failed. */
typedef struct failure {
    trine_status status;
    char text[512];
} failure;

#if defined __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
int fail(failure *why, trine_status status, const char *format, ...); /* these return -1 */
int fail_as_library(failure *why, trine_status status);

/* ----------------------------------------------------------------------------------------------------------- tables */

enum { IN = 1, OUT = 2, OPTIONAL = 4, BROADCAST = 16 }; /* as spec/spec.h */
/* At most: what an op has. */
enum {
    TABLE_TENSORS = 20,
    TABLE_PARAMS = 16,
    TABLE_FIELDS = TABLE_TENSORS + TABLE_PARAMS,
    TABLE_SYMBOLS = 16,
    TABLE_ARGS = 320 /* bytes of arguments */
};

typedef struct table_dim {
    int8_t symbol; /* -1: the number `add`, or if there is `of` that symbol's size and `add` by `by`, rounded down */
    int8_t add;
    bool optional; /* may be missing in front */
    int8_t of, by; /* by 0: there is none */
} table_dim;

typedef struct table_tensor {
    const char *name;
    uint16_t offset; /* in the arguments */
    uint8_t flags;
    int8_t rank;
    int8_t variable; /* type variable, -1: always `dtype` */
    trine_dtype dtype;
    table_dim dim[TRINE_MAX_RANK];
} table_tensor;

typedef enum param_kind {
    KIND_BOOL,
    KIND_ENUM,
    KIND_I32,
    KIND_I64,
    KIND_U64,
    KIND_F32,
    KIND_TEXT,
    KIND_COMM,
    KIND_SIZE
} param_kind;

typedef struct table_param {
    const char *name;
    param_kind kind;
    uint16_t offset, set_offset; /* of the flag that says it is given; 0: none. KIND_SIZE: offset is a symbol */
    bool required;               /* no value would do for one left out */
    bool zero_is_fallback;
    float explicit; /* KIND_F32: written where none is given, if the op refuses a zero beside some tensor; else 0 */
    const char *const *names; /* KIND_ENUM: ended by NULL */
} table_param;

typedef struct table {
    const char *name;
    trine_op op;
    uint16_t args_size;
    uint8_t tensors, params, symbols, variables;
    uint8_t positional;            /* how many of `order` may be given by place */
    int8_t leading;                /* symbol for which a vector stands alone, as r of "r n"; -1: none */
    uint8_t order[TABLE_FIELDS];   /* of arguments; tensors first, then parameters */
    int8_t like[TABLE_SYMBOLS][2]; /* symbols whose sizes, but 1, another one takes; -1: none */
    const table_tensor *tensor;
    const table_param *param;
    const char *const *symbol;
    const trine_dtype *types; /* rows of `variables` types; ended by TRINE_NONE */
    const struct table *own;  /* of an op of a group: what a rank's call with a communicator has; else NULL */
    uint32_t stamp;           /* of what stands above */
} table;

extern const table *const op_tables[];
extern const int op_count;

/* ----------------------------------------------------------------------------------------------------------- arrays */

enum { ARRAY_RANK = 16 };

/* A view of another library's memory. */
typedef struct array {
    PyObject *object;
    const dl_exchange *exchange; /* of its type, or NULL */
    void *data;
    trine_dtype dtype;
    int rank;
    int32_t device_type, device_id;
    bool read_only, immutable; /* immutable: results are made elsewhere and then wrapped */
    int64_t shape[ARRAY_RANK], stride[ARRAY_RANK];
    Py_buffer buffer;  /* what lends it: .obj NULL: nothing */
    PyObject *capsule; /* or this */
} array;

/* `op` and `name` are for messages. */
int array_import(array *out, PyObject *object, const char *op, const char *name);
void array_release(array *a);

/* One that has no memory: a dtype by trine's name and a shape, a tuple. It needs no release. */
int array_describe(array *out, const char *dtype, PyObject *shape, const char *op, const char *name);

/* A new array on the device of `like`, of the same library if that has arrays that can be written; and what the caller
 * is given for it. */
PyObject *array_empty(const array *like, trine_dtype dtype, int rank, const int64_t *shape);
PyObject *array_result(const array *like, PyObject *made);

/* The stream that the library of `a` works on now; NULL is the vendor's default stream. */
int array_stream(const array *a, void **stream_out);

/* "f32" of torch.float32, numpy.dtype("float32"), "float32" or "f32"; TRINE_NONE with an error. */
trine_dtype dtype_of(PyObject *object, const char *op);

int arrays_init(void);

/* ----------------------------------------------------------------------------------------------------------- shapes */

/* Where an array's elements lie. */
typedef struct view {
    void *data;
    trine_dtype dtype;
    int rank;
    const int64_t *shape, *stride;
} view;

/* A symbol, -1: none, for which the first `count` dimensions of an array stand. */
typedef struct several {
    int symbol, count;
} several;

/* What the op is given as its tensor `i`: a view with as many dimensions as it has. */
int shape_tensor(const table *t, int i, const view *a, trine_tensor *to, several *several_out, failure *why);

/* ----------------------------------------------------------------------------------------------------------- queues */

typedef struct lane {
    trine_queue *queue;
    int device; /* trine's number */
    void *stream;
    unsigned age; /* of the setting of threads that it was opened with */
    struct lane *next;
} lane;

/* trine's number of a device of DLPack, on which `name` is; -1: there is none. */
int device_number(int32_t device_type, int32_t device_id, const char *op, const char *name, failure *why);

/* And of a device by its name, "cuda:0". */
int device_named(const char *name, failure *why);

/* A queue on the stream that no other call uses, until it is given back. NULL: there is none. */
lane *lane_take(int device, void *stream, failure *why);
void lane_give(lane *l);

/* The same for callers with the GIL, which is free while the library opens; NULL with a Python error. */
lane *lane_take_python(int device, void *stream);

/* The exception of a failure, or of a status with the library's sentence. Return NULL. */
PyObject *raise_failure(const failure *why);
PyObject *raise_status(trine_status status);

extern PyObject *error_class, *argument_error;

PyObject *py_devices(PyObject *self, PyObject *unused);
PyObject *py_backends(PyObject *self, PyObject *unused);
PyObject *py_set_threads(PyObject *self, PyObject *count);
int queues_init(PyObject *module);

PyObject *py_arena_plan(PyObject *self, PyObject *args, PyObject *names);

/* -------------------------------------------------------------------------------------------------- communicators */

/* That of a trine.Comm; NULL with an error if it is none, or closed. */
trine_comm *comm_of(PyObject *object);

/* Around a call that has it: -1 with an error if another call has. NULL: there is none. */
int comm_begin(PyObject *object);
void comm_end(PyObject *object);

int comm_init(PyObject *module);

/* ------------------------------------------------------------------------------------------------------------ calls */

/* Parses, makes the outputs that are missing, runs. What is returned: the outputs, one alone or a tuple. */
PyObject *op_call(const table *t, PyObject *const *args, Py_ssize_t count, PyObject *names);
/* The calls of a list, dictionaries of arguments; a list of what each returns. */
PyObject *op_run_list(const table *t, PyObject *calls);
PyObject *op_explain(const table *t, PyObject *const *args, Py_ssize_t count, PyObject *names);

int calls_init(void);

/* -------------------------------------------------------------------------------------------------------------- XLA */

/* A call whose tensors XLA will bring, as bytes for xla.c: checked as far as that is possible without data. `operands`
 * and `results` are tuples of (name, dtype, shape) in the order of the table. */
PyObject *op_pack(const table *t, PyObject *operands, PyObject *results, PyObject *const *values, PyObject *names);

typedef struct packed {
    uint32_t stamp;
    int32_t op;
    uint32_t operands, results; /* bits of the table's tensors */
    /* then the op's arguments, where no tensor is set and a text is where it is in all this; then the texts */
} packed;

PyObject *py_xla_handlers(PyObject *self, PyObject *unused);

#endif
