/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of dispatch/ share: the library and queue objects, and the functions between them. */
#ifndef TRINE_DISPATCH_H
#define TRINE_DISPATCH_H

#include <sched.h>

#include <trine/ops.h>

#include "backends/backend.h"

/* A backend that was tried. */
typedef struct trine_module_entry {
    trine_backend_info_t info;    /* its strings belong to the entry, or are static */
    const trine_backend *backend; /* NULL if refused, or if it extends another */
    const trine_module *extends;  /* its handshake, if it does */
    char path[512], reason[512], name[64];
} trine_module_entry;

enum { TRINE_MAX_MODULES = 64, TRINE_MAX_DEVICES = 64 };

/* The tuning cache, or what backends ship: for a device, op, types and size bucket, the kernel that was fastest. */
typedef struct trine_tune trine_tune;

struct trine_library {
    trine_options options; /* resolved against the environment; strings owned by `strings` */
    char *strings[8];
    trine_host host; /* what modules were given */
    int modules;
    trine_module_entry *module;
    int devices;
    struct {
        const trine_backend *backend;
        const trine_device *device;
        /* with kernels from elsewhere before the backend's own; NULL: there are none from elsewhere */
        trine_kernel *list[TRINE_OP_COUNT];
        int added[TRINE_OP_COUNT]; /* how many */
    } device[TRINE_MAX_DEVICES];
    trine_tune *tune;    /* NULL: no cache */
    trine_tune *shipped; /* NULL: nothing is */
    int verbose;         /* TRINE_VERBOSE */
};

/* What a queue's lists of calls are worked out in. */
typedef struct trine_list trine_list;

/* The ranks of calls that are of all ranks, and their threads. */
typedef struct trine_whole trine_whole;

struct trine_queue {
    uint64_t magic; /* QUEUE_MAGIC; anything else is a foreign or closed pointer */
    trine *lib;
    int device_index;
    const trine_backend *backend;
    const trine_device *device;
    void *state; /* the backend's queue */
    uint32_t flags;
    char kernel[64];           /* forced; "" for none */
    const char *kernel_source; /* "trine_queue_options" or "TRINE_KERNEL" */
    void *workspace;
    size_t workspace_size;
    bool workspace_borrowed;
    bool wrapped;       /* the stream is the caller's, who may record it too */
    bool recording;     /* by trine_graph_begin() */
    uint64_t part;      /* 0: it has all units of the device; otherwise no other queue's number */
    trine_list *list;   /* NULL: there was none yet */
    int threads;        /* of the options */
    trine_whole *whole; /* NULL: there was no such call yet */
};

#define QUEUE_MAGIC 0x7472696e65717565u

