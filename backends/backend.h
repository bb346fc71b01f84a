/* SPDX-License-Identifier: Apache-2.0 */
/* The only table between dispatch and a backend, and the handshake of a module. */
#ifndef TRINE_BACKEND_H
#define TRINE_BACKEND_H

#include <sched.h>

#include "spec/plan.h"

typedef struct trine_host trine_host;
typedef struct trine_backend trine_backend;

/* A call whose arguments have been checked against the specification. `args` is a copy of the caller's, of the size
 * this library knows: its tensors have full rank, their shapes agree, a broadcast dimension has stride 0, a dimension
 * of length 1 has the stride a contiguous one would have, and parameters left zero hold their fallbacks. */
typedef struct trine_call {
    const trine_plan *plan;
    const trine_host *host;
    const trine_backend *backend; /* of the device */
    const void *args;
    void *workspace;       /* workspace_size bytes, aligned to 256; poisoned in tests */
    size_t workspace_size; /* what the kernel's workspace() said */
    const void *self;      /* the `self` of the kernel that is asked or launched: dispatch sets it */
    void *device;          /* the backend's own */
    void *queue;           /* likewise; a GPU's begins with its stream, a CUstream or hipStream_t */
    uint32_t flags;        /* TRINE_QUEUE_* */
    uint32_t present;      /* set of the tensors given */
    bool empty;            /* every output has no elements: never launched */
    int64_t dim[TRINE_MAX_SYMBOLS];
    trine_dtype type[TRINE_MAX_SYMBOLS];
    trine_tensor tensor[TRINE_MAX_TENSORS];
    _Alignas(16) unsigned char storage[TRINE_MAX_ARGS]; /* where args is */
    const trine_queue *owner;                           /* for dispatch */
    /* Of an op of a group: the backend's own. Tensors are this rank's, without the dimension `ranks`. Such a call is
     * launched even if it is empty, since others wait for it */
    void *comm;
} trine_call;

/* A tensor by its place in the specification; NULL if it is absent. */
static inline const trine_tensor *trine_call_given(const trine_call *call, int tensor) {
    return call->present >> tensor & 1 ? &call->tensor[tensor] : NULL;
}

/* Sizes at which a kernel goes another way: of a dimension, by its place among the op's symbols. The suite draws each
 * of them, and those one below and one above. */
typedef struct trine_kernel_edges {
    int count; /* of those that were added; beyond TRINE_MAX_EDGES none is kept, and dispatch says so */
    struct {
        int symbol;
        int64_t size;
    } edge[TRINE_MAX_EDGES];
} trine_kernel_edges;

/* Adds one, unless it is there. Sizes below 1 are none. */
static inline void trine_kernel_edge(trine_kernel_edges *edges, int symbol, int64_t size) {
    for (int i = 0; i < edges->count && i < TRINE_MAX_EDGES; i++)
        if (edges->edge[i].symbol == symbol && edges->edge[i].size == size) return;
    if (size < 1) return;
    if (edges->count < TRINE_MAX_EDGES)
        edges->edge[edges->count].symbol = symbol, edges->edge[edges->count].size = size;
    edges->count++;
}

/* One implementation of an op. A list ends with an entry whose name is NULL; the first that does not refuse, and whose
 * workspace the device has memory for, is taken. Kernels that differ in a number share their functions, which find it
 * in call->self. */
typedef struct trine_kernel {
    const char *name;
    /* NULL, or why it cannot run this call; may be NULL: it always can */
    const char *(*refuse)(const trine_call *call);
    size_t (*workspace)(const trine_call *call);    /* exact bytes; may be NULL: none. Must not look at data pointers */
    trine_status (*launch)(const trine_call *call); /* outputs untouched on error */
    double (*seconds)(const trine_call *call);      /* predicted time; may be NULL: dispatch's roofline model */
    const void *self;                               /* what its functions find in call->self; may be NULL */
    /* The sizes at which its way changes for calls of these types, the others being as they are; may be NULL: none. Of
     * any call, whether the kernel takes it or not. Must not look at data pointers */
    void (*edges)(const trine_call *call, trine_kernel_edges *edges);
    /* Calls of a list, each with a workspace of its own, none of which has an output that overlaps another's tensors:
     * what launch() of each does, in any order; may be NULL: the backend's launch_list, or one after the other */
    trine_status (*launch_list)(trine_call *const *calls, int64_t count);
    /* Does it give the bits of spec/same.h, as all kernels of the op so marked do, on any device? */
    bool same;
} trine_kernel;

/* A device as its backend describes it. */
typedef struct trine_device {
    trine_device_info_t info;
    void *state;             /* the backend's own */
    double bytes_per_second; /* of memory, for predictions; the order of magnitude is enough */
    double flops_per_second; /* of f32 */
    const char *driver;      /* version of the driver, for the tuning cache's key; "" if there is none */
} trine_device;

/* A loop of nothing but multiply-adds, which finds what a device can do at best: of a type as it is, and of f32 that
 * may be cut to tf32. */
