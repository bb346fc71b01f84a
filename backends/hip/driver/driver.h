/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's runtime library libamdhip64, opened at run time: its entry points, declared here so that no header of ROCm is
 * needed, and its errors in its own words. */
#ifndef TRINE_HIP_DRIVER_H
#define TRINE_HIP_DRIVER_H

#include "backends/backend.h"

typedef int hip_result; /* hipError_t */
enum {
    HIP_SUCCESS = 0,
    HIP_OUT_OF_MEMORY = 2,
    HIP_NO_DEVICE = 100,
    HIP_NOT_READY = 600,
    HIP_PEER_ACCESS_ALREADY_ENABLED = 704
};

/* Numbers of hipDeviceAttribute_t, the same in HIP 5 to 7. */
typedef enum hip_attribute {
    HIP_CLOCK_RATE = 5,
    HIP_L2_CACHE_SIZE = 19,
    HIP_MEMORY_BUS_WIDTH = 59,
    HIP_MEMORY_CLOCK_RATE = 60,
    HIP_MULTIPROCESSOR_COUNT = 63,
    HIP_MAX_SHARED_MEMORY_PER_BLOCK = 74
} hip_attribute;

/* The last two are of HIP 6 and later. */
enum {
    HIP_HOST_MALLOC_PORTABLE = 1,
    HIP_HOST_MALLOC_COHERENT = 0x40000000,
    HIP_MALLOC_UNCACHED = 3,
    HIP_IPC_LAZY = 1,
    HIP_MEMCPY_DEVICE_TO_DEVICE = 3
};
enum { HIP_STREAM_NON_BLOCKING = 1, HIP_CAPTURE_MODE_THREAD_LOCAL = 1, HIP_CAPTURE_MODE_RELAXED = 2 };

typedef struct hip_module *hip_module;
typedef struct hip_code *hip_code;
typedef struct hip_stream *hip_stream;
typedef struct hip_event *hip_event;
typedef struct hip_graph *hip_graph;
typedef struct hip_executable *hip_executable;
typedef uintptr_t hip_pointer;
typedef struct hip_ipc_handle {
    char reserved[64];
} hip_ipc_handle;

