/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVIDIA's driver library: devices in host memory, streams that are always idle, kernels by the emulator, failures on demand. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulator/emulator.h"
#include "stub.h"

#pragma GCC visibility push(default)

stub_settings stub = { .version = 13000, .devices = 1, .major = 9, .minor = 0 };

static bool sticky;
static _Thread_local CUcontext stack[16];
static _Thread_local int depth;

static CUresult verdict(const char *name) {
    if (sticky) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (stub.fail == NULL || strcmp(stub.fail, name) != 0 || stub.after-- > 0) return CUDA_SUCCESS;
    stub.failed++;
    sticky = stub.result == CUDA_ERROR_ILLEGAL_ADDRESS;
    return (CUresult)stub.result;
}

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define MAY_FAIL(name) \
    do { \
        const CUresult result_ = verdict(STRING(name)); \
        if (result_ != CUDA_SUCCESS) return result_; \
    } while (0)
/* Works in the current context, and only there. */
#define IN_CONTEXT(name) \
    do { \
        MAY_FAIL(name); \
        if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT; \
    } while (0)

CUresult cuInit(unsigned flags) {
    (void)flags;
    MAY_FAIL(cuInit);
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    *version = stub.version;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY     ? "out of memory"
            : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                                  : "stub error";
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------------ devices */

CUresult cuDeviceGetCount(int *count) {
    MAY_FAIL(cuDeviceGetCount);
    *count = stub.devices;
    return stub.devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    MAY_FAIL(cuDeviceGet);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    (void)device;
    MAY_FAIL(cuDeviceGetName);
    snprintf(name, (size_t)size, "emulated device");
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    (void)device;
    MAY_FAIL(cuDeviceTotalMem);
    *bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device) {
    MAY_FAIL(cuDeviceGetPCIBusId);
    snprintf(id, (size_t)size, "0000:%02X:00.0", 0xa0 + device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = stub.major; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = stub.minor; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: *value = 0; break;
    default: *value = 1000;
    }
    return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------------------------------------------------------- contexts */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    static char contexts[64];
    MAY_FAIL(cuDevicePrimaryCtxRetain);
    *context = (CUcontext)(void *)&contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
    MAY_FAIL(cuCtxPushCurrent);
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = depth > 0 ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------------ kernels */

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    IN_CONTEXT(cuModuleLoadData);
    *module = (CUmodule)(uintptr_t)image;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    char entry[128];
    (void)module;
    IN_CONTEXT(cuModuleGetFunction);
    snprintf(entry, sizeof entry, "entry_%s", name);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *function = library != NULL ? dlsym(library, entry) : NULL;
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y, unsigned threads_z, unsigned shared,
                        CUstream stream, void **params, void **extra) {
    (void)stream, (void)extra;
    IN_CONTEXT(cuLaunchKernel);
    if (x == 0 || y * z * threads_y * threads_z != 1 || threads > EMULATOR_THREADS || shared > EMULATOR_MEMORY) return CUDA_ERROR_INVALID_VALUE;
    emulator_launch((void (*)(const void *))(void *)function, params[0], x, (int)threads);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
    (void)config, (void)function, (void)params, (void)extra;
    IN_CONTEXT(cuLaunchKernelEx);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config) {
    (void)clusters, (void)function, (void)config;
    IN_CONTEXT(cuOccupancyMaxActiveClusters);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function;
    IN_CONTEXT(cuFuncSetAttribute);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;
    return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value <= EMULATOR_MEMORY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *data, const cuuint64_t *shape, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    (void)map, (void)type, (void)rank, (void)data, (void)shape, (void)strides, (void)box, (void)steps, (void)interleave, (void)swizzle, (void)promotion,
        (void)fill;
    MAY_FAIL(cuTensorMapEncodeTiled);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    MAY_FAIL(cuThreadExchangeStreamCaptureMode);
    *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------- streams and events */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuStreamCreate);
    *stream = malloc(1);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
    free(stream);
    return depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamSynchronize(CUstream stream) {
    (void)stream;
    IN_CONTEXT(cuStreamSynchronize);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuEventCreate);
    *event = malloc(sizeof(struct timespec));
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    (void)stream;
    IN_CONTEXT(cuEventRecord);
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)event);
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
    (void)event;
    IN_CONTEXT(cuEventSynchronize);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent second) {
    const struct timespec *a = (const struct timespec *)first, *b = (const struct timespec *)second;
    IN_CONTEXT(cuEventElapsedTime);
    *milliseconds = (float)(1e3 * (double)(b->tv_sec - a->tv_sec) + 1e-6 * (double)(b->tv_nsec - a->tv_nsec));
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------------- memory */

CUresult cuMemAlloc(CUdeviceptr *memory, size_t bytes) {
    IN_CONTEXT(cuMemAlloc);
    void *at = NULL;
    if (posix_memalign(&at, 512, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr memory) {
    IN_CONTEXT(cuMemFree);
    free((void *)(uintptr_t)memory);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    (void)stream;
    IN_CONTEXT(cuMemcpyHtoDAsync);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)stream;
    IN_CONTEXT(cuMemcpyDtoHAsync);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

#pragma GCC visibility pop