typedef struct trine_peak {
    trine_dtype dtype;
    bool cut;
    int64_t rounds;
    double operations;       /* out: of all rounds, a multiply-add counting two */
    const char *instruction; /* out: the fastest that takes the type */
} trine_peak;

/* Device code that a kernel from elsewhere brings, and a launch of it. */
typedef struct trine_code {
    /* "cuda": a fatbin, cubin or PTX text; "hip": a code object for the device.
     * Stays as it is as long as the process */
    const void *image;
    const char *function; /* its name in the image */
} trine_code;

typedef struct trine_launch {
    uint32_t blocks[3], threads[3]; /* of the grid, and of a block; a 0 launches nothing */
    uint32_t shared;                /* bytes of a block's memory besides what the function declares */
    const void *params;             /* the function's parameters as they lie in memory; passed by value */
    size_t params_size;
} trine_launch;

/* What a rank makes its part of a group from, and the bytes that its backend tells the others of it. */
typedef struct trine_comm_setup {
    const trine_host *host;
    int rank, ranks;
    size_t staging; /* bytes; the same for all ranks; 0: what suits the device */
    double timeout; /* seconds that a rank waits for another */
} trine_comm_setup;

enum { TRINE_COMM_BLOB = 256 };

/* What dispatch offers a module, so that it has no undefined symbol of libtrine. */
struct trine_host {
    size_t struct_size;
    /* Records the calling thread's message and returns `status`. */
    trine_status (*error)(trine_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
    /* Threads near the PCI device "0000:65:00.0": the OS number of its NUMA node, -1 if unknown. */
    int (*numa_node_of_pci)(const char *bus_id);
    /* An environment variable, NULL if unset or if the process is setuid. */
    const char *(*environment)(const char *name);
    const trine_options *options;
    int cores;        /* physical cores in the process's cpuset, no more than its CPU quota */
    int64_t cache[3]; /* bytes of L1d, L2 of a core, last level */
    int64_t memory;   /* bytes of RAM */
    /* Launches device code on the call's queue, for kernels that a module adds to a device; loads it with the first
     * launch on the device. Does not wait; may be recorded. TRINE_ERR_UNSUPPORTED if the device takes no code,
     * TRINE_ERR_DEVICE with the driver's words. */
    trine_status (*launch)(const trine_call *call, const trine_code *code, const trine_launch *launch);
    /* Is the calling thread in a parallel region of an OpenMP runtime? */
    bool (*in_parallel)(void);
    /* The CPUs that the calling thread, or one it makes, may run on; false if that cannot be known. */
    bool (*cpus)(cpu_set_t *set, size_t size);
    /* For kernels that are made of other ops: an op on the call's device and queue, with a part of the call's
     * workspace, aligned to 256. Its arguments are checked, and its kernel chosen, as if a program had called it; a
     * kernel that the queue forces is that of the outer op alone. nested_workspace() does not look at data pointers,
     * which may be NULL, and what it says is enough for nested_run() of the same arguments. */
    trine_status (*nested_workspace)(const trine_call *call, int op, const void *args, size_t *bytes_out);
    trine_status (*nested_run)(const trine_call *call, int op, const void *args, void *workspace, size_t bytes);
    /* Can the host read the call's tensors when a kernel is launched? */
    bool (*readable)(const trine_call *call);
};

struct trine_backend {
    size_t struct_size;
    const char *name;
    int devices;
    trine_device *device;
    /* The kernels of an op on a device; NULL: a hole. */
    const trine_kernel *(*kernels)(const trine_device *device, int op);
    trine_status (*queue_open)(const trine_device *device, const trine_queue_options *options, void **queue_out);
    void (*queue_close)(const trine_device *device, void *queue);
    trine_status (*queue_wait)(const trine_device *device, void *queue);
    trine_status (*memory_alloc)(const trine_device *device, void *queue, size_t bytes, void **memory_out);
    trine_status (*memory_free)(const trine_device *device, void *queue, void *memory);
    trine_status (*memory_write)(const trine_device *device, void *queue, void *memory, const void *host, size_t bytes);
    trine_status (*memory_read)(const trine_device *device, void *queue, void *host, const void *memory, size_t bytes);
    /* From the device's memory to other memory of it, ordered on the queue; does not wait. */
    trine_status (*memory_copy)(const trine_device *device, void *queue, void *to, const void *from, size_t bytes);
    /* Marks a point of the queue's work, and the seconds between two marks; both NULL: the host's clock serves. */
    trine_status (*mark)(const trine_device *device, void *queue, int which);
    trine_status (*elapsed)(const trine_device *device, void *queue, int first, int second, double *seconds_out);
    /* Work that is recorded instead of done, and then launched as a whole; all NULL: the device cannot. `capturing`
     * also sees what the caller of the queue's stream began. */
    trine_status (*capturing)(const trine_device *device, void *queue, bool *capturing_out);
    trine_status (*graph_begin)(const trine_device *device, void *queue);
    trine_status (*graph_end)(const trine_device *device, void *queue, void **graph_out);
    trine_status (*graph_launch)(const trine_device *device, void *queue, void *graph);
    void (*graph_free)(const trine_device *device, void *graph);
    /* Launches such a loop; TRINE_ERR_UNSUPPORTED if the device has none for the type. NULL: there are none. */
    trine_status (*peak)(const trine_device *device, void *queue, trine_peak *peak);
    /* choices of kernels for devices they were measured on, as lines of a tuning cache; NULL: none */
    const char *tuned;
    /* What trine_host's `launch` does; NULL: the devices take no code. */
    trine_status (*launch)(const trine_call *call, const trine_code *code, const trine_launch *launch);
    /* The same as a kernel's launch_list, for kernels that have none; *failed_out is the place of the call whose error
     * it returns. NULL: such calls are launched one after the other. */
    trine_status (*launch_list)(const trine_kernel *kernel, trine_call *const *calls, int64_t count,
                                int64_t *failed_out);
    /* Memory of the host that the device copies fastest, aligned to 256 bytes; both NULL: ordinary memory is. */
    trine_status (*host_alloc)(const trine_device *device, void *queue, size_t bytes, void **memory_out);
    trine_status (*host_free)(const trine_device *device, void *queue, void *memory);
    /* The units that a queue's work runs on. NULL: the devices cannot be parted, and sm_count of trine_queue_options is
     * refused; otherwise queue_open sees to it. */
    int (*queue_units)(const trine_device *device, void *queue);
    /* Groups of ranks; all NULL: the backend has none, and its kernels of their ops get calls of all ranks, whose
     * tensors have the dimension `ranks`. comm_make makes this rank's part, and writes to `blob` what the
     * others need to find it; comm_join finds the others' by what all wrote, in the order of ranks; comm_joined follows
     * when all have. comm_close undoes any of these, and waits for nobody. comm_abort, from any thread, makes all
     * calls of the group fail. comm_refuse takes the place of a call of this rank that was not launched: those of the
     * others then return TRINE_ERR_COMM with `message`, and the group goes on. */
    trine_status (*comm_make)(const trine_device *device, void *queue, const trine_comm_setup *setup, void *blob,
                              void **comm_out);
    trine_status (*comm_join)(void *comm, const void *blobs);
    void (*comm_joined)(void *comm);
    void (*comm_close)(void *comm);
    void (*comm_abort)(void *comm);
    void (*comm_refuse)(void *comm, int op, const char *message);
    /* Is the queue's work done? Does not wait. NULL: there is none that its launch did not wait for. */
    trine_status (*queue_idle)(const trine_device *device, void *queue, bool *idle_out);
};

/* Kernels that a module adds to the devices of another backend. */
typedef struct trine_extension_row {
    int op;
    uint64_t op_hash;                          /* TRINE_OP_HASH_<OP>: of the table that the kernels are written for */
    const trine_kernel *kernels;               /* ends with an entry whose name is NULL */
    bool (*takes)(const trine_device *device); /* is the row for this device? NULL: for all of the backend's */
} trine_extension_row;

typedef struct trine_extension {
    size_t struct_size;
    int rows;
    const trine_extension_row *row;
} trine_extension;

/* The handshake: the one symbol a module exports, const data, read before any of its code runs. */
#define TRINE_MODULE_SYMBOL "trine_module"
#define TRINE_MODULE_MAGIC 0x656e6972746d6f64u

typedef struct trine_module {
    uint64_t magic;
    uint32_t abi;         /* TRINE_ABI */
    uint32_t struct_size; /* sizeof(trine_module) */
    /* TRINE_SPEC_HASH; not looked at where `extends` is set, since each row of an extension has the hash of its op */
    uint64_t spec_hash;
    const char *name;    /* "cuda" */
    const char *version; /* TRINE_VERSION */
    /* Returns the backend, or NULL with the reason in `reason_out` ("no driver: libcuda.so.1 not found"). */
    const trine_backend *(*init)(const trine_host *host, char *reason_out, size_t reason_size);
    /* A module that adds kernels to a backend names it here, "cpu", and returns them by `extend` instead, or NULL with
     * the reason. They are tried before the backend's own. Asked whenever the library is opened;
     * what it returns stays. */
    const char *extends;
    const trine_extension *(*extend)(const trine_host *host, char *reason_out, size_t reason_size);
} trine_module;

/* In a module: TRINE_MODULE(.name = "my_kernels", .version = "1.0", .extends = "cpu", .extend = extend); */
#define TRINE_MODULE(...) \
    extern const trine_module trine_module_handshake __asm__(TRINE_MODULE_SYMBOL) \
        __attribute__((visibility("default"))); \
    const trine_module trine_module_handshake = { \
        .magic = TRINE_MODULE_MAGIC, .abi = TRINE_ABI, .struct_size = sizeof(trine_module), __VA_ARGS__ \
    }

/* The CPU backend is linked into the library; NULL, with the reason, only for an unknown ISA level. */
const trine_backend *trine_cpu_backend(const trine_host *host, char *reason_out, size_t reason_size);

#endif