/* Every entry point in use, without the prefix, whose type no version of HIP has changed. */
#define HIP_ENTRY_POINTS(ENTRY) \
    ENTRY(const char *, GetErrorString, (hip_result)) \
    ENTRY(hip_result, GetDeviceCount, (int *)) \
    ENTRY(hip_result, RuntimeGetVersion, (int *)) \
    ENTRY(hip_result, DeviceGetName, (char *, int, int)) \
    ENTRY(hip_result, DeviceTotalMem, (size_t *, int)) \
    ENTRY(hip_result, DeviceGetAttribute, (int *, hip_attribute, int)) \
    ENTRY(hip_result, DeviceGetPCIBusId, (char *, int, int)) \
    ENTRY(hip_result, GetDevice, (int *)) \
    ENTRY(hip_result, SetDevice, (int)) \
    ENTRY(hip_result, ModuleLoadData, (hip_module *, const void *)) \
    ENTRY(hip_result, ModuleGetFunction, (hip_code *, hip_module, const char *)) \
    ENTRY(hip_result, ModuleLaunchKernel, \
          (hip_code, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, hip_stream, \
           void **arguments, void **extra)) \
    ENTRY(hip_result, ThreadExchangeStreamCaptureMode, (int *)) \
    ENTRY(hip_result, StreamCreateWithFlags, (hip_stream *, unsigned)) \
    ENTRY(hip_result, StreamDestroy, (hip_stream)) \
    ENTRY(hip_result, StreamSynchronize, (hip_stream)) \
    ENTRY(hip_result, StreamQuery, (hip_stream)) \
    ENTRY(hip_result, StreamWaitEvent, (hip_stream, hip_event, unsigned)) \
    ENTRY(hip_result, EventCreateWithFlags, (hip_event *, unsigned)) \
    ENTRY(hip_result, EventDestroy, (hip_event)) \
    ENTRY(hip_result, EventRecord, (hip_event, hip_stream)) \
    ENTRY(hip_result, EventSynchronize, (hip_event)) \
    ENTRY(hip_result, EventElapsedTime, (float *, hip_event, hip_event)) \
    ENTRY(hip_result, Malloc, (hip_pointer *, size_t)) \
    ENTRY(hip_result, Free, (hip_pointer)) \
    ENTRY(hip_result, HostMalloc, (void **, size_t, unsigned)) \
    ENTRY(hip_result, HostFree, (void *)) \
    ENTRY(hip_result, MemcpyHtoDAsync, (hip_pointer, const void *, size_t, hip_stream)) \
    ENTRY(hip_result, MemcpyDtoHAsync, (void *, hip_pointer, size_t, hip_stream)) \
    ENTRY(hip_result, MemcpyDtoDAsync, (hip_pointer, hip_pointer, size_t, hip_stream)) \
    ENTRY(hip_result, Memcpy2DAsync, (void *, size_t, const void *, size_t, size_t, size_t, int, hip_stream)) \
    ENTRY(hip_result, MemsetD8Async, (hip_pointer, unsigned char, size_t, hip_stream)) \
    ENTRY(hip_result, ExtMallocWithFlags, (hip_pointer *, size_t, unsigned)) \
    ENTRY(hip_result, IpcGetMemHandle, (hip_ipc_handle *, hip_pointer)) \
    ENTRY(hip_result, IpcOpenMemHandle, (hip_pointer *, hip_ipc_handle, unsigned)) \
    ENTRY(hip_result, IpcCloseMemHandle, (hip_pointer)) \
    ENTRY(hip_result, DeviceGetByPCIBusId, (int *, const char *)) \
    ENTRY(hip_result, DeviceCanAccessPeer, (int *, int, int)) \
    ENTRY(hip_result, DeviceEnablePeerAccess, (int, unsigned)) \
    ENTRY(hip_result, StreamIsCapturing, (hip_stream, int *)) \
    ENTRY(hip_result, StreamBeginCapture, (hip_stream, int)) \
    ENTRY(hip_result, StreamEndCapture, (hip_stream, hip_graph *)) \
    ENTRY(hip_result, GraphInstantiateWithFlags, (hip_executable *, hip_graph, unsigned long long)) \
    ENTRY(hip_result, GraphLaunch, (hip_executable, hip_stream)) \
    ENTRY(hip_result, GraphExecDestroy, (hip_executable)) \
    ENTRY(hip_result, GraphDestroy, (hip_graph))

typedef struct hip_driver {
    __typeof__(((trine_host *)0)->error) error; /* the core's; it outlives every library */
#define ENTRY(type, name, parameters) type(*name) parameters;
    HIP_ENTRY_POINTS(ENTRY)
#undef ENTRY
    hip_result (*GetDeviceProperties)(void *, int); /* of the layout whose architecture's name is at arch_at */
    const char *properties;                         /* its name */
    size_t arch_at;
    /* hipExtStreamCreateWithCUMask: a stream for the CUs of a mask; NULL: the library has none */
    hip_result (*StreamCreateWithMask)(hip_stream *, uint32_t words, const uint32_t *mask);
} hip_driver;

/* Opens libamdhip64. NULL with the reason: "no driver: ...", "no device: ...". */
const hip_driver *hip_driver_open(const trine_host *host, char *reason_out, size_t reason_size);

/* "gfx942", from the device's properties. */
hip_result hip_architecture(const hip_driver *driver, int device, size_t size, char *name_out);

/* What the library calls a result. Never NULL. */
const char *hip_words(const hip_driver *driver, hip_result result);

/* TRINE_OK, or the error that a call came back with, recorded as "hipMalloc: out of memory": TRINE_ERR_MEMORY or
 * TRINE_ERR_DEVICE. */
trine_status hip_status(const hip_driver *driver, const char *function, hip_result result);

/* Calls an entry point by its name in HIP_ENTRY_POINTS. */
#define HIP_CALL(driver, name, ...) hip_status(driver, "hip" #name, (driver)->name(__VA_ARGS__))

#endif
