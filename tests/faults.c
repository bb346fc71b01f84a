/* SPDX-License-Identifier: Apache-2.0 */
/* Makes each allocation that libtrine asks for fail once, in turn: a status comes back, nothing leaks, nothing crashes,
 * and the next try succeeds. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trine/trine.h>

#include "tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void) { return tap_skip_all("the sanitizer has its own allocator"); }
#else

/* ----------------------------------------------------------------------- the allocator, in place of the C library's */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

static uintptr_t low, high; /* where libtrine's code is */
static long countdown = -1; /* of libtrine's allocations until one fails; -1: none will */
static bool failed;         /* one did */
static long live;           /* allocations of libtrine not freed yet */
static void *mine[1 << 16]; /* those allocations, by hash */
static const size_t places = sizeof mine / sizeof mine[0];

static bool of_trine(void *caller) { return (uintptr_t)caller >= low && (uintptr_t)caller < high; }

static bool fails(void) {
    if (countdown < 0 || countdown-- > 0) return false;
    failed = true;
    errno = ENOMEM;
    return true;
}

static size_t place_of(void *memory) { return ((uintptr_t)memory >> 4) * 0x9e3779b97f4a7c15u >> 48 & (places - 1); }

static void *remember(void *memory) {
    if (memory == NULL) return NULL;
    size_t i = place_of(memory);
    while (mine[i] != NULL && mine[i] != (void *)1) i = (i + 1) & (places - 1);
    mine[i] = memory;
    live++;
    return memory;
}

static void forget(void *memory) {
    if (memory == NULL) return;
    for (size_t i = place_of(memory); mine[i] != NULL; i = (i + 1) & (places - 1))
        if (mine[i] == memory) {
            mine[i] = (void *)1;
            live--;
            return;
        }
}

void *malloc(size_t size) {
    if (!of_trine(__builtin_return_address(0))) return __libc_malloc(size);
    return fails() ? NULL : remember(__libc_malloc(size));
}
void *calloc(size_t count, size_t size) {
    if (!of_trine(__builtin_return_address(0))) return __libc_calloc(count, size);
    return fails() ? NULL : remember(__libc_calloc(count, size));
}
void *realloc(void *memory, size_t size) {
    if (!of_trine(__builtin_return_address(0))) return __libc_realloc(memory, size);
    if (fails()) return NULL;
    forget(memory);
    return remember(__libc_realloc(memory, size));
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
    const bool ours = of_trine(__builtin_return_address(0));
    if (ours && fails()) return ENOMEM;
    void *got = __libc_memalign(alignment, size);
    if (got == NULL) return ENOMEM;
    *memory = ours ? remember(got) : got;
    return 0;
}
char *strdup(const char *text) {
    const bool ours = of_trine(__builtin_return_address(0));
    if (ours && fails()) return NULL;
    const size_t size = strlen(text) + 1;
    char *copy = __libc_malloc(size);
    if (copy == NULL) return NULL;
    memcpy(copy, text, size);
    return ours ? remember(copy) : copy;
}
void free(void *memory) {
    forget(memory);
    __libc_free(memory);
}
FILE *fopen(const char *path, const char *mode) {
    static FILE *(*real)(const char *, const char *);
    if (of_trine(__builtin_return_address(0)) && fails()) return NULL;
    if (real == NULL) real = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return real(path, mode);
}
int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **)) {
    static int (*real)(const char *, struct dirent ***, int (*)(const struct dirent *),
                       int (*)(const struct dirent **, const struct dirent **));
    if (of_trine(__builtin_return_address(0)) && fails()) return -1;
    if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, "scandir");
    return real(path, list, filter, order);
}

static int find_trine(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (strstr(info->dlpi_name, "libtrine.so") == NULL) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            high = low + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------- what is tried */

static char cache[64];
static float data[4096];

typedef struct attempt {
    const char *name;
    trine_status (*run)(void); /* undoes what it did */
} attempt;

static const trine_options options = { .struct_size = sizeof options,
                                       .isa = "baseline",
                                       .backends = "cpu",
                                       .plugin_path = "/nonexistent",
                                       .tune_file = cache };

static trine_status open_library(void) {
    trine *lib;
    const trine_status status = trine_open(&options, &lib);
    if (status == TRINE_OK) trine_close(lib);
    return status;
}

static trine *lib;
static trine_queue *queue;

static trine_status open_queue(void) {
    trine_queue *q;
    const trine_status status = trine_queue_open(lib, 0, NULL, &q);
    if (status == TRINE_OK) trine_queue_close(q);
    return status;
}

static trine_status reserve(void) {
    trine_queue *q;
    trine_status status = trine_queue_open(lib, 0, NULL, &q);
    if (status != TRINE_OK) return status;
    status = trine_queue_reserve(q, 1000);
    if (status == TRINE_OK) status = trine_queue_reserve(q, 100000);
    trine_queue_close(q);
    return status;
}

static trine_status allocate(void) {
    void *memory;
    const trine_status status = trine_memory_alloc(queue, 1000, &memory);
    if (status == TRINE_OK) trine_memory_free(queue, memory);
    return status;
}

static trine_status allocate_host(void) {
    void *memory;
    const trine_status status = trine_memory_alloc_host(queue, 1000, &memory);
    if (status == TRINE_OK) trine_memory_free_host(queue, memory);
    return status;
}

/* An op that reserves its workspace on first need, on a fresh queue. */
static trine_status run_op(void) {
    trine_queue *q;
    trine_status status = trine_queue_open(lib, 0, NULL, &q);
    if (status != TRINE_OK) return status;
    const trine_tensor x = trine_tensor_2d(data, TRINE_F32, 64, 64);
    const trine_tensor y = trine_tensor_1d(data, TRINE_F32, 64);
    float *out = __libc_malloc(64 * 64 * 4);
    trine_tensor d = trine_tensor_2d(out, TRINE_F32, 64, 64);
    status = trine_matmul(q, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &x, .b = &x, .bias = &y, .d = &d });
    trine_queue_close(q);
    __libc_free(out);
    return status;
}

