/* SPDX-License-Identifier: Apache-2.0 */
/* How the generated tables become functions of the module. */
#ifndef BINDING_FUNCTIONS_H
#define BINDING_FUNCTIONS_H

#include "binding.h"

#define CALL(name) \
    static PyObject *call_##name(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names) { \
        (void)module; \
        return op_call(&name##_table, args, count, names); \
    }
#define METHOD(name, doc) { #name, (PyCFunction)(void (*)(void))call_##name, METH_FASTCALL | METH_KEYWORDS, doc }

extern PyMethodDef op_methods[];

#endif
