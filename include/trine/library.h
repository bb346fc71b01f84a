/* SPDX-License-Identifier: Apache-2.0 */
/* The library, its devices, queues, memory and graphs: what a program has before it runs an op. */
#ifndef TRINE_LIBRARY_H
#define TRINE_LIBRARY_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------- life cycle */

/* Choices for trine_open(). Zero everywhere means: what the environment says, else the default. */
typedef struct trine_options {
    size_t struct_size;      /* sizeof(trine_options) */
    const char *backends;    /* comma-separated list of backends to load, "cpu" always among them;
                              * NULL: TRINE_BACKENDS, else all */
    const char *plugin_path; /* colon-separated directories searched first; NULL: TRINE_PATH */
    const char *isa;         /* highest CPU level to use ("baseline", "v3", ...); NULL: TRINE_ISA,
                              * else what the CPU has */
    const char *tune_file;   /* tuning cache; NULL: TRINE_TUNE, else the user's cache directory; "" for none */
    /* bytes that the CPU device takes for its last-level cache, past which larger outputs are stored: a part of it,
     * where others have the rest; 0: what the machine has */
    int64_t last_level_cache;
} trine_options;

/* Reads the machine's topology, finds the devices and loads the backends. `options` may be NULL.
 *
 * A GPU backend that cannot be used (no driver, foreign ABI, ...) is not an error: trine_backend_info() says why.
 *
 * Errors: TRINE_ERR_ARGUMENT (an option names an unknown ISA level or backend, or a cache is negative),
 * TRINE_ERR_MEMORY. */
TRINE_API trine_status trine_open(const trine_options *options, trine_library **lib_out);

/* Closes the library; NULL is allowed. Its queues must have been closed. */
TRINE_API void trine_close(trine_library *lib);

/* A backend that was tried, in the order of the search. */
typedef struct trine_backend_info_t {
    const char *name;    /* "cpu", "cuda", ... or the file name of a module whose name could not be read */
    const char *path;    /* the module's file; NULL for the built-in CPU backend, and for one that is not installed */
    const char *version; /* of the module; NULL if unknown */
    const char *refused; /* why it is not in use; NULL if it is */
    int32_t devices;     /* how many devices it contributed */
    int32_t kernels;     /* how many kernels it adds to devices of the backend `extends` */
    const char *extends; /* "cpu"; NULL if it extends none */
} trine_backend_info_t;

TRINE_API int trine_backend_count(const trine_library *lib);
TRINE_API trine_status trine_backend_info(const trine_library *lib, int index, trine_backend_info_t *info_out);

/* A device. Its number is its place in the list; 0 is always a CPU device. */
typedef struct trine_device_info_t {
    const char *name;  /* "cpu", "cuda:0", "hip:1" */
    const char *model; /* what the vendor calls it */
    const char *arch;  /* "x86-64-v3", "sm_90a", "gfx942" */
    const char *pci;   /* "0000:65:00.0"; NULL for the CPU */
    int32_t units;     /* cores, SMs or CUs that queues use by default */
    int32_t numa_node; /* OS number of the nearest NUMA node, -1 if unknown */
    int64_t memory;    /* bytes */
    int64_t cache[3];  /* bytes of L1d and L2 of one unit, and of the last level */
    int32_t emulated;  /* 1: executed by an emulator; nothing about its speed is meant */
} trine_device_info_t;

#define TRINE_BEST_DEVICE (-1)

TRINE_API int trine_device_count(const trine_library *lib);
TRINE_API trine_status trine_device_info(const trine_library *lib, int device, trine_device_info_t *info_out);

/* The number of the device called `name` ("cpu", "cuda:0"; "cuda" is "cuda:0"), or -1. */
TRINE_API int trine_device_find(const trine_library *lib, const char *name);

/* ----------------------------------------------------------------------------------------------------------- queues */

