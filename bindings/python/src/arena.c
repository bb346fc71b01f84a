/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of memory that buffers share. */
#include <stdlib.h>

#include "binding.h"

static bool read_one(PyObject *item, trine_lifetime *out) {
    long long bytes, first, last;
    PyObject *tuple = PySequence_Tuple(item);
    const bool good =
        tuple != NULL && PyArg_ParseTuple(tuple, "LLL;a lifetime is (bytes, first, last)", &bytes, &first, &last);
    Py_XDECREF(tuple);
    if (good) *out = (trine_lifetime){ bytes, first, last };
    return good;
}

static PyObject *result(const int64_t *offset, Py_ssize_t count, const trine_arena_report *r) {
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *one = PyLong_FromLongLong(offset[i]);
        if (one == NULL || PyList_SetItem(list, i, one) != 0) Py_CLEAR(list);
    }
    if (list == NULL) return NULL;
    return Py_BuildValue("N{s:L,s:L,s:L,s:L,s:N}", list, "bytes", (long long)r->bytes, "live", (long long)r->live,
                         "step", (long long)r->step, "separate", (long long)r->separate, "smallest",
                         PyBool_FromLong(r->smallest));
}

PyObject *py_arena_plan(PyObject *self, PyObject *args, PyObject *names) {
    static char *words[] = { "lifetimes", "alignment", NULL };
    (void)self;
    PyObject *given, *list, *found = NULL;
    long long alignment = 256;
    trine_arena_report report;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|L:arena_plan", words, &given, &alignment)) return NULL;
    if ((list = PySequence_List(given)) == NULL) return NULL;
    const Py_ssize_t count = PyList_Size(list);
    trine_lifetime *buffer = calloc((size_t)count + 1, sizeof *buffer);
    int64_t *offset = calloc((size_t)count + 1, sizeof *offset);
    bool good = buffer != NULL && offset != NULL;
    if (!good) PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++) good = read_one(PyList_GetItem(list, i), &buffer[i]);
    if (good) {
        const trine_status status = trine_arena_plan(buffer, count, alignment, offset, &report);
        found = status == TRINE_OK ? result(offset, count, &report) : raise_status(status);
    }
    Py_DECREF(list);
    free(buffer);
    free(offset);
    return found;
}
