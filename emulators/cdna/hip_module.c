/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated HIP driver's modules and launches. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

/* ---------------------------------------------------------------------------------------------------------- modules */

/* The size of an ELF file, from its section headers, which come last; HIP is told none. */
static size_t object_size(const unsigned char *bytes) {
    uint64_t sections;
    uint16_t entry, count;
    memcpy(&sections, bytes + 40, sizeof sections);
    memcpy(&entry, bytes + 58, sizeof entry);
    memcpy(&count, bytes + 60, sizeof count);
    return (size_t)(sections + (uint64_t)entry * count);
}

API hipError_t hipModuleLoadData(cdna_object **out, const void *image) {
    cdna_failure failure;
    ENTER(hipModuleLoadData);
    if (out == NULL || image == NULL) return leave(hipErrorInvalidValue);
    if (the_driver.captures && capture_mode != CAPTURE_RELAXED) return leave(hipErrorStreamCaptureUnsupported);
    if (memcmp(image, "\177ELF", 4) != 0) return leave(hipErrorInvalidImage);
    *out = cdna_object_load(the_driver.machine, image, object_size(image), &failure);
    if (*out) return leave(hipSuccess);
    const bool other_chip = strstr(failure.message, "another chip") != NULL;
    if (!other_chip) fprintf(stderr, "hipModuleLoadData: %s\n", failure.message);
    return leave(other_chip ? hipErrorNoBinaryForGpu : hipErrorInvalidImage);
}

API hipError_t hipModuleLoadDataEx(cdna_object **out, const void *image, unsigned options, int *names, void **values) {
    (void)options, (void)names, (void)values;
    return hipModuleLoadData(out, image);
}

API hipError_t hipModuleUnload(cdna_object *module) {
    ENTER(hipModuleUnload);
    if (module == NULL) return leave(hipErrorInvalidHandle);
    /* else its names are still to be printed */
    if (the_driver.profile == NULL) cdna_object_unload(the_driver.machine, module);
    return leave(hipSuccess);
}

API hipError_t hipModuleGetFunction(const cdna_kernel **out, cdna_object *module, const char *name) {
    ENTER(hipModuleGetFunction);
    if (module == NULL || name == NULL) return leave(hipErrorInvalidHandle);
    *out = cdna_object_kernel(module, name);
    return leave(*out ? hipSuccess : hipErrorNotFound);
}

API hipError_t hipModuleGetGlobal(void **out, size_t *bytes, cdna_object *module, const char *name) {
    size_t size = 0;
    ENTER(hipModuleGetGlobal);
    if (module == NULL || name == NULL) return leave(hipErrorInvalidHandle);
    *out = cdna_object_symbol(module, name, &size);
    if (bytes) *bytes = size;
    return leave(*out ? hipSuccess : hipErrorNotFound);
}

API hipError_t hipFuncGetAttribute(int *value, int attribute, const cdna_kernel *kernel) {
    ENTER(hipFuncGetAttribute);
    if (kernel == NULL) return leave(hipErrorInvalidHandle);
    const uint32_t known[] = { kernel->max_workgroup, kernel->lds_size, 0, kernel->private_size,
                               kernel->vgprs + kernel->agprs };
    if (attribute < 0 || attribute >= (int)(sizeof known / sizeof known[0])) return leave(hipErrorInvalidValue);
    *value = (int)known[attribute];
    return leave(hipSuccess);
}

/* --------------------------------------------------------------------------------------------------------- launches */

static cdna_profile *profile_of(const cdna_kernel *kernel) {
    driver *d = &the_driver;
    if (getenv("CDNA_PROFILE") == NULL) return NULL;
    for (int i = 0; i < d->profiles; i++)
        if (d->profiled[i] == kernel) return &d->profile[i];
    cdna_profile *profile = realloc(d->profile, (size_t)(d->profiles + 1) * sizeof *profile);
    if (profile) d->profile = profile;
    const cdna_kernel **profiled = realloc(d->profiled, (size_t)(d->profiles + 1) * sizeof *profiled);
    if (profiled) d->profiled = profiled;
    if (profile == NULL || profiled == NULL) return NULL;
    profile[d->profiles] = (cdna_profile){ 0 };
    profiled[d->profiles] = kernel;
    return &profile[d->profiles++];
}

