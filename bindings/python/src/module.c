/* SPDX-License-Identifier: Apache-2.0 */
/* The module trine._trine. */
#include <string.h>

#include "functions.h"

static const table *find_op(const char *name) {
    for (int i = 0; i < op_count; i++)
        if (strcmp(op_tables[i]->name, name) == 0) return op_tables[i];
    return NULL;
}

/* The op that the first argument names. */
static const table *named_op(const char *function, PyObject *const *args, Py_ssize_t count) {
    const char *op = count > 0 ? PyUnicode_AsUTF8AndSize(args[0], NULL) : NULL;
    if (op == NULL) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "%s() needs the name of an op", function);
        return NULL;
    }
    const table *t = find_op(op);
    if (t == NULL) PyErr_Format(argument_error, "%s: there is no op \"%s\"", function, op);
    return t;
}

static PyObject *py_explain(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)module;
    const table *t = named_op("explain", args, count);
    return t != NULL ? op_explain(t, args + 1, count - 1, names) : NULL;
}

static PyObject *py_run_list(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    const table *t = named_op("run_list", args, count);
    if (t != NULL && count == 2) return op_run_list(t, args[1]);
    if (t != NULL) PyErr_SetString(PyExc_TypeError, "run_list() needs the name of an op and a list of calls");
    return NULL;
}

static PyObject *py_xla_pack(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)module;
    const char *name = count == 3 ? PyUnicode_AsUTF8AndSize(args[0], NULL) : NULL;
    const table *t = name != NULL ? find_op(name) : NULL;
    if (t != NULL && PyTuple_Check(args[1]) && PyTuple_Check(args[2]))
        return op_pack(t, args[1], args[2], args + count, names);
    PyErr_SetString(PyExc_TypeError, "_xla_pack() needs the name of an op and two tuples");
    return NULL;
}

static PyMethodDef methods[] = {
    { "devices", py_devices, METH_NOARGS,
      "devices($module)\n--\n\nThe devices that trine has found: a list of dictionaries. The first is the CPU." },
    { "backends", py_backends, METH_NOARGS,
      "backends($module)\n--\n\n"
      "The backends that were tried: a list of dictionaries. \"refused\" says why one is not in use." },
    { "set_threads", py_set_threads, METH_O,
      "set_threads($module, count, /)\n--\n\n"
      "How many threads ops on the CPU use from now on, in all of the process; 0: as many as trine chooses itself." },
    { "run_list", (PyCFunction)(void (*)(void))py_run_list, METH_FASTCALL,
      "run_list($module, op, calls, /)\n--\n\n"
      "Many calls of `op`, each a dictionary of its arguments by name, by few launches on a GPU and with all threads "
      "at\n"
      "work on a CPU: the same bits as one after the other. All are checked before one runs. No output of a call may\n"
      "overlap an array of another one. Returns a list of what each call would." },
    { "explain", (PyCFunction)(void (*)(void))py_explain, METH_FASTCALL | METH_KEYWORDS,
      "explain($module, op, /, *args, **kwargs)\n--\n\n"
      "Which kernel a call of `op` with these arguments would run, and why each other one would not: a list of\n"
      "dictionaries, a kernel each. Nothing is computed." },
    { "arena_plan", (PyCFunction)(void (*)(void))py_arena_plan, METH_VARARGS | METH_KEYWORDS,
      "arena_plan($module, lifetimes, alignment=256)\n--\n\n"
      "Where buffers that are not all needed at once lie in one piece of memory. A lifetime is (bytes, first, last):\n"
      "needed from step first to step last. Returns the offset of each, and a dictionary: bytes of the arena, live\n"
      "(the most needed at once, at step), separate (of all buffers, each in memory of its own), smallest (no plan\n"
      "has a smaller arena)." },
    { "_xla_handlers", py_xla_handlers, METH_NOARGS,
      "_xla_handlers($module)\n--\n\nWhat XLA calls, by its names of platforms: a dictionary of capsules." },
    { "_xla_pack", (PyCFunction)(void (*)(void))py_xla_pack, METH_FASTCALL | METH_KEYWORDS,
      "_xla_pack($module, op, operands, results, /, **params)\n--\n\n"
      "A call as the handlers take it, checked. Tensors are (name, dtype, shape)." },
    { 0 },
};

static int fill(PyObject *module) {
    if (queues_init(module) != 0 || arrays_init() != 0 || calls_init() != 0 || comm_init(module) != 0) return -1;
    if (PyModule_AddFunctions(module, op_methods) != 0) return -1;
    PyObject *ops = PyTuple_New(op_count);
    for (int i = 0; ops != NULL && i < op_count; i++) PyTuple_SetItem(ops, i, PyUnicode_FromString(op_tables[i]->name));
    if (ops == NULL || PyModule_AddObjectRef(module, "ops", ops) != 0) return -1;
    Py_DECREF(ops);
    return PyModule_AddStringConstant(module, "__version__", TRINE_VERSION);
}

static PyModuleDef_Slot slots[] = { { Py_mod_exec, fill }, { 0 } };

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "trine._trine", .m_doc = "Fused compute kernels for arrays of any library.",
    .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__trine(void);
PyMODINIT_FUNC PyInit__trine(void) { return PyModuleDef_Init(&definition); }
