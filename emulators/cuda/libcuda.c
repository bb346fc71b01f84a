/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVIDIA's driver library: devices in host memory, streams that are always idle, kernels by the emulator
 * or only counted, failures on demand. */
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "chip.h"
#include "device/emulator.h"
#include "streams.h"
#include "stub.h"

#pragma GCC visibility push(default)

stub_settings stub = { .version = 13000, .devices = 1, .major = 9, .minor = 0 };

static bool sticky;
static _Thread_local CUcontext stack[16];
static _Thread_local int depth;

CUresult stub_verdict(const char *name) {
    if (sticky) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (stub.fail == NULL || strcmp(stub.fail, name) != 0 || stub.after-- > 0) return CUDA_SUCCESS;
    stub.failed++;
    sticky = stub.result == CUDA_ERROR_ILLEGAL_ADDRESS;
    return (CUresult)stub.result;
}

bool stub_in_context(void) { return depth > 0; }

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

/* ---------------------------------------------------------------------------------------------------------- devices */

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
    const stub_chip *chip = stub_chip_chosen();
    (void)device;
    if (chip != NULL && stub_chip_attribute(chip, attribute, value)) return CUDA_SUCCESS;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = stub.major; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = stub.minor; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = stub_units(); break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = EMULATOR_MEMORY; break;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = stub_clusters(); break;
    default: *value = 1000;
    }
    return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------------------------------------------- contexts */

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

/* ---------------------------------------------------------------------------------------------------------- kernels */

/* Libraries that the stand-in for NVRTC has made. */
enum { MOST_LIBRARIES = 1 << 12 };
static struct {
    void *handle[MOST_LIBRARIES];
    int count;
} made;

/* A library of the host, and not code of NVIDIA's: its size, from its section headers, which come last; 0: not one. */
static size_t library_size(const void *image) {
    Elf64_Ehdr h;
    memcpy(&h, image, EI_NIDENT);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return 0;
    memcpy(&h, image, sizeof h);
    return h.e_machine == EM_CUDA ? 0 : (size_t)(h.e_shoff + (uint64_t)h.e_shentsize * h.e_shnum);
}

/* Under a name that no other had: the loader takes a name for the library. */
static void *open_library(const void *image, size_t size) {
    char path[] = "/tmp/trine-stub-XXXXXX";
    void *handle = NULL;
    const int file = mkstemp(path);
    if (file < 0) return NULL;
    if (write(file, image, size) == (ssize_t)size) handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) fprintf(stderr, "stub: %s\n", dlerror());
    close(file);
    unlink(path);
    return handle;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    IN_CONTEXT(cuModuleLoadData);
    const size_t size = library_size(image);
    *module = (CUmodule)(uintptr_t)image;
    if (size == 0) return CUDA_SUCCESS;
    void *handle = made.count < MOST_LIBRARIES ? open_library(image, size) : NULL;
    if (handle == NULL) return CUDA_ERROR_INVALID_IMAGE;
    made.handle[made.count++] = handle;
    *module = (CUmodule)handle;
    return CUDA_SUCCESS;
}

static void *find_entry(CUmodule module, const char *entry) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (int i = 0; i < made.count; i++)
        if (made.handle[i] == (void *)module) library = made.handle[i];
    return library != NULL ? dlsym(library, entry) : NULL;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    char entry[128];
    IN_CONTEXT(cuModuleGetFunction);
    if (stub_waits() && stub.devices == 1 && getenv("STUB_LOADS") == NULL) return CUDA_ERROR_NOT_PERMITTED;
    if (stub_chip_chosen() != NULL) {
        *function = stub_chip_function(name);
        return CUDA_SUCCESS;
    }
    snprintf(entry, sizeof entry, "entry_%s", name);
    *function = find_entry(module, entry);
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Functions whose blocks want most of an SM's memory as shared memory; FUNCTIONS and more are all taken for such. */
enum { FUNCTIONS = 4096 };
static struct {
    pthread_mutex_t lock;
    int count;
    CUfunction function[FUNCTIONS];
} cut = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_cut(CUfunction function) {
    int at = 0;
    pthread_mutex_lock(&cut.lock);
    while (at < cut.count && cut.function[at] != function) at++;
    const bool found = at < cut.count || cut.count == FUNCTIONS;
    pthread_mutex_unlock(&cut.lock);
    return found;
}

