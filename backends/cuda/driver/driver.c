/* SPDX-License-Identifier: Apache-2.0 */
/* Opening NVIDIA's driver library, and its errors. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static cuda_driver driver;

/* False with the first entry point that the library lacks: it is older than the one this was built against. */
static bool find_entry_points(void *library, const char **missing_out) {
    static const char *const names[] = {
#define ENTRY(name) STRING(cu##name),
        CUDA_ENTRY_POINTS(ENTRY)
#undef ENTRY
    };
    size_t i = 0;
#define ENTRY(name) \
    *missing_out = names[i++]; \
    *(void **)&driver.name = dlsym(library, *missing_out); \
    if (driver.name == NULL) return false;
    CUDA_ENTRY_POINTS(ENTRY)
#undef ENTRY
    driver.no_parts = NULL;
#define ENTRY(name) \
    *(void **)&driver.name = dlsym(library, STRING(cu##name)); \
    if (driver.name == NULL) driver.no_parts = STRING(cu##name);
    CUDA_PART_ENTRY_POINTS(ENTRY)
#undef ENTRY
    return true;
}

const cuda_driver *cuda_driver_open(const trine_host *host, char *reason_out, size_t reason_size) {
    /* Never closed: the driver has threads of its own. */
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(reason_out, reason_size, "no driver: %s", dlerror());
        return NULL;
    }
    CUresult (*get_version)(int *);
    *(void **)&get_version = dlsym(library, "cuDriverGetVersion");
    if (get_version != NULL && get_version(&driver.version) == CUDA_SUCCESS && driver.version < CUDA_NEEDED) {
        snprintf(reason_out, reason_size, "driver too old: have %d.%d, need %d.%d", driver.version / 1000,
                 driver.version % 1000 / 10, CUDA_NEEDED / 1000, CUDA_NEEDED % 1000 / 10);
        return NULL;
    }
    const char *missing;
    if (!find_entry_points(library, &missing)) {
        snprintf(reason_out, reason_size, "driver without %s", missing);
        return NULL;
    }
    driver.error = host->error;
    const CUresult result = driver.Init(0);
    if (result == CUDA_SUCCESS) return &driver;
    snprintf(reason_out, reason_size, "no driver: cuInit: %s", cuda_words(&driver, result));
    return NULL;
}

const char *cuda_words(const cuda_driver *d, CUresult result) {
    const char *words = NULL;
    return d->GetErrorString(result, &words) == CUDA_SUCCESS && words != NULL
               ? words
               : "an error that the driver does not know";
}

trine_status cuda_status(const cuda_driver *d, const char *function, CUresult result) {
    if (result == CUDA_SUCCESS) return TRINE_OK;
    return d->error(result == CUDA_ERROR_OUT_OF_MEMORY ? TRINE_ERR_MEMORY : TRINE_ERR_DEVICE, "%s: %s", function,
                    cuda_words(d, result));
}
