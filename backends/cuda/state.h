/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA backend share: devices, queues, and the device code that was built in. */
#ifndef TRINE_CUDA_STATE_H
#define TRINE_CUDA_STATE_H

#include <pthread.h>

#include "backends/simt/functions.h"
#include "driver.h"

enum { CUDA_MAX_DEVICES = 16, CUDA_MARKS = 64 };

typedef struct cuda_device {
    const cuda_driver *driver;
    CUdevice device;
    CUcontext context; /* the primary one; NULL until the first queue is opened */
    pthread_mutex_t lock;
    CUmodule module[TRINE_OP_COUNT]; /* by op, loaded with its first function */
    simt_functions functions;
} cuda_device;

typedef struct cuda_queue {
    CUstream stream;
    bool own; /* not the caller's */
    CUevent mark[CUDA_MARKS];
} cuda_queue;

/* The first queue retains the primary context, which stays: other queues may come, and the process's end releases it. */
trine_status cuda_retain(cuda_device *d);

/* Makes the device's primary context current for the calls until cuda_leave(), which puts back what was. Callers usually have it current already. */
typedef struct cuda_scope {
    bool pushed;
} cuda_scope;
trine_status cuda_enter(const cuda_device *d, cuda_scope *scope_out);
void cuda_leave(const cuda_device *d, cuda_scope scope);

/* What this module has of an op: its kernels, and device code for all architectures. */
typedef struct cuda_op {
    const trine_kernel *kernels; /* NULL: a hole */
    const void *code;
} cuda_op;
extern const cuda_op cuda_ops[TRINE_OP_COUNT];

/* Was device code built that a device of compute capability major.minor can run? */
bool cuda_has_code(int major, int minor);

#endif
