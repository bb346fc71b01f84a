/* SPDX-License-Identifier: Apache-2.0 */
/* A call of an op, as its table has it: arguments by place and by name, outputs made where they are not given.
 *
 * Shapes. Leading dimensions may be several where the op has one: x of "r n" may be b s n, and what has r in front is
 * then b s ... as well. A vector may stand alone, of no rows. That, and which sizes outputs have, is all that is worked
 * out here. Everything is checked by the library.
 *
 * One file, over 600 lines, since every step fills the same call, a type that no other file knows. */
#include <string.h>

#include <trine/group.h>

#include "binding.h"

typedef struct call {
    const table *t;
    PyObject *given[TABLE_FIELDS]; /* borrowed; NULL: not given, or None */
    PyObject *out, *dtype;
    PyObject *lent;                /* owned: what `given` is borrowed from, of a list; NULL: the caller's */
    PyObject *made[TABLE_TENSORS]; /* owned */
    bool present[TABLE_TENSORS], imported[TABLE_TENSORS];
    int64_t size[TABLE_SYMBOLS]; /* -1: not bound */
    trine_dtype type[TABLE_SYMBOLS];
    bool one[TABLE_SYMBOLS]; /* a tensor that is always there is 1 there, as what is broadcast is */
    /* the dimensions that stand for a symbol which is several, or none */
    const array *several[TABLE_SYMBOLS];
    int several_count[TABLE_SYMBOLS];
    const array *like; /* the first input */
    PyObject *comm;    /* borrowed; NULL: none */
    _Alignas(16) unsigned char args[TABLE_ARGS];
    /* set where a tensor is present */
    trine_tensor tensor[TABLE_TENSORS];
    array array[TABLE_TENSORS];
} call;

static PyObject *name_out, *name_dtype;
static PyObject *field_name[TRINE_OP_COUNT][TABLE_FIELDS]; /* interned */

/* -------------------------------------------------------------------------------------------------------- arguments */

static const char *name_of(const table *t, int field) {
    return field < t->tensors ? t->tensor[field].name : t->param[field - t->tensors].name;
}

static PyObject **keyword_place(call *c, PyObject *name) {
    const table *t = c->t;
    PyObject *const *known = field_name[t->op];
    const int fields = t->tensors + t->params;
    for (int f = 0; f < fields; f++)
        if (known[f] == name) return &c->given[f];
    if (name == name_out) return &c->out;
    if (name == name_dtype) return &c->dtype;
    for (int f = 0; f < fields; f++)
        if (PyUnicode_Compare(known[f], name) == 0) return &c->given[f];
    if (PyUnicode_Compare(name, name_out) == 0) return &c->out;
    if (PyUnicode_Compare(name, name_dtype) == 0) return &c->dtype;
    PyErr_Format(PyExc_TypeError, "%s() has no argument %R", t->name, name);
    return NULL;
}

static void drop_nones(call *c) {
    for (int f = 0; f < c->t->tensors + c->t->params; f++)
        if (c->given[f] == Py_None) c->given[f] = NULL;
    if (c->out == Py_None) c->out = NULL;
    if (c->dtype == Py_None) c->dtype = NULL;
}

static int parse(call *c, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const table *t = c->t;
    if (count > t->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d arguments by place, but %zd are given", t->name, t->positional,
                     count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) c->given[t->order[i]] = args[i];
    const Py_ssize_t keywords = names != NULL ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < keywords; i++) {
        PyObject *name = PyTuple_GetItem(names, i), **place = keyword_place(c, name);
        if (place == NULL) return -1;
        if (*place != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() has two values for %R", t->name, name);
            return -1;
        }
        *place = args[count + i];
    }
    drop_nones(c);
    return 0;
}

