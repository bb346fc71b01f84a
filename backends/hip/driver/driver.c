/* SPDX-License-Identifier: Apache-2.0 */
/* Opening AMD's runtime library, and its errors. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static hip_driver driver;

/* False with the first entry point that the library lacks. */
static bool find_entry_points(void *library, const char **missing_out) {
#define ENTRY(type, name, parameters) \
    *missing_out = "hip" #name; \
    *(void **)&driver.name = dlsym(library, *missing_out); \
    if (driver.name == NULL) return false;
    HIP_ENTRY_POINTS(ENTRY)
#undef ENTRY
    /* hipDeviceProp_t grew in the middle with HIP 6, which gave its entry point a new name:
     * where gcnArchName is in each. */
    static const struct {
        const char *name;
        size_t arch_at;
    } layouts[] = { { "hipGetDevicePropertiesR0600", 1160 }, { "hipGetDeviceProperties", 396 } };
    for (size_t i = 0; driver.GetDeviceProperties == NULL && i < sizeof layouts / sizeof layouts[0]; i++) {
        *(void **)&driver.GetDeviceProperties = dlsym(library, layouts[i].name);
        driver.properties = *missing_out = layouts[i].name;
        driver.arch_at = layouts[i].arch_at;
    }
    *(void **)&driver.StreamCreateWithMask = dlsym(library, "hipExtStreamCreateWithCUMask");
    return driver.GetDeviceProperties != NULL;
}

/* One that the process has already, else the newest. The library reaches for the kernel's interface as soon as it is
 * used, and says so on stderr if there is none: without /sys/class/kfd it is not opened.
 * It is never closed: it has threads of its own. */
static void *open_library(char *reason_out, size_t reason_size) {
    static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so" };
    enum { NAMES = sizeof names / sizeof names[0] };
    void *library = NULL;
    for (int i = 0; library == NULL && i < NAMES; i++) library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) return library;
    if (access("/sys/class/kfd", F_OK) != 0) {
        snprintf(reason_out, reason_size,
                 "no device: there is no /sys/class/kfd, which the kernel has with AMD's driver");
        return NULL;
    }
    for (int i = 0; library == NULL && i < NAMES; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) snprintf(reason_out, reason_size, "no driver: %s", dlerror());
    return library;
}

const hip_driver *hip_driver_open(const trine_host *host, char *reason_out, size_t reason_size) {
    void *library = open_library(reason_out, reason_size);
    if (library == NULL) return NULL;
    const char *missing;
    driver.error = host->error;
    if (find_entry_points(library, &missing)) return &driver;
    snprintf(reason_out, reason_size, "driver without %s", missing);
    return NULL;
}

hip_result hip_architecture(const hip_driver *d, int device, size_t size, char *name_out) {
    _Alignas(16) char properties[4096] = { 0 }; /* 792 bytes in HIP 5, 1472 in HIP 6 and 7 */
    const hip_result result = d->GetDeviceProperties(properties, device);
    const char *name = properties + d->arch_at; /* "gfx942:sramecc+:xnack-" */
    snprintf(name_out, size, "%.*s", (int)strcspn(name, ":"), name);
    return result;
}

const char *hip_words(const hip_driver *d, hip_result result) {
    const char *words = d->GetErrorString(result);
    return words != NULL ? words : "an error that the driver does not know";
}

trine_status hip_status(const hip_driver *d, const char *function, hip_result result) {
    if (result == HIP_SUCCESS) return TRINE_OK;
    return d->error(result == HIP_OUT_OF_MEMORY ? TRINE_ERR_MEMORY : TRINE_ERR_DEVICE, "%s: %s", function,
                    hip_words(d, result));
}
