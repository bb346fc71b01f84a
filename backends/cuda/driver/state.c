/* SPDX-License-Identifier: Apache-2.0 */
/* The primary context, and functions of the device code that was built in. */
#include <trine/ops.h>

#include "state.h"

#include "backends/simt/core/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- context */

trine_status cuda_retain(cuda_device *d) {
    pthread_mutex_lock(&d->lock);
    const trine_status status =
        d->context == NULL ? CUDA_CALL(d->driver, DevicePrimaryCtxRetain, &d->context, d->device) : TRINE_OK;
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

trine_status cuda_reach_peer(cuda_device *d, const char *pci) {
    CUdevice other;
    CUcontext context;
    int can = 0;
    trine_status status = CUDA_CALL(d->driver, DeviceGetByPCIBusId, &other, pci);
    if (status == TRINE_OK) status = CUDA_CALL(d->driver, DeviceCanAccessPeer, &can, d->device, other);
    if (status == TRINE_OK && !can)
        return d->driver->error(TRINE_ERR_UNSUPPORTED, "the device cannot reach the memory of the one at %s", pci);
    if (status == TRINE_OK) status = CUDA_CALL(d->driver, DevicePrimaryCtxRetain, &context, other);
    if (status != TRINE_OK) return status;
    const CUresult result = d->driver->CtxEnablePeerAccess(context, 0);
    return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? TRINE_OK
                                                            : cuda_status(d->driver, "cuCtxEnablePeerAccess", result);
}

/* ---------------------------------------------------------------------------------------------------- built-in code */

#define WALK(op, OP) extern const unsigned char trine_##op##_cuda_code[];
#define OWN(op, OP) \
    WALK(op, OP) \
    extern const trine_kernel trine_##op##_cuda[];
#define HOPPER(op, OP) extern const unsigned char trine_##op##_sm90_cuda_code[];
#include "cuda_rows.h"
#undef WALK
#undef OWN
#undef HOPPER

#define WALK(op, OP) \
    [TRINE_OP_##OP].kernels = simt_walk_kernels, [TRINE_OP_##OP].code[CUDA_COMMON] = trine_##op##_cuda_code,
#define OWN(op, OP) \
    [TRINE_OP_##OP].kernels = trine_##op##_cuda, [TRINE_OP_##OP].code[CUDA_COMMON] = trine_##op##_cuda_code,
#define HOPPER(op, OP) [TRINE_OP_##OP].code[CUDA_HOPPER] = trine_##op##_sm90_cuda_code,
const cuda_op cuda_ops[TRINE_OP_COUNT] = {
#include "cuda_rows.h"
};
#undef WALK
#undef OWN
#undef HOPPER

/* The driver takes machine code if there is any for the device, and PTX otherwise, the newest of either. */
int cuda_code_for(int major, int minor) {
    static const char built[] = CUDA_ARCHS; /* "sm_80 sm_90a compute_90" */
    const int have = 10 * major + minor;
    int best[2] = { 0, 0 };
    for (const char *at = built; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const bool ptx = *at == 'c';
        char *suffix;
        const int arch = (int)strtol(at + strcspn(at, "_") + 1, &suffix, 10);
        const bool runs = *suffix == 'a' ? arch == have : ptx ? arch <= have : arch / 10 == major && arch <= have;
        if (runs && arch > best[ptx]) best[ptx] = arch;
    }
    return best[false] > 0 ? best[false] : best[true];
}

const char *cuda_refuse_hopper(const trine_call *call) {
    const cuda_device *d = call->device;
    if (cuda_ops[call->plan->op].code[CUDA_HOPPER] == NULL) return "no code for sm_90a was built";
    if (d->major != 9 || d->minor != 0) return "the device is not of compute capability 9.0";
    return d->tensor_maps ? NULL : "the device has no tensor maps";
}

/* -------------------------------------------------------------------------------------------------------- functions */

/* Loading code is legal even while the calling thread captures a stream, if the thread says that it knows what it
 * does. */
static trine_status load_function(cuda_device *d, int op, const cuda_launch *launch, CUfunction *function_out) {
    enum { FREE = 40 << 10 }; /* bytes that a launch may ask for as it is: 48 KB with the function's own */
    CUmodule *module = &d->module[op][launch->part];
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    trine_status status = CUDA_CALL(d->driver, ThreadExchangeStreamCaptureMode, &mode);
    if (status != TRINE_OK) return status;
    if (*module == NULL) status = CUDA_CALL(d->driver, ModuleLoadData, module, cuda_ops[op].code[launch->part]);
    if (status == TRINE_OK) {
        const CUresult result = d->driver->ModuleGetFunction(function_out, *module, launch->name);
        if (result != CUDA_SUCCESS)
            status = d->driver->error(TRINE_ERR_DEVICE, "cuModuleGetFunction: %s: %s", launch->name,
                                      cuda_words(d->driver, result));
    }
    if (status == TRINE_OK && launch->shared > FREE)
        status = CUDA_CALL(d->driver, FuncSetAttribute, *function_out, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           launch->shared);
    if (status == TRINE_OK && launch->shared > 0 && !launch->cached)
        status = CUDA_CALL(d->driver, FuncSetAttribute, *function_out,
                           CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
    if (status == TRINE_OK && d->cluster_launch) /* clusters of more than CUDA_MOST_CLUSTER, where they are asked for */
        status = CUDA_CALL(d->driver, FuncSetAttribute, *function_out,
                           CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    d->driver->ThreadExchangeStreamCaptureMode(&mode);
    return status;
}

static trine_status find_function(cuda_device *d, const trine_call *call, const cuda_launch *launch,
                                  CUfunction *function_out) {
    if (strlen(launch->name) == sizeof launch->name - 1)
        return call->host->error(TRINE_ERR_INTERNAL, "%s: the name of a function is too long: %s",
                                 call->plan->spec->name, launch->name);
    if ((*function_out = simt_function_find(&d->functions, launch->name)) != NULL) return TRINE_OK;
    pthread_mutex_lock(&d->lock);
    const trine_status status = load_function(d, call->plan->op, launch, function_out);
    if (status == TRINE_OK) simt_function_enter(&d->functions, launch->name, *function_out);
    pthread_mutex_unlock(&d->lock);
    return status;
}

enum { ATTRIBUTES = 3 };

static CUlaunchConfig config_of(const cuda_device *d, const cuda_launch *launch, CUlaunchAttribute *attributes,
                                CUstream stream) {
    unsigned count = 0;
    if (launch->cluster > 0)
        attributes[count++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                   .value.clusterDim = { (unsigned)launch->cluster, 1, 1 } };
    if (d->overlaps && !launch->alone)
        attributes[count++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                   .value.programmaticStreamSerializationAllowed = 1 };
    if (launch->together)
        attributes[count++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    return (CUlaunchConfig){
        .gridDimX = (unsigned)launch->blocks,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = (unsigned)launch->threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = (unsigned)launch->shared,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = count,
    };
}

static trine_status launch_code(const cuda_device *d, CUfunction code, const cuda_launch *launch, CUstream stream) {
    void *arguments[] = { (void *)(uintptr_t)launch->params };
    CUlaunchAttribute attributes[ATTRIBUTES];
    const CUlaunchConfig config = config_of(d, launch, attributes, stream);
    if (config.numAttrs > 0) return CUDA_CALL(d->driver, LaunchKernelEx, &config, code, arguments, NULL);
    return CUDA_CALL(d->driver, LaunchKernel, code, config.gridDimX, 1, 1, config.blockDimX, 1, 1,
                     config.sharedMemBytes, stream, arguments, NULL);
}

trine_status cuda_clusters_held(const trine_call *call, const cuda_launch *launch, int *clusters_out) {
    cuda_device *d = call->device;
    cuda_scope scope;
    CUfunction code;
    CUlaunchAttribute attributes[ATTRIBUTES];
    cuda_queue *queue = call->queue;
    _Atomic int *const known = &(queue->units < d->units ? queue->clusters : d->clusters)[launch->cluster];
    const bool fills = 2 * launch->shared > d->shared;
    const int asked = fills ? *known : 0;
    *clusters_out = asked > 0 ? asked - 1 : 0;
    if (asked > 0) return TRINE_OK;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    status = find_function(d, call, launch, &code);
    if (status == TRINE_OK) {
        /* with a stream, of its context's SMs */
        const CUlaunchConfig config = config_of(d, launch, attributes, queue->units < d->units ? queue->stream : NULL);
        status = CUDA_CALL(d->driver, OccupancyMaxActiveClusters, clusters_out, code, &config);
    }
    if (status == TRINE_OK && fills) *known = *clusters_out + 1;
    cuda_leave(d, scope);
    return status;
}

/* Of `code`, or if that is NULL of the function that the launch names. */
static trine_status launch_or_find(const trine_call *call, const cuda_launch *launch, CUfunction code) {
    cuda_device *d = call->device;
    const cuda_queue *queue = call->queue;
    if (launch->blocks == 0) return TRINE_OK;
    if (launch->blocks > INT32_MAX)
        return call->host->error(TRINE_ERR_UNSUPPORTED, "%s: %lld blocks of threads are more than a launch can have",
                                 call->plan->spec->name, (long long)launch->blocks);
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    if (code == NULL) status = find_function(d, call, launch, &code);
    if (status == TRINE_OK && queue->shares)
        status = CUDA_CALL(d->driver, FuncSetAttribute, code, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                           CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
    if (status == TRINE_OK && !queue->loads_only) status = launch_code(d, code, launch, queue->stream);
    cuda_leave(d, scope);
    return status;
}

trine_status cuda_launch_function(const trine_call *call, const cuda_launch *launch) {
    return launch_or_find(call, launch, NULL);
}

static cuda_launch launch_of(const trine_call *call, const simt_function *function, int64_t blocks, int threads,
                             const void *params) {
    cuda_launch launch = { .blocks = blocks, .threads = threads, .shared = function->shared, .params = params };
    if (function->cluster > 1) launch.cluster = function->cluster;
    simt_function_name(call->plan->spec->name, function, launch.name);
    return launch;
}

trine_status simt_launch(const trine_call *call, const simt_function *function, int64_t blocks, int threads,
                         const void *params, size_t size) {
    const cuda_launch launch = launch_of(call, function, blocks, threads, params);
    (void)size;
    return cuda_launch_function(call, &launch);
}

trine_status cuda_function_clusters(const trine_call *call, const simt_function *function, int threads,
                                    int *clusters_out) {
    const cuda_launch launch = launch_of(call, function, (int64_t)simt_units(call) * function->cluster, threads, NULL);
    return cuda_clusters_held(call, &launch, clusters_out);
}

int simt_units(const trine_call *call) { return ((const cuda_queue *)call->queue)->units; }

/* --------------------------------------------------------------------------------------- code compiled at run time */

void simt_arch_of(const void *device, char name_out[static SIMT_ARCH_SIZE]) {
    const cuda_device *d = device;
    snprintf(name_out, SIMT_ARCH_SIZE, "sm_%d%d", d->major, d->minor);
}

bool simt_load_compiled(const trine_call *call, const char *function, simt_compiled *compiled) {
    const cuda_device *d = call->device;
    const cuda_driver *driver = d->driver;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUmodule module;
    CUfunction code = NULL;
    cuda_scope scope;
    if (cuda_enter(d, &scope) != TRINE_OK) return false;
    CUresult result = driver->ThreadExchangeStreamCaptureMode(&mode);
    if (result == CUDA_SUCCESS) {
        result = driver->ModuleLoadData(&module, compiled->image);
        if (result == CUDA_SUCCESS) result = driver->ModuleGetFunction(&code, module, function);
        driver->ThreadExchangeStreamCaptureMode(&mode);
    }
    if (result != CUDA_SUCCESS)
        snprintf(compiled->why, sizeof compiled->why, "its code cannot be loaded: %s", cuda_words(driver, result));
    compiled->function = code;
    cuda_leave(d, scope);
    return result == CUDA_SUCCESS;
}

trine_status simt_launch_compiled(const trine_call *call, const simt_compiled *compiled, int64_t blocks, int threads,
                                  const void *params) {
    const cuda_launch launch = { .blocks = blocks, .threads = threads, .params = params };
    return launch_or_find(call, &launch, compiled->function);
}
