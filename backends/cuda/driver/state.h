/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA backend share: devices, queues, and the device code that was built in. */
#ifndef TRINE_CUDA_STATE_H
#define TRINE_CUDA_STATE_H

#include <pthread.h>

#include "backends/simt/core/foreign.h"
#include "backends/simt/core/functions.h"
#include "backends/simt/core/parts.h"
#include "driver.h"

enum { CUDA_MAX_DEVICES = 16, CUDA_MARKS = 64, CUDA_MOST_CLUSTER = 8 /* of any device that has clusters */ };

/* The code of an op: what all architectures have, and what is for sm_90a alone. */
typedef enum cuda_part { CUDA_COMMON, CUDA_HOPPER, CUDA_PARTS } cuda_part;

/* One more than the clusters of so many blocks, each of which fills an SM, that are held at once; 0: not asked yet. */
typedef _Atomic int cuda_clusters[SIMT_RING_WIDE + 1];

typedef struct cuda_device {
    const cuda_driver *driver;
    int units, major, minor; /* units: of the whole device; kernels ask for those of their queue, by simt_units() */
    int shared;              /* bytes of shared memory that a block can have */
    size_t memory;
    bool tensor_maps, cluster_launch;
    bool overlaps; /* a launch can begin while the previous one ends, and its code waits for that */
    CUdevice device;
    CUcontext context; /* the primary one; NULL until the first queue is opened */
    /* The SMs in groups, of one split, as descriptors want those that they join; none until a queue wants a part. */
    simt_parts parts;
    CUdevResource group[SIMT_MOST_PARTS];
    pthread_mutex_t lock;
    CUmodule (*module)[CUDA_PARTS]; /* of each op, loaded with their first function */
    cuda_clusters clusters;         /* that the whole device holds */
    CUmodule peaks;
    simt_functions functions;
    simt_foreign_list foreign;
} cuda_device;

typedef struct cuda_queue {
    CUstream stream;
    bool own; /* not the caller's */
    int units;
    uint64_t part;          /* set of the device's groups, which are its own; 0: it has all SMs */
    CUgreenCtx green;       /* of its part */
    cuda_clusters clusters; /* that its units hold, if they are not all */
    CUevent mark[CUDA_MARKS];
    bool loads_only; /* code: launches do no more */
    bool shares;     /* the device with queues whose launches its own wait for */
} cuda_queue;

/* The first queue retains the primary context, which stays: other queues may come, and the process's end releases
 * it. */
trine_status cuda_retain(cuda_device *d);

/* part.c: parts the device's SMs, once; opens the stream of a queue that has taken groups of them, and takes away what
 * that made besides the stream. The primary context is current; the lock is held for the first. */
trine_status cuda_find_parts(cuda_device *d);
trine_status cuda_open_part(cuda_device *d, cuda_queue *queue);
void cuda_close_part(cuda_device *d, cuda_queue *queue);

/* The SMs of a stream that the caller made: those of its green context, or all. The primary context is current. */
int cuda_stream_units(const cuda_device *d, CUstream stream);

/* Makes the device's primary context current for the calls until cuda_leave(), which puts back what was. Callers
 * usually have it current already. */
typedef struct cuda_scope {
    bool pushed;
} cuda_scope;
trine_status cuda_enter(const cuda_device *d, cuda_scope *scope_out);
void cuda_leave(const cuda_device *d, cuda_scope scope);

/* Lets the current context, this device's, reach the memory of another one, by its PCI address. */
trine_status cuda_reach_peer(cuda_device *d, const char *pci);

/* What this module has of an op: its kernels, and its device code. */
typedef struct cuda_op {
    const trine_kernel *kernels;  /* NULL: a hole */
    const void *code[CUDA_PARTS]; /* NULL: not built */
} cuda_op;
extern const cuda_op cuda_ops[];

/* Why the device cannot run what the call's op has for sm_90a; NULL if it can. */
const char *cuda_refuse_hopper(const trine_call *call);

/* Strides in bytes as tensor maps take them (cuTensorMapEncodeTiled). */
static inline bool cuda_copyable_stride(int64_t bytes) {
    return bytes > 0 && bytes % 16 == 0 && bytes < INT64_C(1) << 40;
}

/* A launch of a function of the call's op, in more detail than simt_launch() has. Blocks that come early crowd where
 * SMs are free first: launches bound by arithmetic go alone, but for those that fill the device with a block for each
 * SM. */
typedef struct cuda_launch {
    cuda_part part;
    char name[SIMT_NAME_SIZE];
    int64_t blocks;
    int threads;
    int cluster; /* blocks of one, of which `blocks` is a multiple; 0: none */
    int shared;  /* bytes, the same at every launch of the function */
    /* it reads through the first-level cache, which is to have what its blocks leave of that memory;
     * otherwise all is shared memory */
    bool cached;
    /* its blocks come when the previous launch has ended; otherwise, where the device can, while that ends */
    bool alone;
    /* its blocks wait for each other, and none comes unless all have room at once */
    bool together;
    const void *params;
} cuda_launch;
trine_status cuda_launch_function(const trine_call *call, const cuda_launch *launch);

/* How many clusters of a launch the queue's SMs hold at once, the most that should be launched of a function whose
 * blocks go on from tile to tile. Where a block takes more than half of an SM's shared memory that follows from the
 * cluster's size, for which the driver is asked once. */
trine_status cuda_clusters_held(const trine_call *call, const cuda_launch *launch, int *clusters_out);

/* The same of a function that simt_launch() takes. */
trine_status cuda_function_clusters(const trine_call *call, const simt_function *function, int threads,
                                    int *clusters_out);

/* peak.c: the backend's `peak`. */
trine_status cuda_peak(const trine_device *device, void *queue, trine_peak *peak);

/* The architecture, 90 for sm_90, of the code that a device of compute capability major.minor runs;
 * 0 if none was built that it can. */
int cuda_code_for(int major, int minor);

#endif
