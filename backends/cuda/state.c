/* SPDX-License-Identifier: Apache-2.0 */
/* The primary context, and functions of the device code that was built in. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------------ context */

trine_status cuda_retain(cuda_device *d) {
    pthread_mutex_lock(&d->lock);
    const trine_status status = d->context == NULL ? CUDA_CALL(d->driver, DevicePrimaryCtxRetain, &d->context, d->device) : TRINE_OK;
    pthread_mutex_unlock(&d->lock);
    return status;
}

trine_status cuda_enter(const cuda_device *d, cuda_scope *scope_out) {
    CUcontext current = NULL;
    *scope_out = (cuda_scope){ false };
    if (d->driver->CtxGetCurrent(&current) == CUDA_SUCCESS && current == d->context) return TRINE_OK;
    const trine_status status = CUDA_CALL(d->driver, CtxPushCurrent, d->context);
    scope_out->pushed = status == TRINE_OK;
    return status;
}

void cuda_leave(const cuda_device *d, cuda_scope scope) {
    CUcontext current;
    if (scope.pushed) d->driver->CtxPopCurrent(&current);
}

/* --------------------------------------------------------------------------------------------------------------- built-in code */

/* An op that is one walk over its tensors needs no host code of its own. */
static const trine_kernel walk_kernels[] = { { .name = SIMT_NAME, .launch = simt_walk_launch }, { 0 } };

#define WALK(op, OP) extern const unsigned char trine_##op##_cuda_code[];
#define OWN(op, OP) \
    WALK(op, OP) \
    extern const trine_kernel trine_##op##_cuda[];
#include "cuda_rows.h"
#undef WALK
#undef OWN

#define WALK(op, OP) [TRINE_OP_##OP] = { walk_kernels, trine_##op##_cuda_code },
#define OWN(op, OP) [TRINE_OP_##OP] = { trine_##op##_cuda, trine_##op##_cuda_code },
const cuda_op cuda_ops[TRINE_OP_COUNT] = {
#include "cuda_rows.h"
};
#undef WALK
#undef OWN

bool cuda_has_code(int major, int minor) {
    static const char built[] = CUDA_ARCHS; /* "sm_80 sm_90a compute_90" */
    const int have = 10 * major + minor;
    for (const char *at = built; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const bool ptx = *at == 'c';
        char *suffix;
        const int arch = (int)strtol(at + strcspn(at, "_") + 1, &suffix, 10);
        if (*suffix == 'a' ? arch == have : ptx ? arch <= have : arch / 10 == major && arch <= have) return true;
    }
    return false;
}

/* ---------------------------------------------------------------------------------------------------------------- functions */

/* Loading code is legal even while the calling thread captures a stream, if the thread says that it knows what it does. */
static trine_status load_function(cuda_device *d, trine_op op, const char *name, CUfunction *function_out) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    trine_status status = CUDA_CALL(d->driver, ThreadExchangeStreamCaptureMode, &mode);
    if (status != TRINE_OK) return status;
    if (d->module[op] == NULL) status = CUDA_CALL(d->driver, ModuleLoadData, &d->module[op], cuda_ops[op].code);
    if (status == TRINE_OK) {
        const CUresult result = d->driver->ModuleGetFunction(function_out, d->module[op], name);
        if (result != CUDA_SUCCESS) status = d->driver->error(TRINE_ERR_DEVICE, "cuModuleGetFunction: %s: %s", name, cuda_words(d->driver, result));
    }
    d->driver->ThreadExchangeStreamCaptureMode(&mode);
    return status;
}

static trine_status find_function(cuda_device *d, const trine_call *call, const simt_function *f, CUfunction *function_out) {
    char name[SIMT_NAME_SIZE];
    simt_function_name(call->plan->spec->name, f, name);
    if ((*function_out = simt_function_find(&d->functions, name)) != NULL) return TRINE_OK;
    pthread_mutex_lock(&d->lock);
    const trine_status status = load_function(d, call->plan->op, name, function_out);
    if (status == TRINE_OK) simt_function_enter(&d->functions, name, *function_out);
    pthread_mutex_unlock(&d->lock);
    return status;
}

trine_status simt_launch(const trine_call *call, const simt_function *function, int64_t blocks, int threads, const void *params, size_t size) {
    cuda_device *d = call->device;
    const cuda_queue *queue = call->queue;
    const char *op = call->plan->spec->name;
    (void)size;
    if (blocks == 0) return TRINE_OK;
    if (blocks > INT32_MAX)
        return call->host->error(TRINE_ERR_UNSUPPORTED, "%s: %lld blocks of threads are more than a launch can have", op, (long long)blocks);
    cuda_scope scope;
    CUfunction code;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = find_function(d, call, function, &code);
    if (status == TRINE_OK) {
        void *arguments[] = { (void *)(uintptr_t)params };
        status = CUDA_CALL(d->driver, LaunchKernel, code, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, queue->stream, arguments, NULL);
    }
    cuda_leave(d, scope);
    return status;
}