/* All by name. */
static int parse_dict(call *c, PyObject *arguments) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(arguments)) {
        PyErr_Format(PyExc_TypeError, "a call of %s in a list must be a dictionary of its arguments", c->t->name);
        return -1;
    }
    if ((c->lent = PyDict_Copy(arguments)) == NULL) return -1;
    while (PyDict_Next(c->lent, &at, &name, &value)) {
        PyObject **place = NULL;
        if (PyUnicode_Check(name))
            place = keyword_place(c, name);
        else
            PyErr_Format(PyExc_TypeError, "%s() has no argument %R", c->t->name, name);
        if (place == NULL) return -1;
        *place = value;
    }
    drop_nones(c);
    return 0;
}

/* `out` is the required outputs, one alone or several in a tuple. */
static int spread_out(call *c) {
    const table *t = c->t;
    if (c->out == NULL) return 0;
    int outputs = 0, next = 0;
    for (int i = 0; i < t->tensors; i++) outputs += (t->tensor[i].flags & (IN | OUT | OPTIONAL)) == OUT;
    const bool several = PyTuple_Check(c->out);
    if (outputs == 0 || (several ? PyTuple_Size(c->out) : 1) != outputs) {
        PyErr_Format(PyExc_TypeError,
                     outputs == 1  ? "%s(): out must be an array"
                     : outputs > 1 ? "%s(): out must be a tuple of %d arrays"
                                   : "%s() has no output that must be given: name those wanted",
                     t->name, outputs);
        return -1;
    }
    for (int i = 0; i < t->tensors; i++) {
        if ((t->tensor[i].flags & (IN | OUT | OPTIONAL)) != OUT) continue;
        if (c->given[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() has out and %s", t->name, t->tensor[i].name);
            return -1;
        }
        c->given[i] = several ? PyTuple_GetItem(c->out, next++) : c->out;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static void bind(call *c, int i) {
    const table_tensor *tt = &c->t->tensor[i];
    const trine_tensor *t = &c->tensor[i];
    if (tt->variable >= 0 && c->type[tt->variable] == TRINE_NONE) c->type[tt->variable] = t->dtype;
    for (int d = 0; d < t->rank && d < tt->rank; d++) {
        const table_dim *dim = &tt->dim[tt->rank - 1 - d];
        const int64_t size = t->shape[t->rank - 1 - d];
        if (dim->symbol >= 0 && size == 1 && tt->flags & BROADCAST && !(tt->flags & OPTIONAL))
            c->one[dim->symbol] = true;
        if (dim->symbol < 0 || c->size[dim->symbol] >= 0 || (size == 1 && tt->flags & BROADCAST)) continue;
        c->size[dim->symbol] = size - dim->add;
    }
}

/* What has been imported, as the op has it. */
static int place_tensor(call *c, int i) {
    const array *a = &c->array[i];
    const view v = { a->data, a->dtype, a->rank, a->shape, a->stride };
    several s;
    failure why;
    c->present[i] = true;
    if (shape_tensor(c->t, i, &v, &c->tensor[i], &s, &why) != 0) {
        raise_failure(&why);
        return -1;
    }
    if (s.symbol >= 0 && c->several[s.symbol] == NULL) c->several[s.symbol] = a, c->several_count[s.symbol] = s.count;
    bind(c, i);
    return 0;
}

static int take_tensor(call *c, int i, PyObject *object) {
    const table_tensor *tt = &c->t->tensor[i];
    array *a = &c->array[i];
    const int failed = array_import(a, object, c->t->name, tt->name);
    c->imported[i] = true;
    if (failed != 0) return -1;
    if (tt->flags & OUT && a->read_only) {
        PyErr_Format(argument_error, "%s: %s is written, but its memory is read-only", c->t->name, tt->name);
        return -1;
    }
    if (c->like == NULL) c->like = a;
    if (a->device_type != c->like->device_type || a->device_id != c->like->device_id) {
        PyErr_Format(argument_error, "%s: %s is on device %d:%d, but the first tensor on %d:%d (DLPack's type: number)",
                     c->t->name, tt->name, (int)a->device_type, (int)a->device_id, (int)c->like->device_type,
                     (int)c->like->device_id);
        return -1;
    }
    return place_tensor(c, i);
}

/* Inputs, then the outputs that are given. */
static int take_tensors(call *c) {
    const table *t = c->t;
    for (int i = 0; i < t->tensors; i++) {
        if (!(t->tensor[i].flags & IN)) continue;
        if (c->given[i] == NULL && !(t->tensor[i].flags & OPTIONAL)) {
            PyErr_Format(PyExc_TypeError, "%s() needs %s", t->name, t->tensor[i].name);
            return -1;
        }
        if (c->given[i] != NULL && take_tensor(c, i, c->given[i]) != 0) return -1;
    }
    for (int i = 0; i < t->tensors; i++) {
        PyObject *given = c->given[i];
        if (t->tensor[i].flags & IN || given == NULL || PyBool_Check(given)) continue;
        if (take_tensor(c, i, given) != 0) return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------- outputs */

static bool row_agrees(const call *c, const trine_dtype *row) {
    for (int v = 0; v < c->t->variables; v++)
        if (c->type[v] != TRINE_NONE && c->type[v] != row[v]) return false;
    return true;
}

/* An open type variable: `wanted` if a row of the table has it beside what is bound, else that of the first that fits.
 * Where none fits, the library will say so. */
static void choose_type(call *c, int variable, trine_dtype wanted) {
    const trine_dtype *first = NULL;
    for (const trine_dtype *row = c->t->types; *row != TRINE_NONE; row += c->t->variables) {
        if (!row_agrees(c, row)) continue;
        if (first == NULL) first = row;
        if (row[variable] == wanted) first = row;
        if (row[variable] == wanted) break;
    }
    c->type[variable] = first != NULL ? first[variable] : wanted;
}

/* The type variable of output i, if it is asked for; -1: none. */
static int made_variable(const call *c, int i) {
    const table_tensor *tt = &c->t->tensor[i];
    return tt->flags & OUT && (!(tt->flags & OPTIONAL) || c->given[i] != NULL) ? tt->variable : -1;
}

/* May an open type variable be `dtype`? */
static bool takes(const call *c, int variable, trine_dtype dtype) {
    if (variable < 0 || c->type[variable] != TRINE_NONE) return false;
    for (const trine_dtype *row = c->t->types; *row != TRINE_NONE; row += c->t->variables)
        if (row[variable] == dtype) return true;
    return false;
}

/* Of several open variables those take the type that is asked for which may be of it. */
static int choose_types(call *c) {
    trine_dtype wanted = c->like->dtype;
    if (c->dtype != NULL && (wanted = dtype_of(c->dtype, c->t->name)) == TRINE_NONE) return -1;
    bool used = false, taken = false;
    for (int i = 0; i < c->t->tensors; i++) taken |= takes(c, made_variable(c, i), wanted);
    for (int i = 0; i < c->t->tensors; i++) {
        const int variable = made_variable(c, i);
        if (variable < 0) continue;
        used |= c->type[variable] == wanted;
        if (c->type[variable] != TRINE_NONE) continue;
        if (c->dtype != NULL && (!taken || takes(c, variable, wanted)))
            c->type[variable] = wanted;
        else
            choose_type(c, variable, c->dtype != NULL ? c->like->dtype : wanted);
        used = true;
    }
    if (c->dtype == NULL || used) return 0;
    PyErr_Format(PyExc_TypeError, "%s(): dtype is %s, but the inputs decide the types of its outputs", c->t->name,
                 trine_dtype_name(wanted));
    return -1;
}

/* Sizes that no tensor has: of what stands in front and may be missing, as the batch of a product. */
static void derive_sizes(call *c) {
    for (int s = 0; s < c->t->symbols; s++)
        for (int k = 0; k < 2 && c->t->like[s][k] >= 0; k++) {
            const int from = c->t->like[s][k];
            if (c->size[from] < 0 || (c->size[s] >= 0 && (c->size[s] != 1 || c->size[from] == 1))) continue;
            c->size[s] = c->size[from];
            c->several[s] = c->several[from], c->several_count[s] = c->several_count[from];
        }
}

/* And those that only outputs have, where they are told. */
static int tell_sizes(call *c) {
    const table *t = c->t;
    for (int i = 0; i < t->params; i++) {
        PyObject *value = c->given[t->tensors + i];
        if (t->param[i].kind != KIND_SIZE || value == NULL) continue;
        const int64_t size = PyLong_AsLongLong(value);
        if (size == -1 && PyErr_Occurred()) return -1;
        if (size < 0) {
            PyErr_Format(argument_error, "%s: %s is %lld, but must be at least 0", t->name, t->param[i].name,
                         (long long)size);
            return -1;
        }
        c->size[t->param[i].offset] = size;
    }
    return 0;
}

static int make_output(call *c, int i) {
    const table_tensor *tt = &c->t->tensor[i];
    int64_t shape[TRINE_MAX_RANK + ARRAY_RANK];
    int rank = 0;
    for (int d = 0; d < tt->rank; d++) {
        const table_dim *dim = &tt->dim[d];
        if (dim->symbol < 0) {
            shape[rank++] = dim->by > 0 ? (c->size[dim->of] + dim->add) / dim->by : dim->add;
            continue;
        }
        const int64_t size = c->size[dim->symbol];
        if (size < 0 && dim->optional && rank == 0 && !c->one[dim->symbol]) continue;
        const array *several = dim->add == 0 ? c->several[dim->symbol] : NULL;
        for (int k = 0; several != NULL && k < c->several_count[dim->symbol]; k++) shape[rank++] = several->shape[k];
        /* where no tensor says how many there are: one, or none beside those that are always there */
        if (several == NULL) shape[rank++] = (size < 0 ? dim->add <= 0 : size) + dim->add;
    }
    const trine_dtype dtype = tt->variable >= 0 ? c->type[tt->variable] : tt->dtype;
    if ((c->made[i] = array_empty(c->like, dtype, rank, shape)) == NULL) return -1;
    return take_tensor(c, i, c->made[i]);
}

static int make_outputs(call *c) {
    for (int i = 0; i < c->t->tensors; i++) {
        const uint8_t flags = c->t->tensor[i].flags;
        PyObject *given = c->given[i];
        if (flags & IN || given == Py_False || (given != NULL && given != Py_True)) continue;
        if ((given == Py_True || !(flags & OPTIONAL)) && make_output(c, i) != 0) return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------- parameters */

static int enum_value(const table *t, const table_param *p, PyObject *value, int32_t *out) {
    if (PyUnicode_Check(value)) {
        for (int i = 0; p->names[i] != NULL; i++)
            if (PyUnicode_CompareWithASCIIString(value, p->names[i]) == 0) {
                *out = i;
                return 0;
            }
        char names[256] = "";
        for (int i = 0; p->names[i] != NULL; i++) {
            const size_t used = strlen(names);
            PyOS_snprintf(names + used, sizeof names - used, i == 0 ? "%s" : ", %s", p->names[i]);
        }
        PyErr_Format(argument_error, "%s: %s is %R, not one of %s", t->name, p->name, value, names);
        return -1;
    }
    const long number = PyLong_AsLong(value);
    *out = (int32_t)number;
    return number == -1 && PyErr_Occurred() ? -1 : 0;
}

static int set_param(call *c, const table_param *p, PyObject *value) {
    void *to = c->args + p->offset;
    int32_t i32 = 0;
    if (p->kind == KIND_SIZE) return 0;
    if (p->kind == KIND_F32) {
        const double number = PyFloat_AsDouble(value);
        if (number == -1 && PyErr_Occurred()) return -1;
        const float f32 = number == 0 && p->zero_is_fallback ? -0.0f : (float)number;
        memcpy(to, &f32, sizeof f32);
    } else if (p->kind == KIND_I64) {
        const int64_t i64 = PyLong_AsLongLong(value);
        if (i64 == -1 && PyErr_Occurred()) return -1;
        memcpy(to, &i64, sizeof i64);
    } else if (p->kind == KIND_TEXT) {
        Py_ssize_t length; /* the text is the object's, which the caller holds */
        const char *text = PyUnicode_AsUTF8AndSize(value, &length);
        if (text == NULL) return -1;
        if (strlen(text) != (size_t)length) {
            PyErr_Format(argument_error, "%s: %s has a character of code 0", c->t->name, p->name);
            return -1;
        }
        memcpy(to, &text, sizeof text);
    } else if (p->kind == KIND_COMM) {
        const trine_comm *comm = comm_of(value);
        if (comm == NULL) return -1;
        memcpy(to, &comm, sizeof comm);
    } else if (p->kind == KIND_U64) {
        const uint64_t u64 = PyLong_AsUnsignedLongLong(value);
        if (u64 == (uint64_t)-1 && PyErr_Occurred()) return -1;
        memcpy(to, &u64, sizeof u64);
    } else {
        if (p->kind == KIND_BOOL)
            i32 = PyObject_IsTrue(value);
        else if (enum_value(c->t, p, value, &i32) != 0)
            return -1;
        if (i32 == -1 && PyErr_Occurred()) return -1;
        memcpy(to, &i32, sizeof i32);
    }
    const int32_t set = 1;
    if (p->set_offset != 0) memcpy(c->args + p->set_offset, &set, sizeof set);
    return 0;
}

static int set_params(call *c) {
    const table *t = c->t;
    for (int i = 0; i < t->params; i++) {
        PyObject *value = c->given[t->tensors + i];
        if (value != NULL && set_param(c, &t->param[i], value) != 0) {
            if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_OverflowError))
                PyErr_Format(PyErr_ExceptionMatches(PyExc_TypeError) ? PyExc_TypeError : argument_error,
                             "%s: %s cannot be %R", t->name, t->param[i].name, value);
            return -1;
        }
        if (value == NULL && t->param[i].required) {
            PyErr_Format(PyExc_TypeError, "%s() needs %s", t->name, t->param[i].name);
            return -1;
        }
        if (value == NULL && t->param[i].explicit != 0)
            memcpy(c->args + t->param[i].offset, &t->param[i].explicit, sizeof t->param[i].explicit);
    }
    return 0;
}

/* --------------------------------------------------------------------------------------------------------- the call */

static int set_args(call *c) {
    const table *t = c->t;
    const size_t size = t->args_size;
    memcpy(c->args, &size, sizeof size);
    if (set_params(c) != 0) return -1;
    for (int i = 0; i < t->tensors; i++) {
        const trine_tensor *tensor = &c->tensor[i];
        if (c->present[i]) memcpy(c->args + t->tensor[i].offset, &tensor, sizeof tensor);
    }
    return 0;
}

static void begin(call *c, const table *t) {
    memset(c, 0, offsetof(call, tensor));
    c->t = t;
    for (int s = 0; s < TABLE_SYMBOLS; s++) c->size[s] = -1;
}

/* With a communicator tensors are this rank's, and it says how many ranks there are. */
static int take_comm(call *c) {
    const table *t = c->t;
    for (int i = 0; i < t->params && t->own != NULL; i++) {
        if (t->param[i].kind != KIND_COMM || (c->comm = c->given[t->tensors + i]) == NULL) continue;
        const trine_comm *comm = comm_of(c->comm);
        if (comm == NULL) return -1;
        c->t = t->own;
        for (int s = 0; s < t->symbols; s++)
            if (strcmp(t->symbol[s], "ranks") == 0) c->size[s] = trine_comm_ranks(comm);
    }
    return 0;
}

/* Of what has been parsed. */
static int prepare(call *c) {
    if (take_comm(c) != 0 || spread_out(c) != 0 || take_tensors(c) != 0) return -1;
    derive_sizes(c);
    if (tell_sizes(c) != 0 || choose_types(c) != 0 || make_outputs(c) != 0) return -1;
    return set_args(c);
}

/* A call, or those of a list. */
typedef struct work {
    call *first;
    const void *const *list; /* NULL: the first alone */
    int64_t count;
} work;

static trine_status workspace_of(const work *w, trine_queue *queue, size_t *bytes_out) {
    const trine_op op = w->first->t->op;
    return w->list != NULL ? trine_workspace_list(queue, op, w->list, w->count, bytes_out)
                           : trine_workspace(queue, op, w->first->args, bytes_out);
}

/* On a device the workspace comes from the allocator of the caller's library, so that its graphs hold it. */
static trine_status run(const work *w, trine_queue *queue, int device, PyObject **workspace_out) {
    const call *c = w->first;
    size_t bytes = 0;
    trine_status status = TRINE_OK;
    const bool lend = device != 0 && c->like->exchange != NULL;
    if (lend && (status = workspace_of(w, queue, &bytes)) == TRINE_OK && bytes > 0) {
        const int64_t size = (int64_t)bytes;
        array memory;
        if ((*workspace_out = array_empty(c->like, TRINE_U8, 1, &size)) == NULL) return TRINE_ERR_MEMORY;
        if (array_import(&memory, *workspace_out, c->t->name, "workspace") != 0) return TRINE_ERR_MEMORY;
        status = trine_queue_set_workspace(queue, memory.data, bytes);
    }
    if (status != TRINE_OK) return status;
    Py_BEGIN_ALLOW_THREADS status =
        w->list != NULL ? trine_run_list(queue, c->t->op, w->list, w->count) : trine_run(queue, c->t->op, c->args);
    Py_END_ALLOW_THREADS if (bytes > 0) trine_queue_set_workspace(queue, NULL, 0);
    return status;
}

static PyObject *results(call *c) {
    PyObject *result[TABLE_TENSORS], *all = NULL;
    int count = 0;
    bool good = true;
    for (int i = 0; i < c->t->tensors && good; i++) {
        if (!c->present[i] || c->t->tensor[i].flags & IN) continue;
        result[count] = c->made[i] != NULL ? array_result(c->like, c->made[i]) : Py_NewRef(c->given[i]);
        good = result[count++] != NULL;
    }
    if (good && count == 0) return Py_NewRef(Py_None);
    if (good && count == 1) return result[0];
    if (good) all = PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        if (all != NULL)
            PyTuple_SetItem(all, i, result[i]);
        else
            Py_XDECREF(result[i]);
    }
    return all;
}

static int device_of(const call *c) {
    failure why;
    const int device = device_number(c->like->device_type, c->like->device_id, c->t->name, "the first tensor", &why);
    if (device < 0) raise_failure(&why);
    return device;
}

/* On the stream that the library of the first tensor works on. */
static int execute(const work *w) {
    const int device = device_of(w->first);
    void *stream;
    PyObject *workspace = NULL;
    if (device < 0 || array_stream(w->first->like, &stream) != 0 || comm_begin(w->first->comm) != 0) return -1;
    lane *l = lane_take_python(device, stream);
    const trine_status status = l != NULL ? run(w, l->queue, device, &workspace) : TRINE_OK;
    comm_end(w->first->comm);
    if (l == NULL) return -1;
    lane_give(l);
    Py_XDECREF(workspace);
    if (PyErr_Occurred()) return -1;
    if (status != TRINE_OK) raise_status(status);
    return status == TRINE_OK ? 0 : -1;
}

static PyObject *execute_one(call *c) { return execute(&(work){ .first = c }) == 0 ? results(c) : NULL; }

static void release(call *c) {
    for (int i = 0; i < c->t->tensors; i++) {
        if (c->imported[i]) array_release(&c->array[i]);
        Py_XDECREF(c->made[i]);
    }
    Py_XDECREF(c->lent);
}

static PyObject *explain(call *c) {
    const int device = device_of(c);
    static trine_explanation why; /* under the GIL */
    lane *l = device >= 0 ? lane_take_python(device, NULL) : NULL;
    if (l == NULL) return NULL;
    const trine_status status = trine_explain(l->queue, c->t->op, c->args, &why);
    lane_give(l);
    if (status != TRINE_OK) return raise_status(status);
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < why.count; i++) {
        const trine_candidate *k = &why.candidate[i];
        PyObject *one =
            Py_BuildValue("{s:s,s:N,s:z,s:d,s:L}", "kernel", k->kernel, "chosen", PyBool_FromLong(i == why.chosen),
                          "refused", k->refused, "seconds", k->seconds, "workspace", (long long)k->workspace);
        if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

typedef PyObject *(*action)(call *c);

static PyObject *with_call(const table *t, PyObject *const *args, Py_ssize_t count, PyObject *names, action act) {
    call c;
    begin(&c, t);
    PyObject *result = parse(&c, args, count, names) == 0 && prepare(&c) == 0 ? act(&c) : NULL;
    release(&c);
    return result;
}

PyObject *op_call(const table *t, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return with_call(t, args, count, names, execute_one);
}

PyObject *op_explain(const table *t, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return with_call(t, args, count, names, explain);
}

/* ----------------------------------------------------------------------------------------------------------- a list */

/* Prepares the calls one after the other; *begun counts those that are to be released. */
static int prepare_list(const table *t, PyObject *calls, call *c, const void **list, Py_ssize_t *begun) {
    const Py_ssize_t count = PyTuple_Size(calls);
    for (Py_ssize_t i = 0; i < count; i++) {
        begin(&c[i], t);
        *begun = i + 1;
        if (parse_dict(&c[i], PyTuple_GetItem(calls, i)) != 0 || prepare(&c[i]) != 0) return -1;
        list[i] = c[i].args;
        if (c[i].like->device_type == c->like->device_type && c[i].like->device_id == c->like->device_id) continue;
        PyErr_Format(argument_error,
                     "%s: call %zd of the list is on device %d:%d, but call 0 on %d:%d (DLPack's type: number)",
                     t->name, i, (int)c[i].like->device_type, (int)c[i].like->device_id, (int)c->like->device_type,
                     (int)c->like->device_id);
        return -1;
    }
    return 0;
}

static PyObject *list_results(call *c, Py_ssize_t count) {
    PyObject *all = PyList_New(count);
    for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
        PyObject *one = results(&c[i]);
        if (one != NULL)
            PyList_SetItem(all, i, one);
        else
            Py_CLEAR(all);
    }
    return all;
}

PyObject *op_run_list(const table *t, PyObject *calls) {
    calls = PySequence_Tuple(calls);
    if (calls == NULL) return NULL;
    const Py_ssize_t count = PyTuple_Size(calls);
    Py_ssize_t begun = 0;
    call *c = PyMem_Malloc((size_t)count * sizeof *c);
    const void **list = PyMem_Malloc((size_t)count * sizeof *list);
    PyObject *all = NULL;
    if (c == NULL || list == NULL)
        PyErr_NoMemory();
    else if (prepare_list(t, calls, c, list, &begun) == 0 &&
             (count == 0 || execute(&(work){ .first = c, .list = list, .count = count }) == 0))
        all = list_results(c, count);
    for (Py_ssize_t i = 0; i < begun; i++) release(&c[i]);
    PyMem_Free(c);
    PyMem_Free(list);
    Py_DECREF(calls);
    return all;
}

/* --------------------------------------------------------------------------------------------------------- for XLA */

/* (name, dtype, shape), of row-major elements that are not there yet. */
static int described_tensor(call *c, PyObject *description, uint32_t *mask) {
    const char *name, *dtype;
    PyObject *shape;
    if (!PyArg_ParseTuple(description, "ssO!", &name, &dtype, &PyTuple_Type, &shape)) return -1;
    int i = 0;
    while (i < c->t->tensors && strcmp(c->t->tensor[i].name, name) != 0) i++;
    if (i == c->t->tensors) {
        PyErr_Format(PyExc_TypeError, "%s() has no tensor '%s'", c->t->name, name);
        return -1;
    }
    if (array_describe(&c->array[i], dtype, shape, c->t->name, name) != 0) return -1;
    *mask |= 1u << i;
    if (c->like == NULL) c->like = &c->array[i];
    return c->present[i] ? 0 : place_tensor(c, i);
}

static int describe(call *c, PyObject *operands, PyObject *results, packed *out) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(operands); i++)
        if (described_tensor(c, PyTuple_GetItem(operands, i), &out->operands) != 0) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(results); i++)
        if (described_tensor(c, PyTuple_GetItem(results, i), &out->results) != 0) return -1;
    for (int i = 0; i < c->t->tensors; i++) {
        if (c->present[i] || c->t->tensor[i].flags & OPTIONAL) continue;
        PyErr_Format(PyExc_TypeError, "%s() needs %s", c->t->name, c->t->tensor[i].name);
        return -1;
    }
    return set_args(c);
}

/* A device may have a kernel that the CPU lacks: what the CPU does not support is no mistake here. */
static int check(const call *c) {
    size_t bytes;
    lane *l = lane_take_python(0, NULL);
    if (l == NULL) return -1;
    const trine_status status = trine_workspace(l->queue, c->t->op, c->args, &bytes);
    lane_give(l);
    if (status == TRINE_OK || status == TRINE_ERR_UNSUPPORTED) return 0;
    raise_status(status);
    return -1;
}

PyObject *op_pack(const table *t, PyObject *operands, PyObject *results, PyObject *const *values, PyObject *names) {
    enum { TEXTS = 4096 };
    call c;
    struct {
        packed head;
        unsigned char rest[sizeof c.args + TEXTS];
    } out = { .head = { .stamp = t->stamp, .op = (int32_t)t->op } };
    begin(&c, t);
    if (parse(&c, values, 0, names) != 0 || describe(&c, operands, results, &out.head) != 0 || check(&c) != 0)
        return NULL;
    size_t size = t->args_size;
    memcpy(out.rest, c.args, size);
    for (int i = 0; i < t->tensors; i++) memset(out.rest + t->tensor[i].offset, 0, sizeof(void *));
    for (int i = 0; i < t->params; i++) {
        const char *text;
        if (t->param[i].kind != KIND_TEXT) continue;
        memcpy(&text, c.args + t->param[i].offset, sizeof text);
        if (text == NULL) continue;
        const size_t length = strlen(text) + 1, at = sizeof out.head + size;
        if (size + length > sizeof out.rest) {
            PyErr_Format(argument_error, "%s: %s is too long", t->name, t->param[i].name);
            return NULL;
        }
        memcpy(out.rest + size, text, length);
        memcpy(out.rest + t->param[i].offset, &at, sizeof at);
        size += length;
    }
    return PyBytes_FromStringAndSize((const char *)&out, (Py_ssize_t)(sizeof out.head + size));
}

int calls_init(void) {
    name_out = PyUnicode_InternFromString("out");
    name_dtype = PyUnicode_InternFromString("dtype");
    if (name_out == NULL || name_dtype == NULL) return -1;
    for (int i = 0; i < op_count; i++)
        for (int f = 0; f < op_tables[i]->tensors + op_tables[i]->params; f++)
            if ((field_name[op_tables[i]->op][f] = PyUnicode_InternFromString(name_of(op_tables[i], f))) == NULL)
                return -1;
    return 0;
}
