/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's driver library, opened at run time: its entry points, and its errors in its own words. */
#ifndef TRINE_CUDA_DRIVER_H
#define TRINE_CUDA_DRIVER_H

#include <cuda.h>

#include "backends/backend.h"

/* Every entry point in use, without the prefix. cuda.h maps some to their current version (cuMemAlloc to
 * cuMemAlloc_v2); the symbol is looked up as mapped. */
#define CUDA_ENTRY_POINTS(ENTRY) \
    ENTRY(Init) \
    ENTRY(DriverGetVersion) \
    ENTRY(GetErrorString) \
    ENTRY(DeviceGetCount) \
    ENTRY(DeviceGet) \
    ENTRY(DeviceGetName) \
    ENTRY(DeviceTotalMem) \
    ENTRY(DeviceGetAttribute) \
    ENTRY(DeviceGetPCIBusId) \
    ENTRY(DevicePrimaryCtxRetain) \
    ENTRY(CtxPushCurrent) \
    ENTRY(CtxPopCurrent) \
    ENTRY(CtxGetCurrent) \
    ENTRY(ModuleLoadData) \
    ENTRY(ModuleGetFunction) \
    ENTRY(FuncSetAttribute) \
    ENTRY(LaunchKernel) \
    ENTRY(LaunchKernelEx) \
    ENTRY(OccupancyMaxActiveClusters) \
    ENTRY(TensorMapEncodeTiled) \
    ENTRY(TensorMapEncodeIm2col) \
    ENTRY(ThreadExchangeStreamCaptureMode) \
    ENTRY(StreamCreate) \
    ENTRY(StreamDestroy) \
    ENTRY(StreamSynchronize) \
    ENTRY(StreamQuery) \
    ENTRY(StreamWaitEvent) \
    ENTRY(EventCreate) \
    ENTRY(EventDestroy) \
    ENTRY(EventRecord) \
    ENTRY(EventSynchronize) \
    ENTRY(EventElapsedTime) \
    ENTRY(MemAlloc) \
    ENTRY(MemFree) \
    ENTRY(MemHostAlloc) \
    ENTRY(MemFreeHost) \
    ENTRY(MemcpyHtoDAsync) \
    ENTRY(MemcpyDtoHAsync) \
    ENTRY(MemcpyDtoDAsync) \
    ENTRY(Memcpy2DAsync) \
    ENTRY(MemsetD8Async) \
    ENTRY(IpcGetMemHandle) \
    ENTRY(IpcOpenMemHandle) \
    ENTRY(IpcCloseMemHandle) \
    ENTRY(DeviceGetByPCIBusId) \
    ENTRY(DeviceCanAccessPeer) \
    ENTRY(CtxEnablePeerAccess) \
    ENTRY(StreamIsCapturing) \
    ENTRY(StreamBeginCapture) \
    ENTRY(StreamEndCapture) \
    ENTRY(GraphInstantiateWithFlags) \
    ENTRY(GraphLaunch) \
    ENTRY(GraphExecDestroy) \
    ENTRY(GraphDestroy)

/* Those for queues with a part of the device's SMs, which a driver may lack. */
#define CUDA_PART_ENTRY_POINTS(ENTRY) \
    ENTRY(DeviceGetDevResource) \
    ENTRY(DevSmResourceSplitByCount) \
    ENTRY(DevResourceGenerateDesc) \
    ENTRY(GreenCtxCreate) \
    ENTRY(GreenCtxDestroy) \
    ENTRY(GreenCtxStreamCreate) \
    ENTRY(GreenCtxGetDevResource) \
    ENTRY(StreamGetGreenCtx)

typedef struct cuda_driver {
    __typeof__(((trine_host *)0)->error) error; /* the core's; it outlives every library */
    int version;                                /* as in 13000 */
#define ENTRY(name) __typeof__(&cu##name) name;
    CUDA_ENTRY_POINTS(ENTRY)
    CUDA_PART_ENTRY_POINTS(ENTRY)
#undef ENTRY
    const char *no_parts; /* the first of the latter that the driver lacks; NULL: it has all */
} cuda_driver;

/* Opens libcuda.so.1 and initialises it. NULL with the reason: "no driver: ...", "driver too old: have 12.4, need
 * 13.0". */
const cuda_driver *cuda_driver_open(const trine_host *host, char *reason_out, size_t reason_size);

/* What the driver calls a result. Never NULL. */
const char *cuda_words(const cuda_driver *driver, CUresult result);

/* TRINE_OK, or the error that a call of the driver came back with, recorded as "cuMemAlloc: out of memory":
 * TRINE_ERR_MEMORY or TRINE_ERR_DEVICE. */
trine_status cuda_status(const cuda_driver *driver, const char *function, CUresult result);

/* Calls an entry point by its name in CUDA_ENTRY_POINTS. */
#define CUDA_CALL(driver, name, ...) cuda_status(driver, "cu" #name, (driver)->name(__VA_ARGS__))

#endif