enum {
    TRINE_QUEUE_STRICT_WORKSPACE = 1, /* never allocate in an op: return TRINE_ERR_WORKSPACE
                                       * if too little is reserved */
    TRINE_QUEUE_ATOMICS = 2,          /* allow kernels whose result may differ from run to run, if they are faster */
    TRINE_QUEUE_DEFAULT_STREAM = 4,   /* GPUs: use the device's default stream, of which `stream` cannot tell, since
                                       * its handle is NULL: CUDA's legacy stream, HIP's null stream. It cannot be
                                       * recorded. On the CPU it changes nothing */
    /* The same bits on every device, of every vendor, and at every level of the CPU, a NaN's own bits aside: only
     * kernels that compute as the project's spec/same.h says, and those of ops whose results are exact. Slower; ops and
     * options without such a kernel return TRINE_ERR_UNSUPPORTED. trine(7) lists them */
    TRINE_QUEUE_REPRODUCIBLE = 8
};

typedef struct trine_queue_options {
    size_t struct_size; /* sizeof(trine_queue_options) */
    uint32_t flags;     /* TRINE_QUEUE_* */
    int32_t threads;    /* CPU: threads of an op; 0: as trine(7) says of OMP_NUM_THREADS. Results do not depend on it */
    void *stream;       /* a caller's CUstream/cudaStream_t/hipStream_t to use, which must outlive the queue; NULL: the
                         * queue makes a new one, or uses the default stream if flags say so. The default stream of
                         * a thread is its handle (cudaStreamPerThread, hipStreamPerThread) */
    const char *kernel; /* run only the kernel of this name, and fail if it refuses;
                         * NULL: TRINE_KERNEL, else the best */
    /* GPUs: how many of the device's SMs or CUs the queue's work runs on; 0: all. They are the queue's own until it is
     * closed: queues of a process that each have a part do not share an SM, while one without a part may use all, those
     * of others too. The count is rounded up to whole groups, as the hardware parts its units: of 8 on sm_90, of 4 on
     * sm_80, of 8 on AMD's, and a smaller one of what is left over; trine_queue_sm_count() tells what it became. It is
     * refused on the CPU, since `threads` is the same, and with a stream or the default stream, which have units.
     *
     * Kernels are chosen and launched for so many units, and the tuning cache, which is of whole devices, is not asked.
     * Where sums are split by the units that there are, as in products and norms' gradients, results may differ within
     * the bound from those of another count; for the same count they are the same bits. With TRINE_QUEUE_REPRODUCIBLE
     * they are for any */
    int32_t sm_count;
} trine_queue_options;

/* Opens a queue of work on a device: a number below trine_device_count(), or TRINE_BEST_DEVICE (TRINE_DEVICE, else the
 * first GPU, else the CPU). `options` may be NULL.
 *
 * On the CPU an op has finished when its call returns. On a GPU ops run in order on the queue's stream, and may be
 * captured into a graph. The stream that a queue makes for itself does not wait for the default stream, nor is it
 * waited for: a program that works on the default stream wants TRINE_QUEUE_DEFAULT_STREAM.
 *
 * Errors: TRINE_ERR_ARGUMENT (among others TRINE_QUEUE_DEFAULT_STREAM and a stream, or more SMs than the device has),
 * TRINE_ERR_NOT_FOUND (no such device), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE, TRINE_ERR_UNSUPPORTED (sm_count on a device
 * whose units cannot be parted, or more of them than other queues leave). */
TRINE_API trine_status trine_queue_open(trine_library *lib, int device, const trine_queue_options *options,
                                        trine_queue **queue_out);

/* Waits for the queue's work and closes it; NULL is allowed. */
TRINE_API void trine_queue_close(trine_queue *queue);

/* Waits until everything queued has finished. Errors: TRINE_ERR_DEVICE if the work failed. */
TRINE_API trine_status trine_queue_wait(trine_queue *queue);

/* The device of a queue. */
TRINE_API int trine_queue_device(const trine_queue *queue);

