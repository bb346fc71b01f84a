/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's driver in the terms of backends/simt/queue.c. */
#ifndef TRINE_CUDA_VENDOR_H
#define TRINE_CUDA_VENDOR_H

#include "state.h"

typedef cuda_device simt_device;
typedef cuda_queue simt_queue;
typedef cuda_scope simt_scope;
typedef CUdeviceptr simt_pointer;
typedef CUgraph simt_graph;
typedef CUgraphExec simt_executable;
typedef CUstreamCaptureStatus simt_capture_status;
typedef CUstreamCaptureMode simt_capture_mode;
typedef CUresult simt_result;
typedef CUmodule simt_module;
typedef CUfunction simt_entry;
typedef CUipcMemHandle simt_ipc_handle;
enum {
    SIMT_MARKS = CUDA_MARKS,
    SIMT_EXCHANGES = 4, /* blocks of a group's launch that an SM has */
    SIMT_READS_LANDING = 1,
    SIMT_STREAM_NON_BLOCKING = CU_STREAM_NON_BLOCKING,
    SIMT_EVENT_DEFAULT = CU_EVENT_DEFAULT,
    SIMT_HOST_PORTABLE = CU_MEMHOSTALLOC_PORTABLE,
    SIMT_HOST_COHERENT = CU_MEMHOSTALLOC_PORTABLE, /* seen by a launch that runs */
    SIMT_IPC_LAZY = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
};
#define SIMT_DEFAULT_STREAM CU_STREAM_LEGACY
#define SIMT_NOT_CAPTURING CU_STREAM_CAPTURE_STATUS_NONE
#define SIMT_CAPTURE_OF_THREAD CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

#define SIMT_SUCCESS CUDA_SUCCESS
#define SIMT_NOT_READY CUDA_ERROR_NOT_READY
#define SIMT_CAPTURE_RELAXED CU_STREAM_CAPTURE_MODE_RELAXED
#define SIMT_PARAM_POINTER CU_LAUNCH_PARAM_BUFFER_POINTER
#define SIMT_PARAM_SIZE CU_LAUNCH_PARAM_BUFFER_SIZE
#define SIMT_PARAM_END CU_LAUNCH_PARAM_END

#define SIMT_CALL(driver, name, ...) CUDA_CALL(driver, name, __VA_ARGS__)
#define SIMT_LAUNCH_KERNEL LaunchKernel
#define simt_retain cuda_retain
#define simt_enter cuda_enter
#define simt_leave cuda_leave
#define simt_words cuda_words
#define simt_reach_peer cuda_reach_peer
#define simt_find_parts cuda_find_parts
#define simt_open_part cuda_open_part
#define simt_close_part cuda_close_part
#define simt_stream_units cuda_stream_units

/* Peers reach any memory of a device. */
static inline trine_status simt_alloc_for_peers(const cuda_device *d, CUdeviceptr *memory_out, size_t bytes) {
    return CUDA_CALL(d->driver, MemAlloc, memory_out, bytes);
}

/* Lines without gaps, from lines that begin `step` bytes after each other. */
static inline trine_status simt_copy_lines(const cuda_device *d, CUstream stream, void *to, const void *from,
                                           size_t line, size_t step, size_t lines) {
    const CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                 .srcDevice = (CUdeviceptr)(uintptr_t)from,
                                 .srcPitch = step,
                                 .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                 .dstDevice = (CUdeviceptr)(uintptr_t)to,
                                 .dstPitch = line,
                                 .WidthInBytes = line,
                                 .Height = lines };
    return CUDA_CALL(d->driver, Memcpy2DAsync, &copy, stream);
}

/* Where launches of ranks that share the device wait for others, all parts of an SM's memory must be cut alike: to cut
 * them anew the device waits until nothing runs. */
static inline void simt_share_device(cuda_queue *queue) { queue->shares = true; }

static inline trine_status simt_allow_shared(const cuda_device *d, CUfunction function, uint32_t bytes) {
    return CUDA_CALL(d->driver, FuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                     (int)bytes);
}

#endif
