/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's device, and functions of the device code that was built in. */
#include <trine/ops.h>

#include "state.h"

#include <stdio.h>

#include "backends/hip/core/grid.h"
#include "backends/simt/core/compile.h"

trine_status hip_enter(const hip_device *d, hip_scope *scope_out) {
    *scope_out = (hip_scope){ false };
    trine_status status = HIP_CALL(d->driver, GetDevice, &scope_out->before);
    if (status != TRINE_OK || scope_out->before == d->device) return status;
    status = HIP_CALL(d->driver, SetDevice, d->device);
    scope_out->changed = status == TRINE_OK;
    return status;
}

void hip_leave(const hip_device *d, hip_scope scope) {
    if (scope.changed) d->driver->SetDevice(scope.before);
}

trine_status hip_reach_peer(hip_device *d, const char *pci) {
    int other = 0, can = 0;
    trine_status status = HIP_CALL(d->driver, DeviceGetByPCIBusId, &other, pci);
    if (status == TRINE_OK) status = HIP_CALL(d->driver, DeviceCanAccessPeer, &can, d->device, other);
    if (status == TRINE_OK && !can)
        return d->driver->error(TRINE_ERR_UNSUPPORTED, "the device cannot reach the memory of the one at %s", pci);
    if (status != TRINE_OK) return status;
    const hip_result result = d->driver->DeviceEnablePeerAccess(other, 0);
    return result == HIP_PEER_ACCESS_ALREADY_ENABLED ? TRINE_OK
                                                     : hip_status(d->driver, "hipDeviceEnablePeerAccess", result);
}

/* ---------------------------------------------------------------------------------------------------- built-in code */

#define ARCH(op, arch) #arch,
const char *const hip_archs[HIP_ARCHS] = { HIP_EACH_ARCH(ARCH, ) };
#undef ARCH

#define CODE(op, arch) extern const unsigned char trine_##op##_hip_##arch##_code[];
#define WALK(op, OP) HIP_EACH_ARCH(CODE, op)
#define OWN(op, OP) \
    WALK(op, OP) \
    extern const trine_kernel trine_##op##_hip[];
#include "hip_rows.h"
#undef CODE
#undef WALK
#undef OWN

#define CODE(op, arch) trine_##op##_hip_##arch##_code,
#define WALK(op, OP) [TRINE_OP_##OP] = { simt_walk_kernels, { HIP_EACH_ARCH(CODE, op) } },
#define OWN(op, OP) [TRINE_OP_##OP] = { trine_##op##_hip, { HIP_EACH_ARCH(CODE, op) } },
const hip_op hip_ops[TRINE_OP_COUNT] = {
#include "hip_rows.h"
};
#undef CODE
#undef WALK
#undef OWN

/* -------------------------------------------------------------------------------------------------------- functions */

/* Loading code is legal even while the calling thread captures a stream, if the thread says that it knows what it
 * does. */
static trine_status load_function(hip_device *d, int op, const char *name, hip_code *code_out) {
    int mode = HIP_CAPTURE_MODE_RELAXED;
    trine_status status = HIP_CALL(d->driver, ThreadExchangeStreamCaptureMode, &mode);
    if (status != TRINE_OK) return status;
    if (d->module[op] == NULL) status = HIP_CALL(d->driver, ModuleLoadData, &d->module[op], hip_ops[op].code[d->arch]);
    if (status == TRINE_OK) {
        const hip_result result = d->driver->ModuleGetFunction(code_out, d->module[op], name);
        if (result != HIP_SUCCESS)
            status =
                d->driver->error(TRINE_ERR_DEVICE, "hipModuleGetFunction: %s: %s", name, hip_words(d->driver, result));
    }
    d->driver->ThreadExchangeStreamCaptureMode(&mode);
    return status;
}

static trine_status find_function(hip_device *d, const trine_call *call, const simt_function *f, hip_code *code_out) {
    char name[SIMT_NAME_SIZE];
    if (!simt_function_name(call->plan->spec->name, f, name))
        return call->host->error(TRINE_ERR_INTERNAL, "%s: the name of a function is too long: %s",
                                 call->plan->spec->name, name);
    if ((*code_out = simt_function_find(&d->functions, name)) != NULL) return TRINE_OK;
    pthread_mutex_lock(&d->lock);
    const trine_status status = load_function(d, call->plan->op, name, code_out);
    if (status == TRINE_OK) simt_function_enter(&d->functions, name, *code_out);
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* Of `code`, or if that is NULL of `function`. */
static trine_status launch(const trine_call *call, const simt_function *function, hip_code code, int64_t blocks,
                           int threads, const void *params) {
    hip_device *d = call->device;
    const hip_queue *queue = call->queue;
    const char *op = call->plan->spec->name;
    if (blocks == 0) return TRINE_OK;
    const int64_t width = blocks < GRID_WIDTH ? blocks : GRID_WIDTH, height = simt_blocks(blocks, width);
    if (height > GRID_HEIGHT)
        return call->host->error(TRINE_ERR_UNSUPPORTED, "%s: %lld blocks of threads are more than a launch can have",
                                 op, (long long)blocks);
    hip_scope scope;
    trine_status status = hip_enter(d, &scope);
    if (status != TRINE_OK) return status;
    if (code == NULL) status = find_function(d, call, function, &code);
    if (status == TRINE_OK && !queue->loads_only) {
        void *arguments[] = { (void *)(uintptr_t)params, &blocks };
        status = HIP_CALL(d->driver, ModuleLaunchKernel, code, (unsigned)width, (unsigned)height, 1, (unsigned)threads,
                          1, 1, 0, queue->stream, arguments, NULL);
    }
    hip_leave(d, scope);
    return status;
}

trine_status simt_launch(const trine_call *call, const simt_function *function, int64_t blocks, int threads,
                         const void *params, size_t size) {
    (void)size;
    return launch(call, function, NULL, blocks, threads, params);
}

int simt_units(const trine_call *call) {
    (void)call;
    return 0;
}

/* --------------------------------------------------------------------------------------- code compiled at run time */

void simt_arch_of(const void *device, char name_out[static SIMT_ARCH_SIZE]) {
    const hip_device *d = device;
    snprintf(name_out, SIMT_ARCH_SIZE, "%s", hip_archs[d->arch]);
}

bool simt_load_compiled(const trine_call *call, const char *function, simt_compiled *compiled) {
    const hip_device *d = call->device;
    const hip_driver *driver = d->driver;
    int mode = HIP_CAPTURE_MODE_RELAXED;
    hip_module module;
    hip_code code = NULL;
    hip_scope scope;
    if (hip_enter(d, &scope) != TRINE_OK) return false;
    hip_result result = driver->ThreadExchangeStreamCaptureMode(&mode);
    if (result == HIP_SUCCESS) {
        result = driver->ModuleLoadData(&module, compiled->image);
        if (result == HIP_SUCCESS) result = driver->ModuleGetFunction(&code, module, function);
        driver->ThreadExchangeStreamCaptureMode(&mode);
    }
    if (result != HIP_SUCCESS)
        snprintf(compiled->why, sizeof compiled->why, "its code cannot be loaded: %s", hip_words(driver, result));
    compiled->function = code;
    hip_leave(d, scope);
    return result == HIP_SUCCESS;
}

trine_status simt_launch_compiled(const trine_call *call, const simt_compiled *compiled, int64_t blocks, int threads,
                                  const void *params) {
    return launch(call, NULL, compiled->function, blocks, threads, params);
}
