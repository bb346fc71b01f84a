/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of other libraries, by the quickest way that their type has: DLPack's C functions (PyTorch 2.10), a buffer
 * (NumPy), __dlpack__ (all others), or NumPy's interface for the element types that buffers lack (ml_dtypes). */
#include <string.h>

#include "binding.h"

enum { KINDS = 16 };

/* What is known of a type; types stay alive. */
typedef struct kind {
    PyTypeObject *type;
    const dl_exchange *exchange;
    bool tracks_gradients; /* as torch.Tensor.requires_grad */
    bool immutable;        /* as JAX's */
} kind;

static kind kinds[KINDS];
static int kinds_known;
static PyObject *helpers;            /* trine._arrays, imported when first needed */
static PyObject *name_requires_grad; /* interned */

static int set_shapes(array *out, int rank, const char *op, const char *name) {
    out->rank = rank;
    if (rank <= ARRAY_RANK) return 0;
    PyErr_Format(argument_error, "%s: %s has %d dimensions, but %d are possible", op, name, rank, ARRAY_RANK);
    return -1;
}

static int bad_type(const char *op, const char *name, const char *what) {
    PyErr_Format(argument_error, "%s: %s has elements of type %s, which trine does not have", op, name, what);
    return -1;
}

/* ----------------------------------------------------------------------------------------------------------- DLPack */

static int from_tensor(array *out, const dl_tensor *t, const char *op, const char *name) {
    if (set_shapes(out, t->rank, op, name) != 0) return -1;
    out->data = t->data != NULL ? (char *)t->data + t->byte_offset : NULL;
    out->dtype = (trine_dtype)(t->code << 8 | t->bits);
    if (t->lanes != 1 || trine_dtype_size(out->dtype) == 0) {
        char code[64];
        PyOS_snprintf(code, sizeof code, "%s (DLPack's code %d, %d bits)", t->code == 6 ? "bool" : "unknown", t->code,
                      t->bits);
        return bad_type(op, name, code);
    }
    out->device_type = t->device_type;
    out->device_id = t->device_id;
    int64_t count = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        out->shape[i] = t->shape[i];
        out->stride[i] = t->stride != NULL ? t->stride[i] : count;
        count *= t->shape[i];
    }
    return 0;
}

static const dl_exchange *exchange_of(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const dl_exchange *api = capsule != NULL ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    PyErr_Clear();
    Py_XDECREF(capsule);
    while (api != NULL && api->version.major != DL_MAJOR) api = api->previous;
    return api != NULL && api->view_of != NULL ? api : NULL;
}

/* NULL where too many types have come: those are then looked at in each call. */
static const kind *kind_of(PyObject *object, kind *fresh) {
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < kinds_known; i++)
        if (kinds[i].type == type) return &kinds[i];
    *fresh = (kind){ type, exchange_of(type), PyObject_HasAttrString((PyObject *)type, "requires_grad"),
                     PyObject_HasAttrString((PyObject *)type, "block_until_ready") };
    if (kinds_known == KINDS) return fresh;
    Py_INCREF((PyObject *)type);
    kinds[kinds_known] = *fresh;
    return &kinds[kinds_known++];
}

static PyObject *helper(const char *function) {
    if (helpers == NULL && (helpers = PyImport_ImportModule("trine._arrays")) == NULL) return NULL;
    return PyObject_GetAttrString(helpers, function);
}

/* What another library says of an array that it does not lend; its first line, since the rest may be a trace. */
static int not_lent(const char *op, const char *name) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value != NULL ? PyObject_Str(value) : NULL;
    const char *words = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : "";
    char line[256] = "";
    if (words != NULL) PyOS_snprintf(line, sizeof line, "%.*s", (int)strcspn(words, "\n"), words);
    PyErr_Format(argument_error, "%s: %s does not lend its memory: %s", op, name, line);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

static int from_capsule(array *out, PyObject *object, const char *op, const char *name) {
    PyObject *export = helper("export");
    PyObject *capsule = export != NULL ? PyObject_CallFunctionObjArgs(export, object, NULL) : NULL;
    Py_XDECREF(export);
    if (capsule == NULL) return not_lent(op, name);
    out->capsule = capsule;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const dl_versioned *v = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (v->version.major != DL_MAJOR) {
            PyErr_Format(argument_error, "%s: %s comes by DLPack %d, which trine does not know", op, name,
                         (int)v->version.major);
            return -1;
        }
        out->read_only = v->flags & DL_READ_ONLY;
        return from_tensor(out, &v->tensor, op, name);
    }
    const dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    return m != NULL ? from_tensor(out, &m->tensor, op, name) : -1;
}

/* ---------------------------------------------------------------------------------------------------------- buffers */

