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
#include <time.h>
#include <unistd.h>

#include "chip.h"
#include "device/emulator.h"
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

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define MAY_FAIL(name) \
    do { \
        const CUresult result_ = stub_verdict(STRING(name)); \
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

/* ----------------------------------------------------------------------------------------------------------- graphs */

/* A launch, or a copy if there is no entry. */
typedef struct work {
    struct work *next;
    emulator_entry *entry;
    int64_t blocks;
    int threads, cluster;
    void *to;
    const void *from;
    size_t bytes;
    char params[4096];
} work;

typedef struct graph {
    work *first, **last;
} graph;

/* The one stream that is captured; NULL: none; and one that waits for an event of it, until it waits for one of that.
 * What cannot be captured ends the capture without a graph. */
static CUstream captured, forked;
static graph *capture;

/* Launches of this thread that wait for others, and have not been waited for. A device would not load code before they
 * have ended, nor begin what ranks that share it launch meanwhile. With $STUB_LOADS it would. */
static _Thread_local int waiting;

/* The emulator runs one launch at a time, whoever submits it, but for those that wait for others. */
static CUresult perform(const work *w) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (w->entry != NULL) {
        const bool alone = w->entry(NULL) & EMULATOR_ALONE;
        if (alone) waiting++;
        if (!alone) pthread_mutex_lock(&lock);
        emulator_launch(w->entry, w->params, w->blocks, w->threads, w->cluster);
        if (!alone) pthread_mutex_unlock(&lock);
    } else {
        memmove(w->to, w->from, w->bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult submit(CUstream stream, const work *w) {
    if (captured == NULL || (stream != captured && stream != forked)) return perform(w);
    if (capture == NULL) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *capture->last = malloc(sizeof *w);
    **capture->last = *w;
    capture->last = &(*capture->last)->next;
    return CUDA_SUCCESS;
}

static void free_graph(graph *g) {
    for (work *w = g->first, *next; w != NULL; w = next) {
        next = w->next;
        free(w);
    }
    free(g);
}

static bool breaks_capture(CUstream stream) {
    if (captured == NULL || stream != captured) return false;
    if (capture != NULL) free_graph(capture);
    capture = NULL;
    return true;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    IN_CONTEXT(cuStreamIsCapturing);
    *status = captured == NULL || stream != captured ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture != NULL                      ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                     : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    (void)mode;
    IN_CONTEXT(cuStreamBeginCapture);
    if (captured != NULL) return CUDA_ERROR_ILLEGAL_STATE;
    captured = stream;
    capture = calloc(1, sizeof *capture);
    capture->last = &capture->first;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph_out) {
    if (captured == NULL || stream != captured) return CUDA_ERROR_ILLEGAL_STATE;
    if (forked != NULL && capture != NULL) free_graph(capture), capture = NULL;
    *graph_out = (CUgraph)(void *)capture;
    captured = forked = NULL;
    capture = NULL;
    if (*graph_out == NULL) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    IN_CONTEXT(cuStreamEndCapture);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph_in, unsigned long long flags) {
    (void)flags;
    IN_CONTEXT(cuGraphInstantiateWithFlags);
    graph *copy = calloc(1, sizeof *copy);
    copy->last = &copy->first;
    for (const work *w = ((graph *)(void *)graph_in)->first; w != NULL; w = w->next) {
        *copy->last = malloc(sizeof *w);
        **copy->last = *w;
        (*copy->last)->next = NULL;
        copy->last = &(*copy->last)->next;
    }
    *executable = (CUgraphExec)(void *)copy;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    IN_CONTEXT(cuGraphLaunch);
    for (const work *w = ((graph *)(void *)executable)->first; w != NULL; w = w->next) {
        work again = *w;
        again.next = NULL;
        const CUresult result = submit(stream, &again);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph_in) {
    free_graph((graph *)(void *)graph_in);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
    free_graph((graph *)(void *)executable);
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
    if (waiting > 0 && stub.devices == 1 && getenv("STUB_LOADS") == NULL) return CUDA_ERROR_NOT_PERMITTED;
    if (stub_chip_chosen() != NULL) {
        *function = stub_chip_function(name);
        return CUDA_SUCCESS;
    }
    snprintf(entry, sizeof entry, "entry_%s", name);
    *function = find_entry(module, entry);
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult launch(CUfunction function, const CUlaunchConfig *config, void **params) {
    const stub_chip *chip = stub_chip_chosen();
    emulator_entry *entry = (emulator_entry *)(void *)function;
    if (config->gridDimY * config->gridDimZ * config->blockDimY * config->blockDimZ != 1)
        return CUDA_ERROR_INVALID_VALUE;
    stub.launches++;
    stub.shapes = ((stub.shapes * 31 + config->gridDimX) * 31 + config->blockDimX) * 31 + stub_chip_cluster(config);
    stub.stream = config->hStream;
    stub.units = stub_green_units(config->hStream);
    if (chip != NULL) return stub_chip_launch(chip, function, config, stub.units);
    if (config->gridDimX == 0 || config->blockDimX > EMULATOR_THREADS || config->sharedMemBytes > EMULATOR_MEMORY)
        return CUDA_ERROR_INVALID_VALUE;
    const int cluster = (int)stub_chip_cluster(config), most = stub_clusters() ? EMULATOR_CLUSTER : 1;
    if (cluster > most || config->gridDimX % (unsigned)cluster != 0) return CUDA_ERROR_NOT_SUPPORTED;
    work w = { .entry = entry, .blocks = config->gridDimX, .threads = (int)config->blockDimX, .cluster = cluster };
    const unsigned size = entry(NULL) & ~EMULATOR_ALONE;
    if (size > sizeof w.params) return CUDA_ERROR_INVALID_VALUE;
    memcpy(w.params, params[0], size);
    return submit(config->hStream, &w);
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
    (void)function;
    IN_CONTEXT(cuFuncSetAttribute);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;
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

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    MAY_FAIL(cuThreadExchangeStreamCaptureMode);
    *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------------------------------------- streams and events */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuStreamCreate);
    *stream = malloc(1);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
    stub.destroyed++;
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    if (breaks_capture(stream)) captured = NULL;
    if (!stub_green_forget(stream)) free(stream);
    return depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamSynchronize(CUstream stream) {
    IN_CONTEXT(cuStreamSynchronize);
    if (breaks_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    waiting = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
    (void)stream;
    IN_CONTEXT(cuStreamQuery);
    waiting = 0;
    return CUDA_SUCCESS;
}

typedef struct mark {
    struct timespec time;
    CUstream stream;
} mark;

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuEventCreate);
    *event = calloc(1, sizeof(mark));
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    mark *m = (mark *)event;
    IN_CONTEXT(cuEventRecord);
    m->stream = stream;
    clock_gettime(CLOCK_MONOTONIC, &m->time);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    const mark *m = (const mark *)event;
    (void)flags;
    IN_CONTEXT(cuStreamWaitEvent);
    if (captured == NULL || m->stream == stream) return CUDA_SUCCESS;
    if (m->stream == captured && forked == NULL) forked = stream;
    if (m->stream == forked && stream == captured) forked = NULL;
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
    (void)event;
    IN_CONTEXT(cuEventSynchronize);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent second) {
    const struct timespec *a = &((const mark *)first)->time, *b = &((const mark *)second)->time;
    IN_CONTEXT(cuEventElapsedTime);
    *milliseconds = (float)(1e3 * (double)(b->tv_sec - a->tv_sec) + 1e-6 * (double)(b->tv_nsec - a->tv_nsec));
    return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

CUresult cuMemAlloc(CUdeviceptr *memory, size_t bytes) {
    IN_CONTEXT(cuMemAlloc);
    if (breaks_capture(captured)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    void *at = NULL;
    if (posix_memalign(&at, 512, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr memory) {
    IN_CONTEXT(cuMemFree);
    if (breaks_capture(captured)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    free((void *)(uintptr_t)memory);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    IN_CONTEXT(cuMemHostAlloc);
    if (breaks_capture(captured)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return posix_memalign(memory, 4096, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *memory) {
    IN_CONTEXT(cuMemFreeHost);
    if (breaks_capture(captured)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    free(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemcpyHtoDAsync);
    return submit(stream, &(work){ .to = (void *)(uintptr_t)to, .from = from, .bytes = bytes });
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemcpyDtoHAsync);
    return submit(stream, &(work){ .to = to, .from = (const void *)(uintptr_t)from, .bytes = bytes });
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemcpyDtoDAsync);
    return submit(stream,
                  &(work){ .to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes });
}

CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream) {
    IN_CONTEXT(cuMemsetD8Async);
    if (breaks_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
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