/* error.c */
trine_status trine_fail(trine_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How many messages the calling thread has recorded. */
unsigned trine_error_count(void);

/* env.c: an environment variable trine knows (documented in trine(7)); NULL if unset, empty or setuid. And a warning on
 * stderr, once per process, for each TRINE_* variable in the environment that is not in its list, with the nearest name
 * that is, and for each relative directory of TRINE_PATH. trine_env_list: name and meaning, ended by NULL. */
const char *trine_env(const char *name);
void trine_env_warn(void);
typedef struct trine_env_entry {
    const char *name, *doc;
} trine_env_entry;
extern const trine_env_entry trine_env_list[];

/* Insertions, deletions, substitutions and exchanges of neighbours that make the word of n letters that of m. */
int trine_word_distance(const char *a, size_t n, const char *b, size_t m);

/* topology.c: fills cores, cache and memory of the host table by hwloc; without hwloc from /sys and sysconf. Nothing is
 * left zero. And the OS number of the NUMA node of a PCI device, -1 if unknown. */
trine_status trine_topology_read(trine_host *host);
int trine_topology_numa_of_pci(const char *bus_id);
/* The CPUs that the calling thread, or one it makes, may run on; false if that cannot be known. */
bool trine_topology_cpus(cpu_set_t *set, size_t size);

/* registry.c: loads the built-in CPU backend and every module found; a refused one is entered with its reason. */
trine_status trine_registry_load(trine *lib);
void trine_registry_free(trine *lib);

/* Enters why a module is not in use; false. */
bool trine_module_refuse(trine_module_entry *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* extend.c: adds the kernels that are made of other ops, and those of all modules that extend others, once all are
 * loaded, or refuses them.
 * And trine_host's `launch`. */
trine_status trine_extend(trine *lib);
void trine_extend_free(trine *lib);
trine_status trine_launch_code(const trine_call *call, const trine_code *code, const trine_launch *launch);

/* nested.c: the kernels of an op that are made of other ops, for any device; NULL: there are none. And trine_host's
 * functions for such kernels. */
const trine_kernel *trine_composed_kernels(trine_op op);
trine_status trine_nested_workspace(const trine_call *call, int op, const void *args, size_t *bytes_out);
trine_status trine_nested_run(const trine_call *call, int op, const void *args, void *workspace, size_t bytes);
bool trine_call_readable(const trine_call *call);

/* The kernels of an op on a device: those from elsewhere, the backend's own, then those made of other ops.
 * NULL: a hole. */
static inline const trine_kernel *trine_kernels(const trine *lib, int device, trine_op op) {
    const trine_kernel *list = lib->device[device].list[op];
    if (list == NULL) list = lib->device[device].backend->kernels(lib->device[device].device, op);
    return list != NULL ? list : trine_composed_kernels(op);
}

/* check.c: the generic argument check. On success *call_out holds the canonical call: everything but device, queue and
 * workspace. `need_data`: data pointers of non-empty tensors must be set and outputs must not overlap others. */
trine_status trine_check(trine_op op, const void *args, bool need_data, trine_call *call_out);

/* select.c: the kernel for a checked call, and the size of its workspace;
 * TRINE_ERR_UNSUPPORTED with all reasons if none takes it. */
trine_status trine_select(const trine_queue *queue, trine_call *call, const trine_kernel **kernel_out);
double trine_predict(const trine_queue *queue, const trine_kernel *kernel, const trine_call *call);

/* tune.c: the tuning cache. trine_tune_open reads the file `path`; NULL: the user's, $XDG_CACHE_HOME/trine/tune or
 * ~/.cache/trine/tune; "" or /dev/null: none. It never fails on a bad file: corrupt lines are ignored with one warning
 * on stderr, and entries of another specification, kernel list, device or driver are kept but never found. NULL: no
 * cache. trine_tune_shipped reads what the loaded backends ship for the devices that there are. trine_tune_find is
 * lock-free and returns the kernel's name, or NULL. trine_tune_record merges one choice into the file and replaces it
 * atomically; libraries opened later find it. */
trine_tune *trine_tune_open(const char *path);
void trine_tune_close(trine_tune *tune);
trine_tune *trine_tune_shipped(const trine *lib);
const char *trine_tune_find(trine_tune *tune, const trine_queue *queue, const trine_call *call);
trine_status trine_tune_record(trine_queue *queue, const trine_call *call, const char *kernel, double seconds);

/* trace.c: a clock that never goes back, in seconds. */
double trine_seconds(void);
/* One line on stderr for a call, if the library is verbose. */
void trine_trace(const trine_queue *queue, const trine_call *call, const trine_kernel *kernel, double seconds);
/* The same for calls of a list that ran at once: `count` of them, the first of which is `call`. */
void trine_trace_list(const trine_queue *queue, const trine_call *call, const trine_kernel *kernel, int64_t count,
                      double seconds);
/* "T=bf16 W=f32 r=8192 n=4096 +residual causal=1": types, sizes, optional tensors given, and parameters that differ
 * from their fallbacks: the text of a bench case. */
void trine_call_text(const trine_call *call, char *text_out, size_t size);

#endif
