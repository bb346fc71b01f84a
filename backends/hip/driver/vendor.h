/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's runtime library in the terms of backends/simt/queue.c. */
#ifndef TRINE_HIP_VENDOR_H
#define TRINE_HIP_VENDOR_H

#include "state.h"

typedef hip_device simt_device;
typedef hip_queue simt_queue;
typedef hip_scope simt_scope;
typedef hip_pointer simt_pointer;
typedef hip_graph simt_graph;
typedef hip_executable simt_executable;
typedef int simt_capture_status;
typedef int simt_capture_mode;
typedef hip_result simt_result;
typedef hip_module simt_module;
typedef hip_code simt_entry;
typedef hip_ipc_handle simt_ipc_handle;
/* Blocks of a group's launch that a CU has: of MI300X 304 in all, which take 40 MB. */
enum { SIMT_EXCHANGES = 1, SIMT_READS_LANDING = 0 };
enum { SIMT_MARKS = HIP_MARKS, SIMT_STREAM_NON_BLOCKING = HIP_STREAM_NON_BLOCKING, SIMT_EVENT_DEFAULT = 0 };
enum {
    SIMT_SUCCESS = HIP_SUCCESS,
    SIMT_NOT_READY = HIP_NOT_READY,
    SIMT_HOST_PORTABLE = HIP_HOST_MALLOC_PORTABLE,
    SIMT_HOST_COHERENT = HIP_HOST_MALLOC_PORTABLE | HIP_HOST_MALLOC_COHERENT, /* seen by a launch that runs */
    SIMT_IPC_LAZY = HIP_IPC_LAZY
};
enum {
    SIMT_NOT_CAPTURING = 0,
    SIMT_CAPTURE_OF_THREAD = HIP_CAPTURE_MODE_THREAD_LOCAL,
    SIMT_CAPTURE_RELAXED = HIP_CAPTURE_MODE_RELAXED
};
#define SIMT_DEFAULT_STREAM NULL
/* HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END. */
#define SIMT_PARAM_POINTER ((void *)1)
#define SIMT_PARAM_SIZE ((void *)2)
#define SIMT_PARAM_END ((void *)3)

#define SIMT_CALL(driver, name, ...) HIP_CALL(driver, name, __VA_ARGS__)
#define SIMT_LAUNCH_KERNEL ModuleLaunchKernel
#define StreamCreate StreamCreateWithFlags
#define EventCreate EventCreateWithFlags
#define MemAlloc Malloc
#define MemFree Free
#define MemHostAlloc HostMalloc
#define MemFreeHost HostFree
#define simt_enter hip_enter
#define simt_leave hip_leave
#define simt_words hip_words
#define simt_reach_peer hip_reach_peer
#define simt_find_parts hip_find_parts
#define simt_open_part hip_open_part

/* What other devices write while a launch reads it must not be in a cache: of other memory than this, what peers do is
 * seen when a launch ends (HIP programming guide, coherency control). */
static inline trine_status simt_alloc_for_peers(const hip_device *d, hip_pointer *memory_out, size_t bytes) {
    return HIP_CALL(d->driver, ExtMallocWithFlags, memory_out, bytes, HIP_MALLOC_UNCACHED);
}

/* A block has what memory there is for it without being allowed. */
static inline trine_status simt_allow_shared(const hip_device *d, hip_code function, uint32_t bytes) {
    (void)d, (void)function, (void)bytes;
    return TRINE_OK;
}

/* Lines without gaps, from lines that begin `step` bytes after each other. */
static inline trine_status simt_copy_lines(const hip_device *d, hip_stream stream, void *to, const void *from,
                                           size_t line, size_t step, size_t lines) {
    return HIP_CALL(d->driver, Memcpy2DAsync, to, line, from, step, line, lines, HIP_MEMCPY_DEVICE_TO_DEVICE, stream);
}

/* A CU's memory is not cut. */
static inline void simt_share_device(hip_queue *queue) { (void)queue; }

/* No launch is sized by the units of a stream that the caller made. */
static inline int simt_stream_units(const hip_device *d, hip_stream stream) { return (void)stream, d->units; }

/* All that a part has is its stream. */
static inline void simt_close_part(hip_device *d, hip_queue *queue) { (void)d, (void)queue; }

/* A device is there without being retained. */
static inline trine_status simt_retain(hip_device *d) {
    (void)d;
    return TRINE_OK;
}

#endif