/* The SMs or CUs that a GPU queue's work runs on: all of the device's, its own part by sm_count, or those of the CUDA
 * green context of the caller's stream. 0 on the CPU, and if queue is NULL. Since 0.1. */
TRINE_API int32_t trine_queue_sm_count(const trine_queue *queue);

/* Makes the queue's workspace at least `bytes` large, so that ops up to that need do not allocate.
 * May wait for the queue. */
TRINE_API trine_status trine_queue_reserve(trine_queue *queue, size_t bytes);

/* Lends the queue the caller's device memory as its workspace, aligned to 256 bytes;
 * the queue then never allocates. NULL, 0 takes it back. */
TRINE_API trine_status trine_queue_set_workspace(trine_queue *queue, void *memory, size_t bytes);

/* Memory of the queue's device, aligned to 256 bytes, and copies between it and the host, ordered on the queue. On the
 * CPU this is ordinary memory.
 *
 * A copy to or from the host has finished when its call returns. One within the device, between places that do not
 * overlap, goes by the queue like an op. */
TRINE_API trine_status trine_memory_alloc(trine_queue *queue, size_t bytes, void **memory_out);
TRINE_API trine_status trine_memory_free(trine_queue *queue, void *memory);
TRINE_API trine_status trine_memory_write(trine_queue *queue, void *memory, const void *host, size_t bytes);
TRINE_API trine_status trine_memory_read(trine_queue *queue, void *host, const void *memory, size_t bytes);
TRINE_API trine_status trine_memory_copy(trine_queue *queue, void *to, const void *from, size_t bytes);

/* Memory of the host, aligned to 256 bytes, that the queue's device copies fastest: a GPU's is page-locked, so that a
 * copy takes no detour and goes on beside the work of other queues; the CPU's is ordinary. To trine_memory_write() and
 * trine_memory_read() it is host memory like any other, for queues of every device, and to ops on the CPU a tensor's.
 * It is freed by a queue of the same device. Page-locked memory is taken from other programs until then. */
TRINE_API trine_status trine_memory_alloc_host(trine_queue *queue, size_t bytes, void **memory_out);
TRINE_API trine_status trine_memory_free_host(trine_queue *queue, void *memory);

/* ----------------------------------------------------------------------------------------------------------- graphs */

typedef struct trine_graph trine_graph;

/* Records the queue's work instead of doing it, from begin to end. trine_graph_launch() then does it as a whole, any
 * number of times, on any queue of the device: the same bits each time, for the price of one launch. The addresses of
 * the tensors and the values of the parameters are those of the recording. One that was recorded on a queue with a part
 * of the device (sm_count) is launched on that queue alone.
 *
 * While it is recorded nothing can wait, allocate or copy to and from the host: those calls return
 * TRINE_ERR_UNSUPPORTED, and an op for whose workspace too little is reserved TRINE_ERR_WORKSPACE. The recording goes
 * on. The graph keeps the address of the workspace too: reserve the largest need before it, or lend one with
 * trine_queue_set_workspace(), and keep it as long as the graph. All this holds as well where the caller captures the
 * stream of trine_queue_options by the vendor's own calls.
 *
 * Errors: TRINE_ERR_ARGUMENT (begin twice, end without begin, a graph of another device or part), TRINE_ERR_UNSUPPORTED
 * (the device has no graphs, as the CPU, or the queue uses the default stream), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 * After an error of trine_graph_end() there is no graph; the recording is over too, unless the driver did not get so
 * far. */
TRINE_API trine_status trine_graph_begin(trine_queue *queue);
TRINE_API trine_status trine_graph_end(trine_queue *queue, trine_graph **graph_out);
TRINE_API trine_status trine_graph_launch(trine_queue *queue, const trine_graph *graph);

/* NULL is allowed. Its launches must have finished, and the library must still be open. */
TRINE_API void trine_graph_free(trine_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