/* A line "ran NAME" in the file $LAUNCHES at a kernel's first launch, as emulators/cuda/launches.c writes for NVIDIA's
 * driver. */
static void note_launch(const cdna_kernel *kernel) {
    enum { MOST = 4096 };
    static const cdna_kernel *noted[MOST];
    const char *path = getenv("LAUNCHES");
    int i = 0;
    while (path && i < MOST && noted[i] != NULL && noted[i] != kernel) i++;
    if (path == NULL || i == MOST || noted[i] == kernel) return;
    noted[i] = kernel;
    FILE *file = fopen(path, "a");
    if (file == NULL) return;
    fprintf(file, "ran %s\n", kernel->name);
    fclose(file);
}

/* As on the device, the launch itself succeeds, and what it does wrong is told by every call after it. One that peers
 * write to, which may wait for theirs, runs without the lock, once, and is not counted. */
hipError_t perform_launch(const operation *work) {
    const int units = work->launch.units;
    const bool together = points_to_peers(work->launch.arguments, work->launch.bytes);
    const cdna_options options = { .trace = the_driver.trace,
                                   .trace_wave = the_driver.trace_wave,
                                   .threads = together                        ? 1
                                              : units < omp_get_max_threads() ? units
                                                                              : 0,
                                   .device = work->launch.device };
    the_driver.units = units;
    if (the_driver.trace) fprintf(the_driver.trace, "%s\n", work->launch.kernel->name);
    cdna_failure failure = { 0 };
    note_launch(work->launch.kernel);
    cdna_profile *profile = profile_of(work->launch.kernel);
    if (together) pthread_mutex_unlock(&the_driver.mutex);
    const bool ran = (the_driver.orders && !together ? cdna_launch_both : cdna_launch)(
        the_driver.machine, work->launch.kernel, &work->launch.grid, work->launch.arguments, work->launch.bytes,
        &options, together ? NULL : profile, &failure);
    if (together) pthread_mutex_lock(&the_driver.mutex);
    if (ran) return hipSuccess;
    fprintf(stderr, "hipModuleLaunchKernel: %s\n", failure.message);
    if (strstr(failure.message, "cannot be launched")) return hipErrorInvalidConfiguration;
    the_driver.lost = hipErrorLaunchFailure;
    return hipSuccess;
}

/* The arguments from a pointer to each, or from one block; NULL if there is neither. */
static unsigned char *gather(const cdna_kernel *kernel, void **each, void **extra, size_t *bytes_out) {
    unsigned char *block = calloc(1, kernel->kernarg_size + 1);
    *bytes_out = 0;
    for (int i = 0, given = 0; each && block && i < kernel->arguments; i++) {
        const struct cdna_argument *a = &kernel->argument[i];
        if (strncmp(a->kind, "hidden_", 7) == 0 || a->offset + a->size > kernel->kernarg_size) continue;
        memcpy(block + a->offset, each[given++], a->size);
        if (a->offset + a->size > *bytes_out) *bytes_out = a->offset + a->size;
    }
    const void *from = NULL;
    size_t size = 0;
    /* HIP_LAUNCH_PARAM_END; _BUFFER_POINTER 1, _BUFFER_SIZE 2 */
    for (void **at = extra; each == NULL && at && *at != (void *)3; at += 2) {
        if (*at == (void *)1) from = at[1];
        if (*at == (void *)2) size = *(const size_t *)at[1];
    }
    if (from && block) {
        *bytes_out = size < kernel->kernarg_size ? size : kernel->kernarg_size;
        memcpy(block, from, *bytes_out);
    }
    return block;
}

API hipError_t hipModuleLaunchKernel(const cdna_kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned x, unsigned y, unsigned z, unsigned lds, stream *where, void **each,
                                     void **extra) {
    ENTER(hipModuleLaunchKernel);
    if (kernel == NULL || (where && where->device != current_device)) return leave(hipErrorInvalidHandle);
    operation work = { .kind = LAUNCH,
                       .launch = { .kernel = kernel, .grid = { { grid_x, grid_y, grid_z }, { x, y, z }, lds } } };
    work.launch.arguments = gather(kernel, each, extra, &work.launch.bytes);
    const hipError_t error = work.launch.arguments ? submit(where, &work) : hipErrorOutOfMemory;
    free(work.launch.arguments);
    return leave(error);
}
