/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HIP backend share: devices, queues, and the device code that was built in. */
#ifndef TRINE_HIP_STATE_H
#define TRINE_HIP_STATE_H

#include <pthread.h>

#include "backends/simt/core/foreign.h"
#include "backends/simt/core/functions.h"
#include "backends/simt/core/parts.h"
#include "backends/hip/core/chips.h"
#include "driver.h"
#include "hip_archs.h"

enum { HIP_MAX_DEVICES = 16, HIP_MARKS = 64 };

/* The architectures that code was built for. */
#define ARCH(op, arch) HIP_ARCH_##arch,
enum { HIP_EACH_ARCH(ARCH, ) HIP_ARCHS };
#undef ARCH
extern const char *const hip_archs[HIP_ARCHS];

typedef struct hip_device {
    const hip_driver *driver;
    int device;
    int arch; /* place in hip_archs */
    const hip_chip *chip;
    int units; /* of the whole device */
    size_t memory;
    simt_parts parts; /* none until a queue wants a part */
    pthread_mutex_t lock;
    hip_module *module; /* of each op, loaded with its first function */
    simt_functions functions;
    simt_foreign_list foreign;
} hip_device;

typedef struct hip_queue {
    hip_stream stream;
    bool own; /* not the caller's */
    int units;
    uint64_t part; /* set of the device's groups, which are its own; 0: it has all CUs */
    hip_event mark[HIP_MARKS];
    bool loads_only; /* code: launches do no more */
} hip_queue;

/* part.c: parts the device's CUs, once, and opens the stream of a queue that has taken groups of them. The lock is held
 * for the first. */
trine_status hip_find_parts(hip_device *d);
trine_status hip_open_part(const hip_device *d, hip_queue *queue);

/* Makes the device the thread's for the calls until hip_leave(), which puts back the one before. */
typedef struct hip_scope {
    bool changed;
    int before;
} hip_scope;
trine_status hip_enter(const hip_device *d, hip_scope *scope_out);
void hip_leave(const hip_device *d, hip_scope scope);

/* Lets the thread's device, which is this one, reach the memory of another one, by its PCI address. */
trine_status hip_reach_peer(hip_device *d, const char *pci);

/* What this module has of an op: its kernels, and a code object for each architecture. */
typedef struct hip_op {
    const trine_kernel *kernels; /* NULL: a hole */
    const void *code[HIP_ARCHS];
} hip_op;
extern const hip_op hip_ops[];

#endif
