/* SPDX-License-Identifier: Apache-2.0 */
/* The library, its devices, and queues that calls borrow.
 *
 * A call takes an idle queue of its device and stream, or opens one, and gives it back when it returns: a queue belongs
 * to one thread at a time, whichever threads call (autograd calls from its own), and there are as many as calls at
 * once. Work of one stream is ordered by the stream, not by the queue. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

PyObject *error_class, *argument_error;
static PyObject *unsupported_error, *memory_error, *device_error, *comm_error;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static trine *library;
static lane *idle;
static int threads;       /* of CPU queues; 0: the library's choice */
static unsigned settings; /* how often that was set */

PyObject *raise_failure(const failure *why) {
    PyObject *const of[] = { [TRINE_ERR_ARGUMENT] = argument_error,
                             [TRINE_ERR_UNSUPPORTED] = unsupported_error,
                             [TRINE_ERR_MEMORY] = memory_error,
                             [TRINE_ERR_DEVICE] = device_error,
                             [TRINE_ERR_COMM] = comm_error };
    const size_t status = (size_t)why->status;
    PyErr_SetString(status < sizeof of / sizeof of[0] && of[status] != NULL ? of[status] : error_class, why->text);
    return NULL;
}

PyObject *raise_status(trine_status status) {
    failure why;
    fail_as_library(&why, status);
    return raise_failure(&why);
}

/* Opened when first needed: an import touches no driver. */
static trine *open_library(failure *why) {
    trine_status status = TRINE_OK;
    pthread_mutex_lock(&mutex);
    if (library == NULL) status = trine_open(NULL, &library);
    pthread_mutex_unlock(&mutex);
    if (status != TRINE_OK) fail_as_library(why, status);
    return status == TRINE_OK ? library : NULL;
}

static trine *open_library_python(void) {
    failure why;
    trine *lib;
    Py_BEGIN_ALLOW_THREADS lib = open_library(&why);
    Py_END_ALLOW_THREADS if (lib == NULL) raise_failure(&why);
    return lib;
}

/* ---------------------------------------------------------------------------------------------------------- devices */

/* DLPack's device types and the backends that have them. */
static const struct {
    int32_t type;
    const char *backend;
} places[] = { { DL_CPU, "cpu" },   { DL_CUDA_HOST, "cpu" },     { DL_ROCM_HOST, "cpu" },
               { DL_CUDA, "cuda" }, { DL_CUDA_MANAGED, "cuda" }, { DL_ROCM, "hip" } };

static const char *refusal(trine *lib, const char *backend) {
    trine_backend_info_t info;
    for (int i = 0; i < trine_backend_count(lib); i++)
        if (trine_backend_info(lib, i, &info) == TRINE_OK && strcmp(info.name, backend) == 0)
            return info.refused != NULL ? info.refused : "the driver shows trine no such device";
    return "its module is not installed";
}

int device_number(int32_t device_type, int32_t device_id, const char *op, const char *name, failure *why) {
    if (device_type == DL_CPU) return 0;
    trine *lib = open_library(why);
    const char *backend = NULL;
    char device[32];
    if (lib == NULL) return -1;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (places[i].type == device_type) backend = places[i].backend;
    if (backend == NULL)
        return fail(why, TRINE_ERR_ARGUMENT, "%s: %s is on a device of DLPack's type %d, which trine does not know", op,
                    name, (int)device_type);
    if (strcmp(backend, "cpu") == 0) return 0;
    snprintf(device, sizeof device, "%s:%d", backend, (int)device_id);
    const int number = trine_device_find(lib, device);
    if (number >= 0) return number;
    return fail(why, TRINE_ERR_UNSUPPORTED, "%s: %s is on %s, but trine's %s backend is not in use: %s", op, name,
                device, backend, refusal(lib, backend));
}

int device_named(const char *name, failure *why) {
    trine *lib = open_library(why);
    if (lib == NULL) return -1;
    const int number = trine_device_find(lib, name);
    return number >= 0 ? number : fail(why, TRINE_ERR_ARGUMENT, "there is no device \"%s\"", name);
}

static PyObject *text_or_none(const char *text) {
    if (text != NULL) return PyUnicode_FromString(text);
    return Py_NewRef(Py_None);
}

