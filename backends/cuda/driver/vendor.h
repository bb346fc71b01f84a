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
enum { SIMT_MARKS = CUDA_MARKS, SIMT_STREAM_NON_BLOCKING = CU_STREAM_NON_BLOCKING, SIMT_EVENT_DEFAULT = CU_EVENT_DEFAULT };
#define SIMT_NOT_CAPTURING CU_STREAM_CAPTURE_STATUS_NONE
#define SIMT_CAPTURE_OF_THREAD CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

#define SIMT_CALL CUDA_CALL
#define simt_retain cuda_retain
#define simt_enter cuda_enter
#define simt_leave cuda_leave

#endif
