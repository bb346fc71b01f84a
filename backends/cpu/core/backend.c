/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: its one device, its levels, its memory. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <trine/ops.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "cpu.h"
#include "group.h"
#include "nodes.h"

/* A level of instructions; each contains those before it. */
typedef struct level {
    const char *name;
    const char *arch;
    bool (*present)(void);
} level;

static bool always(void) { return true; }

#if defined(__x86_64__)
static bool has_v3(void) { return __builtin_cpu_supports("x86-64-v3"); }
static bool has_v4(void) { return __builtin_cpu_supports("x86-64-v4"); }
static bool has_v4_bf16(void) {
    return has_v4() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
}

/* AMX with bf16 and int8 tiles (CPUID leaf 7, EDX 22, 24, 25); Linux grants the tile registers on request
 * (Documentation/arch/x86/xstate.rst). */
static bool has_amx(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    if (!has_v4_bf16() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    const unsigned tiles = 1u << 22 | 1u << 24 | 1u << 25;
    return (d & tiles) == tiles && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static const level levels[] = {
    { "baseline", "x86-64", always },    { "v3", "x86-64-v3", has_v3 },
    { "v4", "x86-64-v4", has_v4 },       { "v4_bf16", "x86-64-v4+bf16", has_v4_bf16 },
    { "amx", "x86-64-v4+amx", has_amx },
};
#elif defined(__aarch64__)
/* Dots of bf16 and of int8, as every core of Armv8.6 and some before it have. */
static bool has_v8_bf16(void) {
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 &&
           (getauxval(AT_HWCAP2) & (HWCAP2_BF16 | HWCAP2_I8MM)) == (HWCAP2_BF16 | HWCAP2_I8MM);
}
static const level levels[] = { { "baseline", "armv8-a", always }, { "v8_bf16", "armv8-a+bf16", has_v8_bf16 } };
#else
static const level levels[] = { { "baseline", "baseline", always } };
#endif

enum { LEVELS = sizeof levels / sizeof levels[0] };

#define KERNEL(op, level) extern const trine_kernel trine_##op##_cpu_##level[];
#include "backends/cpu/cpu_rows.h"
#undef KERNEL

static const struct {
    const char *op, *level;
    const trine_kernel *kernels;
} rows[] = {
#define KERNEL(op, level) { #op, #level, trine_##op##_cpu_##level },
#include "backends/cpu/cpu_rows.h"
#undef KERNEL
};

/* What a level's backend is made of; made once per process, level, and description of the machine: the cores that it
 * may use can become more or less. */
typedef struct cpu_state {
    cpu_device cpu; /* first: kernels see it as call->device */
    struct cpu_state *older;
    int level;
    int64_t memory;
    bool (*cpus)(cpu_set_t *set, size_t size);
    trine_backend backend;
    trine_device device;
    const trine_kernel *kernels[TRINE_OP_COUNT];
} cpu_state;

static cpu_state *states;
static pthread_mutex_t states_lock = PTHREAD_MUTEX_INITIALIZER;

static const trine_kernel *kernels(const trine_device *device, int op) {
    return ((const cpu_state *)device->state)->kernels[op];
}

/* The first number of OMP_NUM_THREADS, a list by level of nesting; 0 if there is none. */
static int openmp_threads(void) {
    const char *text = secure_getenv("OMP_NUM_THREADS");
    char *end = NULL;
    const long threads = text != NULL ? strtol(text, &end, 10) : 0;
    if (threads < 1 || threads > INT_MAX) return 0;
    end += strspn(end, " \t");
    return *end == 0 || *end == ',' ? (int)threads : 0;
}

static trine_status queue_open(const trine_device *device, const trine_queue_options *options, void **queue_out) {
    enum { CPUS = 8192 }; /* Linux's own limit (CONFIG_NR_CPUS) */
    unsigned long set[CPUS / 8 / sizeof(long)];
    const cpu_state *state = device->state;
    cpu_queue *queue = malloc(sizeof *queue);
    if (queue == NULL) return TRINE_ERR_MEMORY;
    const int asked = options->threads > 0 ? options->threads : openmp_threads();
    *queue = (cpu_queue){ .threads = asked > 0 ? asked : state->cpu.threads };
    /* Of the CPUs that the calling thread may use now. */
    if (state->cpus((cpu_set_t *)set, sizeof set) &&
        (queue->pool = trine_cpu_pool((cpu_set_t *)set, sizeof set)) == NULL) {
        free(queue);
        return TRINE_ERR_MEMORY;
    }
    *queue_out = queue;
    return TRINE_OK;
}

static void queue_close(const trine_device *device, void *queue) {
    (void)device;
    free(queue);
}

static trine_status queue_wait(const trine_device *device, void *queue) {
    (void)device, (void)queue;
    return TRINE_OK;
}

static trine_status memory_alloc(const trine_device *device, void *queue, size_t bytes, void **memory_out) {
    enum { HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };
    (void)device, (void)queue;
    if (posix_memalign(memory_out, bytes < LARGE ? 256 : HUGE_PAGE, bytes ? bytes : 1) != 0) return TRINE_ERR_MEMORY;
    /* Pages of 2 MiB, where Linux has them to give: rows of a matrix lie on as many pages as there are rows. */
    if (bytes >= LARGE) madvise(*memory_out, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return TRINE_OK;
}

static trine_status memory_free(const trine_device *device, void *queue, void *memory) {
    (void)device, (void)queue;
    free(memory);
    return TRINE_OK;
}

typedef struct copy {
    char *to;
    const char *from;
    size_t bytes;
} copy;

enum { PAGE = 4096, SPREAD = 1 << 20 }; /* bytes; from SPREAD on a copy is one for all threads */

static void copy_pages(const void *context, int64_t first, int64_t last, int thread) {
    const copy *c = context;
    const size_t begin = (size_t)first * PAGE, end = (size_t)last * PAGE;
    (void)thread;
    memcpy(c->to + begin, c->from + begin, (end < c->bytes ? end : c->bytes) - begin);
}

/* On several NUMA nodes each thread writes the share that it has of a tensor in kernels, and so is the first to touch
 * it. */
static trine_status memory_write(const trine_device *device, void *queue, void *memory, const void *host,
                                 size_t bytes) {
    const cpu_queue *q = queue;
    const copy all = { memory, host, bytes };
    (void)device;
    if (bytes >= SPREAD && trine_cpu_pool_nodes(q->pool) > 1)
        trine_cpu_pool_run(q->pool, q->threads, (int64_t)((bytes + PAGE - 1) / PAGE), false, copy_pages, &all);
    else if (bytes)
        memcpy(memory, host, bytes);
    return TRINE_OK;
}

static trine_status memory_read(const trine_device *device, void *queue, void *host, const void *memory, size_t bytes) {
    (void)device, (void)queue;
    if (bytes) memcpy(host, memory, bytes);
    return TRINE_OK;
}

static trine_status memory_copy(const trine_device *device, void *queue, void *to, const void *from, size_t bytes) {
    return memory_write(device, queue, to, from, bytes);
}

/* The model name of the first processor, as Linux gives it. */
static void read_model(char *model_out, size_t size) {
    char line[256];
    snprintf(model_out, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL) continue;
        snprintf(model_out, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file != NULL) fclose(file);
}

/* The kernels of a level: for each op those of the highest level up to it that has any. */
static void find_kernels(cpu_state *state, int highest) {
    for (int op = 1; op < TRINE_OP_COUNT; op++)
        for (int level = highest; level >= 0 && state->kernels[op] == NULL; level--)
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                if (strcmp(rows[i].level, levels[level].name) == 0 && strcmp(rows[i].op, trine_specs[op]->name) == 0)
                    state->kernels[op] = rows[i].kernels;
}

static void make_state(cpu_state *state, int level, const trine_host *host) {
    static char model[128];
    if (model[0] == 0) read_model(model, sizeof model);
    state->level = level;
    state->cpus = host->cpus;
    state->memory = host->memory;
    state->cpu =
        (cpu_device){ .threads = host->cores, .l1 = host->cache[0], .l2 = host->cache[1], .l3 = host->cache[2] };
    state->device = (trine_device){
        .info = { .name = "cpu",
                  .model = model,
                  .arch = levels[level].arch,
                  .units = host->cores,
                  .numa_node = -1,
                  .memory = host->memory,
                  .cache = { host->cache[0], host->cache[1], host->cache[2] } },
        .state = state,
        .bytes_per_second = 15e9 * host->cores,
        .flops_per_second = (level == 0   ? 15e9
                             : level == 1 ? 80e9
                                          : 120e9) *
                            host->cores,
        .driver = "",
    };
    find_kernels(state, level);
    state->backend = (trine_backend){
        .struct_size = sizeof state->backend,
        .name = "cpu",
        .devices = 1,
        .device = &state->device,
        .kernels = kernels,
        .queue_open = queue_open,
        .queue_close = queue_close,
        .queue_wait = queue_wait,
        .memory_alloc = memory_alloc,
        .memory_free = memory_free,
        .memory_write = memory_write,
        .memory_read = memory_read,
        .memory_copy = memory_copy,
        .launch_list = trine_cpu_launch_list,
        .comm_make = trine_cpu_group_make,
        .comm_join = trine_cpu_group_join,
        .comm_joined = trine_cpu_group_joined,
        .comm_close = trine_cpu_group_close,
        .comm_abort = trine_cpu_group_abort,
        .comm_refuse = trine_cpu_group_refuse,
    };
}

static bool describes(const cpu_state *state, int level, const trine_host *host) {
    const cpu_device *cpu = &state->cpu;
    return state->level == level && state->memory == host->memory && cpu->threads == host->cores &&
           cpu->l1 == host->cache[0] && cpu->l2 == host->cache[1] && cpu->l3 == host->cache[2];
}

const trine_backend *trine_cpu_backend(const trine_host *host, char *reason_out, size_t reason_size) {
    const char *cap = host->options->isa;
    int highest = LEVELS - 1;
    if (cap != NULL) {
        for (highest = LEVELS - 1; highest >= 0 && strcmp(levels[highest].name, cap) != 0;) highest--;
        if (highest < 0) {
            size_t used = (size_t)snprintf(reason_out, reason_size, "\"%s\" is not a CPU level; there are", cap);
            for (int i = 0; i < LEVELS && used < reason_size; i++)
                used += (size_t)snprintf(reason_out + used, reason_size - used, " %s", levels[i].name);
            return NULL;
        }
    }
    while (!levels[highest].present()) highest--;
    pthread_mutex_lock(&states_lock);
    cpu_state *state = states;
    while (state != NULL && !describes(state, highest, host)) state = state->older;
    if (state == NULL && (state = calloc(1, sizeof *state)) != NULL) {
        make_state(state, highest, host);
        state->older = states;
        states = state;
    }
    pthread_mutex_unlock(&states_lock);
    if (state != NULL) return &state->backend;
    snprintf(reason_out, reason_size, "out of memory");
    return NULL;
}