PyObject *py_devices(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    trine *lib = open_library_python();
    PyObject *list = lib != NULL ? PyList_New(0) : NULL;
    for (int i = 0; list != NULL && i < trine_device_count(lib); i++) {
        trine_device_info_t info;
        trine_device_info(lib, i, &info);
        PyObject *one = Py_BuildValue("{s:s,s:s,s:s,s:N,s:i,s:i,s:L,s:N}", "name", info.name, "model", info.model,
                                      "arch", info.arch, "pci", text_or_none(info.pci), "units", (int)info.units,
                                      "numa_node", (int)info.numa_node, "memory", (long long)info.memory, "emulated",
                                      PyBool_FromLong(info.emulated));
        if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

PyObject *py_backends(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    trine *lib = open_library_python();
    PyObject *list = lib != NULL ? PyList_New(0) : NULL;
    for (int i = 0; list != NULL && i < trine_backend_count(lib); i++) {
        trine_backend_info_t info;
        trine_backend_info(lib, i, &info);
        PyObject *one = Py_BuildValue("{s:s,s:N,s:N,s:N,s:i}", "name", info.name, "path", text_or_none(info.path),
                                      "version", text_or_none(info.version), "refused", text_or_none(info.refused),
                                      "devices", (int)info.devices);
        if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

PyObject *py_set_threads(PyObject *self, PyObject *count) {
    (void)self;
    const long asked = PyLong_AsLong(count);
    if (asked == -1 && PyErr_Occurred()) return NULL;
    if (asked < 0 || asked > 4096) {
        PyErr_Format(argument_error, "set_threads: %ld threads are asked for, but 0 to 4096 are possible", asked);
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    threads = (int)asked;
    settings++;
    pthread_mutex_unlock(&mutex);
    return Py_NewRef(Py_None);
}

/* ------------------------------------------------------------------------------------------------------------ lanes */

static lane *take_idle(int device, void *stream) {
    lane *found = NULL;
    pthread_mutex_lock(&mutex);
    for (lane **at = &idle; *at != NULL && found == NULL;) {
        lane *l = *at;
        if (l->device != device || l->stream != stream) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        if (device == 0 && l->age != settings) { /* of another number of threads */
            trine_queue_close(l->queue);
            free(l);
        } else {
            found = l;
        }
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static lane *open_lane(int device, void *stream, failure *why) {
    trine *lib = open_library(why);
    if (lib == NULL) return NULL;
    lane *l = calloc(1, sizeof *l);
    if (l == NULL) return fail(why, TRINE_ERR_MEMORY, "no memory for a queue"), NULL;
    *l = (lane){ .device = device, .stream = stream, .age = settings };
    const trine_queue_options options = { .struct_size = sizeof options,
                                          .flags = stream == NULL ? TRINE_QUEUE_DEFAULT_STREAM : 0,
                                          .threads = device == 0 ? threads : 0,
                                          .stream = stream };
    const trine_status status = trine_queue_open(lib, device, &options, &l->queue);
    if (status == TRINE_OK) return l;
    free(l);
    return fail_as_library(why, status), NULL;
}

lane *lane_take(int device, void *stream, failure *why) {
    lane *l = take_idle(device, stream);
    return l != NULL ? l : open_lane(device, stream, why);
}

lane *lane_take_python(int device, void *stream) {
    lane *l = take_idle(device, stream);
    failure why;
    if (l != NULL) return l;
    Py_BEGIN_ALLOW_THREADS l = open_lane(device, stream, &why);
    Py_END_ALLOW_THREADS if (l == NULL) raise_failure(&why);
    return l;
}

void lane_give(lane *l) {
    pthread_mutex_lock(&mutex);
    l->next = idle;
    idle = l;
    pthread_mutex_unlock(&mutex);
}

/* ------------------------------------------------------------------------------------------------------------- init */

static PyObject *class_of(PyObject *module, const char *name, const char *doc, PyObject *base, PyObject *other) {
    char full[64];
    PyOS_snprintf(full, sizeof full, "trine.%s", name);
    PyObject *bases = other != NULL ? PyTuple_Pack(2, base, other) : PyTuple_Pack(1, base);
    PyObject *class = bases != NULL ? PyErr_NewExceptionWithDoc(full, doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    return class != NULL && PyModule_AddObjectRef(module, name, class) == 0 ? class : NULL;
}

int queues_init(PyObject *module) {
    error_class =
        class_of(module, "Error", "What trine reports; the base of its other errors.", PyExc_RuntimeError, NULL);
    if (error_class == NULL) return -1;
    argument_error = class_of(module, "ArgumentError", "An argument contradicts the op's specification.", error_class,
                              PyExc_ValueError);
    unsupported_error = class_of(module, "UnsupportedError", "The device has no kernel for a valid call.", error_class,
                                 PyExc_NotImplementedError);
    memory_error = class_of(module, "OutOfMemoryError", "No memory is left on the host or the device.", error_class,
                            PyExc_MemoryError);
    device_error = class_of(module, "DeviceError", "The device or its driver failed.", error_class, NULL);
    comm_error = class_of(module, "CommError", "Another rank of a group is missing, has ended, or does something else.",
                          error_class, NULL);
    return argument_error && unsupported_error && memory_error && device_error && comm_error ? 0 : -1;
}
