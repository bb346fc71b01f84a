/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and launches device code that kernels from elsewhere bring. Compiled once into each module. */
#include "foreign.h"

#include <stdlib.h>
#include <string.h>

#include <vendor.h>

enum { FREE_SHARED = 40 << 10 }; /* bytes that a launch may ask for as it is */

static simt_foreign *find(simt_device *d, const trine_code *code) {
    simt_foreign *f = d->foreign;
    while (f != NULL && (f->image != code->image || strcmp(f->name, code->function) != 0)) f = f->next;
    return f;
}

/* The image's module, if one of its functions is loaded. */
static simt_module module_of(simt_device *d, const void *image) {
    for (const simt_foreign *f = d->foreign; f != NULL; f = f->next)
        if (f->image == image) return f->module;
    return NULL;
}

/* Loading code is legal even while the calling thread captures a stream, if the thread says that it knows what it
 * does. */
static trine_status load_code(simt_device *d, const trine_code *code, simt_module *module_out,
                              simt_entry *function_out) {
    simt_capture_mode mode = SIMT_CAPTURE_RELAXED;
    trine_status status = SIMT_CALL(d->driver, ThreadExchangeStreamCaptureMode, &mode);
    if (status != TRINE_OK) return status;
    *module_out = module_of(d, code->image);
    if (*module_out == NULL) status = SIMT_CALL(d->driver, ModuleLoadData, module_out, code->image);
    if (status == TRINE_OK) {
        const simt_result result = d->driver->ModuleGetFunction(function_out, *module_out, code->function);
        if (result != SIMT_SUCCESS)
            status = d->driver->error(TRINE_ERR_DEVICE, "code from elsewhere: %.200s: %s", code->function,
                                      simt_words(d->driver, result));
    }
    d->driver->ThreadExchangeStreamCaptureMode(&mode);
    return status;
}

/* Under the device's lock. */
static trine_status load(simt_device *d, const trine_code *code, simt_foreign **foreign_out) {
    const size_t length = strlen(code->function) + 1;
    if ((*foreign_out = find(d, code)) != NULL) return TRINE_OK;
    simt_foreign *f = calloc(1, sizeof *f + length);
    if (f == NULL) return d->driver->error(TRINE_ERR_MEMORY, "out of memory for code from elsewhere");
    simt_module module = NULL;
    simt_entry function = NULL;
    const trine_status status = load_code(d, code, &module, &function);
    if (status != TRINE_OK) {
        free(f);
        return status;
    }
    *f = (simt_foreign){
        .next = d->foreign, .image = code->image, .module = module, .function = function, .shared = FREE_SHARED
    };
    memcpy(f->name, code->function, length);
    d->foreign = *foreign_out = f;
    return TRINE_OK;
}

/* The function, allowed as much shared memory as the launch asks for. */
static trine_status prepare(simt_device *d, const trine_code *code, uint32_t shared, simt_foreign **foreign_out) {
    if ((*foreign_out = find(d, code)) != NULL && (*foreign_out)->shared >= shared) return TRINE_OK;
    pthread_mutex_lock(&d->lock);
    trine_status status = load(d, code, foreign_out);
    if (status == TRINE_OK && (*foreign_out)->shared < shared &&
        (status = simt_allow_shared(d, (*foreign_out)->function, shared)) == TRINE_OK)
        (*foreign_out)->shared = shared;
    pthread_mutex_unlock(&d->lock);
    return status;
}

trine_status simt_launch_foreign(const trine_call *call, const trine_code *code, const trine_launch *launch) {
    simt_device *d = call->device;
    const simt_queue *queue = call->queue;
    const uint32_t *blocks = launch->blocks, *threads = launch->threads;
    size_t size = launch->params_size;
    void *params[] = { SIMT_PARAM_POINTER, (void *)(uintptr_t)launch->params, SIMT_PARAM_SIZE, &size, SIMT_PARAM_END };
    simt_foreign *f;
    simt_scope scope;
    trine_status status = simt_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = prepare(d, code, launch->shared, &f);
    if (status == TRINE_OK)
        status = SIMT_CALL(d->driver, SIMT_LAUNCH_KERNEL, f->function, blocks[0], blocks[1], blocks[2], threads[0],
                           threads[1], threads[2], launch->shared, queue->stream, NULL, params);
    simt_leave(d, scope);
    return status;
}