static void enter_cut(CUfunction function) {
    if (is_cut(function)) return;
    pthread_mutex_lock(&cut.lock);
    if (cut.count < FUNCTIONS) cut.function[cut.count++] = function;
    pthread_mutex_unlock(&cut.lock);
}

static CUresult launch(CUfunction function, const CUlaunchConfig *config, void **params) {
    const stub_chip *chip = stub_chip_chosen();
    emulator_entry *entry = (emulator_entry *)(void *)function;
    if (config->gridDimY * config->gridDimZ * config->blockDimY * config->blockDimZ != 1)
        return CUDA_ERROR_INVALID_VALUE;
    stub.launches++;
    if (stub.devices == 1 && stub_meanwhile() && !is_cut(function)) stub.uncut++;
    stub.shapes = ((stub.shapes * 31 + config->gridDimX) * 31 + config->blockDimX) * 31 + stub_chip_cluster(config);
    stub.stream = config->hStream;
    stub.units = stub_green_units(config->hStream);
    if (chip != NULL) return stub_chip_launch(chip, function, config, stub.units);
    if (config->gridDimX == 0 || config->blockDimX > EMULATOR_THREADS || config->sharedMemBytes > EMULATOR_MEMORY)
        return CUDA_ERROR_INVALID_VALUE;
    const int cluster = (int)stub_chip_cluster(config), most = stub_clusters() ? EMULATOR_CLUSTER : 1;
    if (cluster > most || config->gridDimX % (unsigned)cluster != 0) return CUDA_ERROR_NOT_SUPPORTED;
    stub_work w = { .entry = entry, .blocks = config->gridDimX, .threads = (int)config->blockDimX, .cluster = cluster };
    const unsigned size = entry(NULL) & ~EMULATOR_ALONE;
    if (size > sizeof w.params) return CUDA_ERROR_INVALID_VALUE;
    memcpy(w.params, params[0], size);
    return stub_submit(config->hStream, &w);
}

/* The parameters as one block of memory, if they are given so; NULL if not, or of the wrong size. */
static void *block_of(void **extra, size_t size) {
    void *block = NULL;
    for (void **at = extra; at != NULL && *at != CU_LAUNCH_PARAM_END; at += 2) {
        if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) block = at[1];
        if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE && *(const size_t *)at[1] != size) return NULL;
    }
    return block;
}

CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                        unsigned threads_z, unsigned shared, CUstream stream, void **params, void **extra) {
    IN_CONTEXT(cuLaunchKernel);
    void *block = params == NULL && stub_chip_chosen() == NULL
                      ? block_of(extra, ((emulator_entry *)(void *)function)(NULL) & ~EMULATOR_ALONE)
                      : NULL;
    if (params == NULL && stub_chip_chosen() == NULL && block == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchConfig config = { x, y, z, threads, threads_y, threads_z, shared, stream, NULL, 0 };
    return launch(function, &config, params != NULL ? params : &block);
}

/* A launch that may begin early need not. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
    (void)extra;
    IN_CONTEXT(cuLaunchKernelEx);
    return launch(function, config, params);
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config) {
    const stub_chip *chip = stub_chip_chosen();
    (void)function;
    IN_CONTEXT(cuOccupancyMaxActiveClusters);
    if (chip == NULL ? !stub_clusters() : !chip->hopper) return CUDA_ERROR_NOT_SUPPORTED;
    *clusters = stub_green_units(config->hStream) / (int)stub_chip_cluster(config);
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    const stub_chip *chip = stub_chip_chosen();
    const int limit = chip != NULL ? chip->shared : EMULATOR_MEMORY;
    IN_CONTEXT(cuFuncSetAttribute);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
        if (value == CU_SHAREDMEM_CARVEOUT_MAX_SHARED) enter_cut(function);
        return CUDA_SUCCESS;
    }
    if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
        return (chip != NULL ? chip->hopper : stub_clusters()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value <= limit ? CUDA_SUCCESS
                                                                                          : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *data,
                                const cuuint64_t *shape, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    (void)map, (void)type, (void)rank, (void)data, (void)shape, (void)strides, (void)box, (void)steps, (void)interleave,
        (void)swizzle, (void)promotion, (void)fill;
    const stub_chip *chip = stub_chip_chosen();
    MAY_FAIL(cuTensorMapEncodeTiled);
    return chip != NULL && chip->hopper ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *data,
                                 const cuuint64_t *shape, const cuuint64_t *strides, const int *lower, const int *upper,
                                 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    (void)map, (void)type, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    const stub_chip *chip = stub_chip_chosen();
    MAY_FAIL(cuTensorMapEncodeIm2col);
    if (chip == NULL || !chip->hopper) return CUDA_ERROR_NOT_SUPPORTED;
    bool valid = rank == 4 && (uintptr_t)data % 16 == 0 && channels <= 256 && pixels <= 1024;
    for (int d = 0; d < 3; d++) valid = valid && shape[d] > 0 && strides[d] % 16 == 0 && strides[d] < 1ULL << 40;
    for (int d = 0; d < 2; d++)
        valid = valid && lower[d] >= -128 && lower[d] < 128 && upper[d] >= -128 && upper[d] < 128 && steps[1 + d] > 0 &&
                steps[1 + d] <= 8 && (int64_t)shape[1 + d] + upper[d] > lower[d];
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

CUresult cuMemAlloc(CUdeviceptr *memory, size_t bytes) {
    IN_CONTEXT(cuMemAlloc);
    if (stub_breaks_capture(NULL)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    void *at = NULL;
    if (posix_memalign(&at, 512, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr memory) {
    IN_CONTEXT(cuMemFree);
    if (stub_breaks_capture(NULL)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stub.devices == 1) stub_drain();
    free((void *)(uintptr_t)memory);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuMemHostAlloc);
    if (stub_breaks_capture(NULL)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return posix_memalign(memory, 4096, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *memory) {
    IN_CONTEXT(cuMemFreeHost);
    if (stub_breaks_capture(NULL)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stub.devices == 1) stub_drain();
    free(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemcpyHtoDAsync);
    return stub_submit(stream, &(stub_work){ .to = (void *)(uintptr_t)to, .from = from, .bytes = bytes });
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemcpyDtoHAsync);
    return stub_submit(stream, &(stub_work){ .to = to, .from = (const void *)(uintptr_t)from, .bytes = bytes });
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemcpyDtoDAsync);
    return stub_submit(
        stream, &(stub_work){ .to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes });
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *c, CUstream stream) {
    IN_CONTEXT(cuMemcpy2DAsync);
    if (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < c->Height; i++) {
        const CUresult result =
            stub_submit(stream, &(stub_work){ .to = (void *)(uintptr_t)(c->dstDevice + i * c->dstPitch),
                                              .from = (const void *)(uintptr_t)(c->srcDevice + i * c->srcPitch),
                                              .bytes = c->WidthInBytes });
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemsetD8Async);
    if (stub_breaks_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    memset((void *)(uintptr_t)memory, value, bytes);
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------ peers */

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
    char own[32];
    MAY_FAIL(cuDeviceGetByPCIBusId);
    for (*device = 0; *device < stub.devices; ++*device)
        if (cuDeviceGetPCIBusId(own, sizeof own, *device) == CUDA_SUCCESS && strcasecmp(own, id) == 0)
            return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    MAY_FAIL(cuDeviceCanAccessPeer);
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    static char enabled[64];
    IN_CONTEXT(cuCtxEnablePeerAccess);
    const ptrdiff_t number = (char *)(void *)peer - (char *)(void *)stack[depth - 1];
    if (number == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (enabled[number & 63]) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    enabled[number & 63] = 1;
    return CUDA_SUCCESS;
}

/* The memory of one process is not another's here. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr memory) {
    IN_CONTEXT(cuIpcGetMemHandle);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &memory, sizeof memory);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags) {
    (void)memory, (void)handle, (void)flags;
    IN_CONTEXT(cuIpcOpenMemHandle);
    return CUDA_ERROR_MAP_FAILED;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr memory) {
    (void)memory;
    IN_CONTEXT(cuIpcCloseMemHandle);
    return CUDA_SUCCESS;
}

#pragma GCC visibility pop
