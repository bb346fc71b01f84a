/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded beside NVIDIA's driver library, writes to $LAUNCHES a line for each function of a module that is loaded,
 * "has NAME", and one when it is launched for the first time, "ran NAME": what a selection of cases covers is then
 * known, not believed. */
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SLOTS = 1 << 14 };

static void *(*next_dlsym)(void *, const char *);
static CUresult (*load_data)(CUmodule *, const void *);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                          void **, void **);
static CUresult (*launch_ex)(const CUlaunchConfig *, CUfunction, void **, void **);
static CUresult (*count_functions)(unsigned *, CUmodule);
static CUresult (*list_functions)(CUfunction *, unsigned, CUmodule);
static CUresult (*name_of)(const char **, CUfunction);

/* One write for a line, so that lines of several processes do not mix. */
static void say(const char *word, CUfunction function) {
    static atomic_int file = -1;
    const char *name = NULL, *path = getenv("LAUNCHES");
    char line[512];
    if (path == NULL || name_of(&name, function) != CUDA_SUCCESS) return;
    if (file < 0) file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const int length = snprintf(line, sizeof line, "%s %s\n", word, name);
    if (write(file, line, (size_t)length) != length) abort();
}

static void ran(CUfunction function) {
    static _Atomic(CUfunction) seen[SLOTS];
    for (size_t at = ((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15 >> 50;; at = (at + 1) % SLOTS) {
        CUfunction none = NULL;
        if (seen[at] == function) return;
        if (!atomic_compare_exchange_strong(&seen[at], &none, function) && none != function) continue;
        if (none == NULL) say("ran", function);
        return;
    }
}

static CUresult load_and_list(CUmodule *module, const void *image) {
    const CUresult result = load_data(module, image);
    unsigned count = 0;
    if (result != CUDA_SUCCESS || count_functions(&count, *module) != CUDA_SUCCESS) return result;
    CUfunction *function = calloc(count, sizeof *function);
    if (function != NULL && list_functions(function, count, *module) == CUDA_SUCCESS)
        for (unsigned i = 0; i < count; i++) say("has", function[i]);
    free(function);
    return result;
}

static CUresult note_launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                            unsigned threads_y, unsigned threads_z, unsigned shared, CUstream stream, void **parameters,
                            void **extra) {
    ran(function);
    return launch(function, x, y, z, threads_x, threads_y, threads_z, shared, stream, parameters, extra);
}

static CUresult note_launch_ex(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    ran(function);
    return launch_ex(config, function, parameters, extra);
}

/* In front of the C library's: the backend finds the driver's entry points by it. */
EXPORT void *dlsym(void *handle, const char *name) {
    static const struct {
        const char *name;
        void **real;
        void *instead;
    } noted[] = {
        { "cuModuleLoadData", (void **)&load_data, (void *)load_and_list },
        { "cuLaunchKernel", (void **)&launch, (void *)note_launch },
        { "cuLaunchKernelEx", (void **)&launch_ex, (void *)note_launch_ex },
    };
    static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
    for (size_t i = 0; next_dlsym == NULL && i < sizeof versions / sizeof versions[0]; i++)
        *(void **)&next_dlsym = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    void *found = next_dlsym(handle, name);
    for (size_t i = 0; found != NULL && i < sizeof noted / sizeof noted[0]; i++) {
        if (strcmp(name, noted[i].name) != 0) continue;
        *(void **)&count_functions = next_dlsym(handle, "cuModuleGetFunctionCount");
        *(void **)&list_functions = next_dlsym(handle, "cuModuleEnumerateFunctions");
        *(void **)&name_of = next_dlsym(handle, "cuFuncGetName");
        *noted[i].real = found;
        /* Drivers before 12.4 cannot list functions: then nothing is said, which whoever reads the file must notice. */
        return count_functions && list_functions && name_of ? noted[i].instead : found;
    }
    return found;
}