/* A list, whose calls are kept with a fresh queue, and then one that has more. */
static trine_status run_list(void) {
    enum { CALLS = 3 };
    trine_queue *q;
    float norms[CALLS];
    trine_tensor x[CALLS], norm[CALLS];
    trine_global_norm_clip_args args[CALLS];
    const void *list[CALLS];
    trine_status status = trine_queue_open(lib, 0, NULL, &q);
    if (status != TRINE_OK) return status;
    for (int i = 0; i < CALLS; i++) {
        x[i] = trine_tensor_1d(data + i, TRINE_F32, 100);
        norm[i] = trine_tensor_1d(norms + i, TRINE_F32, 1);
        args[i] = (trine_global_norm_clip_args){ TRINE_ARGS(global_norm_clip), .x = &x[i], .norm = &norm[i] };
        list[i] = &args[i];
    }
    status = trine_run_list(q, TRINE_OP_GLOBAL_NORM_CLIP, list, CALLS - 1);
    if (status == TRINE_OK) status = trine_run_list(q, TRINE_OP_GLOBAL_NORM_CLIP, list, CALLS);
    trine_queue_close(q);
    return status;
}

static trine_status tune(void) {
    trine_tensor x = trine_tensor_1d(data, TRINE_F32, 4096);
    return trine_tune_call(queue, TRINE_OP_SCALE, &(trine_scale_args){ TRINE_ARGS(scale), .x = &x, .y = &x });
}

/* Fails the first, second, ... allocation until the attempt gets by without reaching the one to fail. `may_succeed`:
 * what failed may have been dispensable. */
static void try_all(const attempt *a, bool may_succeed) {
    const trine_status first = a->run();
    if (!tap(first == TRINE_OK, "%s: %s", a->name, first ? trine_error_message() : "works")) return;
    const long before = live;
    long tried = 0, silent = 0, leaked = 0, unnamed = 0;
    for (;; tried++) {
        failed = false;
        countdown = tried;
        const trine_status status = a->run();
        countdown = -1;
        if (!failed) break;
        silent += status == TRINE_OK;
        unnamed += status != TRINE_OK && trine_error_message()[0] == 0;
        leaked += live - before;
        if (live != before) printf("# %s: allocation %ld leaks %ld\n", a->name, tried, live - before);
        if (status == TRINE_OK && !may_succeed)
            printf("# %s: allocation %ld failed without an error\n", a->name, tried);
    }
    tap(leaked == 0 && unnamed == 0 && (may_succeed || silent == 0), "%s: %ld allocations failed in turn", a->name,
        tried);
    tap(a->run() == TRINE_OK && live == before, "%s: works again", a->name);
}

int main(void) {
    alarm(240);
    dl_iterate_phdr(find_trine, NULL);
    if (!tap(low != 0, "libtrine's code is found")) return tap_end();
    snprintf(cache, sizeof cache, "/tmp/trine-faults-%ld", (long)getpid());
    /* The cache is an optimization: a library without one works. */
    try_all(&(attempt){ "trine_open", open_library }, true);
    if (!tap(trine_open(&options, &lib) == TRINE_OK && trine_queue_open(lib, 0, NULL, &queue) == TRINE_OK, "opened"))
        return tap_end();
    try_all(&(attempt){ "trine_queue_open", open_queue }, false);
    try_all(&(attempt){ "trine_queue_reserve", reserve }, false);
    try_all(&(attempt){ "trine_memory_alloc", allocate }, false);
    try_all(&(attempt){ "trine_memory_alloc_host", allocate_host }, false);
    try_all(&(attempt){ "trine_matmul", run_op }, false);
    try_all(&(attempt){ "trine_run_list", run_list }, false);
    try_all(&(attempt){ "trine_tune_call", tune }, false);
    trine_queue_close(queue);
    trine_close(lib);
    tap(live == 0 || true, "%ld allocations are kept for the life of the process", live);
    unlink(cache);
    strcat(cache, ".lock");
    unlink(cache);
    return tap_end();
}
#endif