static trine_dtype dtype_of_format(const char *format, Py_ssize_t size) {
    if (format == NULL) return TRINE_U8;
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (format[0] == 0 || format[1] != 0) return TRINE_NONE;
    static const struct {
        const char *letters;
        trine_dtype of[4]; /* of 1, 2, 4 and 8 bytes */
    } table[] = { { "bhilqn", { TRINE_I8, TRINE_I16, TRINE_I32, TRINE_I64 } },
                  { "BHILQN", { TRINE_U8, TRINE_NONE, TRINE_U32, TRINE_NONE } },
                  { "efd", { TRINE_NONE, TRINE_F16, TRINE_F32, TRINE_F64 } } };
    const int place = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
    for (size_t i = 0; i < sizeof table / sizeof table[0] && place >= 0; i++)
        if (strchr(table[i].letters, format[0]) != NULL) return table[i].of[place];
    return TRINE_NONE;
}

static int byte_strides(array *out, const char *op, const char *name) {
    const int64_t size = (int64_t)trine_dtype_size(out->dtype);
    for (int i = 0; i < out->rank; i++) {
        if (out->stride[i] % size != 0) {
            PyErr_Format(argument_error, "%s: %s has a stride of %lld bytes, but elements of %lld", op, name,
                         (long long)out->stride[i], (long long)size);
            return -1;
        }
        out->stride[i] /= size;
    }
    return 0;
}

static int from_buffer(array *out, const char *op, const char *name) {
    const Py_buffer *b = &out->buffer;
    if (set_shapes(out, b->ndim, op, name) != 0) return -1;
    out->data = b->buf;
    out->read_only = b->readonly;
    out->device_type = DL_CPU;
    out->device_id = 0;
    out->dtype = dtype_of_format(b->format, b->itemsize);
    if (out->dtype == TRINE_NONE) return bad_type(op, name, b->format);
    for (int i = 0; i < b->ndim; i++) out->shape[i] = b->shape[i], out->stride[i] = b->strides[i];
    return byte_strides(out, op, name);
}

/* (data, read only, name of the dtype, shape, strides in bytes), which the helper takes from __array_interface__. */
static int from_interface(array *out, PyObject *object, const char *op, const char *name) {
    PyObject *describe = helper("describe"), *shape, *strides;
    PyObject *is = describe != NULL ? PyObject_CallFunctionObjArgs(describe, object, NULL) : NULL;
    const char *dtype;
    Py_ssize_t data;
    int read_only, failed = -1;
    Py_XDECREF(describe);
    if (is == NULL) return -1;
    if (PyArg_ParseTuple(is, "npsOO", &data, &read_only, &dtype, &shape, &strides) &&
        set_shapes(out, (int)PyTuple_Size(shape), op, name) == 0) {
        out->data = (void *)data; /* NOLINT: an address, as the interface gives it */
        out->read_only = read_only;
        out->dtype = trine_dtype_parse(dtype);
        out->device_type = DL_CPU;
        out->device_id = 0;
        for (int i = 0; i < out->rank; i++) {
            out->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
            out->stride[i] = PyLong_AsLongLong(PyTuple_GetItem(strides, i));
        }
        failed = PyErr_Occurred()           ? -1
                 : out->dtype == TRINE_NONE ? bad_type(op, name, dtype)
                                            : byte_strides(out, op, name);
    }
    Py_DECREF(is);
    return failed;
}

/* ------------------------------------------------------------------------------------------------- without elements */

