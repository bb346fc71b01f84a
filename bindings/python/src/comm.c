/* SPDX-License-Identifier: Apache-2.0 */
/* trine.Comm: a rank's part in a group. */
#include <stdlib.h>
#include <string.h>

#include <trine/group.h>

#include "binding.h"

typedef struct comm {
    PyObject ob_base;
    trine_comm *comm; /* NULL: closed */
    lane *lane;       /* that it was opened with, until it is closed */
    bool busy;        /* a call has it */
} comm;

static PyObject *comm_type;

/* What the bootstrap is given: it is called without the GIL. */
typedef struct gathering {
    PyObject *function;
    Py_ssize_t ranks;
} gathering;

/* Each rank's bytes, of a sequence with as many. */
static int copy_all(PyObject *all, const gathering *g, char *to, size_t bytes) {
    if (!PySequence_Check(all) || PySequence_Size(all) != g->ranks) {
        PyErr_Format(PyExc_TypeError, "Comm(): all_gather must return a sequence of what each of %zd ranks gave",
                     g->ranks);
        return -1;
    }
    for (Py_ssize_t r = 0; r < g->ranks; r++) {
        PyObject *one = PySequence_GetItem(all, r);
        Py_buffer buffer;
        if (one == NULL || PyObject_GetBuffer(one, &buffer, PyBUF_SIMPLE) != 0) {
            Py_XDECREF(one);
            return -1;
        }
        const bool fits = (size_t)buffer.len == bytes;
        if (fits) memcpy(to + (size_t)r * bytes, buffer.buf, bytes);
        PyBuffer_Release(&buffer);
        Py_DECREF(one);
        if (fits) continue;
        PyErr_Format(PyExc_ValueError, "Comm(): all_gather returned other bytes than rank %zd gave", r);
        return -1;
    }
    return 0;
}

static int all_gather(void *context, const void *mine, void *all, size_t bytes) {
    const gathering *g = context;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *given = PyBytes_FromStringAndSize(mine, (Py_ssize_t)bytes);
    PyObject *returned = given != NULL ? PyObject_CallFunctionObjArgs(g->function, given, NULL) : NULL;
    const int failed = returned == NULL ? -1 : copy_all(returned, g, all, bytes);
    Py_XDECREF(given);
    Py_XDECREF(returned);
    PyGILState_Release(state);
    return failed;
}

static int close_comm(comm *c) {
    if (c->busy) {
        PyErr_SetString(argument_error, "a communicator that a call of another thread has cannot be closed");
        return -1;
    }
    trine_comm_close(c->comm);
    if (c->lane != NULL) lane_give(c->lane);
    c->comm = NULL;
    c->lane = NULL;
    return 0;
}

static PyObject *new_comm(PyTypeObject *type, PyObject *args, PyObject *names) {
    static char *known[] = { "rank", "ranks", "all_gather", "device", "timeout", "staging_bytes", NULL };
    int rank, ranks, device = 0;
    PyObject *function;
    const char *device_name = "cpu";
    trine_comm_options options = { .struct_size = sizeof options };
    Py_ssize_t staging = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "iiO|$sdn", known, &rank, &ranks, &function, &device_name,
                                     &options.timeout, &staging))
        return NULL;
    if (staging < 0) return PyErr_Format(argument_error, "Comm(): staging_bytes is %zd", staging);
    options.staging_bytes = (size_t)staging;
    failure why;
    if ((device = device_named(device_name, &why)) < 0) return raise_failure(&why);
    const allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    comm *c = (comm *)(void *)allocate(type, 0);
    if (c == NULL) return NULL;
    gathering g = { .function = function, .ranks = ranks };
    const trine_bootstrap bootstrap = { all_gather, &g };
    trine_status status = TRINE_OK;
    if ((c->lane = lane_take_python(device, NULL)) != NULL) {
        Py_BEGIN_ALLOW_THREADS status = trine_comm_open(c->lane->queue, rank, ranks, &bootstrap, &options, &c->comm);
        Py_END_ALLOW_THREADS if (status != TRINE_OK && !PyErr_Occurred()) raise_status(status);
    }
    if (c->comm != NULL) return (PyObject *)(void *)c;
    Py_DECREF((PyObject *)(void *)c);
    return NULL;
}

static void free_comm(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    close_comm((comm *)(void *)self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *py_close(PyObject *self, PyObject *unused) {
    (void)unused;
    return close_comm((comm *)(void *)self) == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_abort(PyObject *self, PyObject *unused) {
    (void)unused;
    const comm *c = (comm *)(void *)self;
    if (c->comm != NULL) trine_comm_abort(c->comm);
    return Py_NewRef(Py_None);
}

static PyObject *py_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *py_exit(PyObject *self, PyObject *args) { return py_close(self, args); }

static PyObject *get_rank(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(trine_comm_rank(((comm *)(void *)self)->comm));
}

static PyObject *get_ranks(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(trine_comm_ranks(((comm *)(void *)self)->comm));
}

trine_comm *comm_of(PyObject *object) {
    const int is = PyObject_IsInstance(object, comm_type);
    if (is < 0) return NULL;
    trine_comm *found = is ? ((comm *)(void *)object)->comm : NULL;
    if (found == NULL)
        PyErr_SetString(is ? argument_error : PyExc_TypeError,
                        is ? "comm is closed" : "comm must be a trine.Comm, or None");
    return found;
}

int comm_begin(PyObject *object) {
    comm *c = (comm *)(void *)object;
    if (c == NULL || !c->busy) {
        if (c != NULL) c->busy = true;
        return 0;
    }
    PyErr_SetString(argument_error, "a communicator serves one thread at a time, and a call of another one has it");
    return -1;
}

void comm_end(PyObject *object) {
    if (object != NULL) ((comm *)(void *)object)->busy = false;
}

static PyMethodDef methods[] = {
    { "close", py_close, METH_NOARGS,
      "close($self)\n--\n\nCloses this rank's part. Others that wait for it raise CommError." },
    { "abort", py_abort, METH_NOARGS,
      "abort($self)\n--\n\nBreaks the group, from any thread: what waits in a call of any rank raises CommError." },
    { "__enter__", py_enter, METH_NOARGS, NULL },
    { "__exit__", py_exit, METH_VARARGS, NULL },
    { 0 },
};

static PyGetSetDef members[] = {
    { "rank", get_rank, NULL, "This rank's number, -1 if closed.", NULL },
    { "ranks", get_ranks, NULL, "How many ranks there are, -1 if closed.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_new, (void *)new_comm },
    { Py_tp_dealloc, (void *)free_comm },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { 0, NULL },
};

static PyType_Spec type_spec = { .name = "trine._trine.Comm",
                                 .basicsize = sizeof(comm),
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                 .slots = slots };

int comm_init(PyObject *module) {
    comm_type = PyType_FromSpec(&type_spec);
    return comm_type != NULL ? PyModule_AddObjectRef(module, "_Comm", comm_type) : -1;
}