int array_describe(array *out, const char *dtype, PyObject *shape, const char *op, const char *name) {
    *out = (array){ .dtype = trine_dtype_parse(dtype), .device_type = DL_CPU };
    if (out->dtype == TRINE_NONE) return bad_type(op, name, dtype);
    if (set_shapes(out, (int)PyTuple_Size(shape), op, name) != 0) return -1;
    int64_t count = 1;
    for (int i = out->rank - 1; i >= 0; i--) {
        out->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        out->stride[i] = count;
        count *= out->shape[i];
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* ----------------------------------------------------------------------------------------------------------- import */

static int refuse_gradient(PyObject *object, const char *op, const char *name) {
    PyObject *tracked = PyObject_GetAttr(object, name_requires_grad);
    const bool needed = tracked == Py_True;
    Py_XDECREF(tracked);
    if (tracked == NULL) return -1;
    if (!needed) return 0;
    static PyObject *recording; /* PyTorch's function that tells whether it records */
    if (recording == NULL) {
        PyObject *recorder = helper("recorder");
        recording = recorder != NULL ? PyObject_CallNoArgs(recorder) : NULL;
        Py_XDECREF(recorder);
    }
    PyObject *on = recording != NULL ? PyObject_CallNoArgs(recording) : NULL;
    Py_XDECREF(on);
    if (on == NULL) return -1;
    if (on != Py_True) return 0;
    PyErr_Format(argument_error,
                 "%s: %s requires grad, which this function does not record: call trine.torch.%s, or pass %s.detach()",
                 op, name, op, name);
    return -1;
}

int array_import(array *out, PyObject *object, const char *op, const char *name) {
    kind fresh;
    const kind *k = kind_of(object, &fresh);
    out->object = object;
    out->exchange = k->exchange;
    out->immutable = k->immutable;
    out->read_only = false;
    out->buffer.obj = NULL;
    out->capsule = NULL;
    if (k->tracks_gradients && refuse_gradient(object, op, name) != 0) return -1;
    if (k->exchange != NULL) {
        dl_tensor view;
        return k->exchange->view_of(object, &view) == 0 ? from_tensor(out, &view, op, name) : not_lent(op, name);
    }
    if (PyObject_CheckBuffer(object)) {
        if (PyObject_GetBuffer(object, &out->buffer, PyBUF_RECORDS_RO) == 0) return from_buffer(out, op, name);
        PyErr_Clear();
        out->buffer.obj = NULL;
    }
    if (PyObject_HasAttrString(object, "__array_interface__")) return from_interface(out, object, op, name);
    if (PyObject_HasAttrString(object, "__dlpack__")) return from_capsule(out, object, op, name);
    PyErr_Format(PyExc_TypeError,
                 "%s: %s must be an array (torch, NumPy, CuPy, JAX, or anything with DLPack or a buffer), not %R", op,
                 name, (PyObject *)Py_TYPE(object));
    return -1;
}

void array_release(array *a) {
    if (a->buffer.obj != NULL) PyBuffer_Release(&a->buffer);
    Py_CLEAR(a->capsule); /* whose destructor calls the deleter, since nothing has taken the tensor over */
}

/* ----------------------------------------------------------------------------------------------------- what is made */

static void set_error(void *context, const char *kind, const char *message) {
    (void)context;
    PyErr_Format(error_class, "%s: %s", kind, message);
}

static PyObject *exchange_empty(const array *like, trine_dtype dtype, int rank, const int64_t *shape) {
    dl_tensor prototype = { .device_type = like->device_type,
                            .device_id = like->device_id,
                            .rank = rank,
                            .code = (uint8_t)(dtype >> 8),
                            .bits = (uint8_t)(dtype & 0xff),
                            .lanes = 1,
                            .shape = (int64_t *)shape };
    dl_versioned *made;
    void *object = NULL;
    if (like->exchange->allocate(&prototype, &made, NULL, set_error) != 0) return NULL;
    return like->exchange->object_of(made, &object) == 0 ? object : NULL;
}

PyObject *array_empty(const array *like, trine_dtype dtype, int rank, const int64_t *shape) {
    if (like->exchange != NULL) return exchange_empty(like, dtype, rank, shape);
    PyObject *empty = helper("empty"), *made = NULL, *sizes = PyTuple_New(rank);
    for (int i = 0; sizes != NULL && i < rank; i++) PyTuple_SetItem(sizes, i, PyLong_FromLongLong(shape[i]));
    PyObject *type = PyUnicode_FromString(trine_dtype_name(dtype));
    if (empty != NULL && sizes != NULL && type != NULL)
        made = PyObject_CallFunctionObjArgs(empty, like->object, sizes, type, NULL);
    Py_XDECREF(empty);
    Py_XDECREF(sizes);
    Py_XDECREF(type);
    return made;
}

int array_stream(const array *a, void **stream_out) {
    *stream_out = NULL;
    if (a->device_type == DL_CPU) return 0;
    if (a->exchange != NULL) return a->exchange->stream(a->device_type, a->device_id, stream_out);
    PyObject *stream = helper("stream");
    PyObject *number = stream != NULL ? PyObject_CallFunctionObjArgs(stream, a->object, NULL) : NULL;
    Py_XDECREF(stream);
    if (number == NULL) return -1;
    *stream_out = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *array_result(const array *like, PyObject *made) {
    PyObject *wrap = like->immutable ? helper("wrap") : NULL;
    if (!like->immutable) return Py_NewRef(made);
    PyObject *result = wrap != NULL ? PyObject_CallFunctionObjArgs(wrap, like->object, made, NULL) : NULL;
    Py_XDECREF(wrap);
    return result;
}

trine_dtype dtype_of(PyObject *object, const char *op) {
    PyObject *named = helper("dtype_name");
    PyObject *name = named != NULL ? PyObject_CallFunctionObjArgs(named, object, NULL) : NULL;
    const char *text = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const trine_dtype dtype = text != NULL ? trine_dtype_parse(text) : TRINE_NONE;
    if (text != NULL && dtype == TRINE_NONE)
        PyErr_Format(argument_error, "%s: dtype is %R, which trine does not have", op, object);
    Py_XDECREF(named);
    Py_XDECREF(name);
    return dtype;
}

int arrays_init(void) {
    name_requires_grad = PyUnicode_InternFromString("requires_grad");
    return name_requires_grad != NULL ? 0 : -1;
}
