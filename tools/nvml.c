/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, opened at run time. Its declarations are few and part of its stable interface (NVML API
 * reference, R580), so that its header is not needed. */
#include "nvml.h"

#include <dlfcn.h>
#include <stddef.h>

typedef struct nvml_handle *nvml_handle;
enum { NVML_SUCCESS, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

static struct {
    int (*init)(void);
    int (*driver)(char *version, unsigned size);
    int (*handle)(const char *pci, nvml_handle *handle_out);
    int (*clock)(nvml_handle handle, int which, unsigned *mhz_out);
    int (*most_clock)(nvml_handle handle, int which, unsigned *mhz_out);
    int (*power)(nvml_handle handle, unsigned *milliwatts_out);
    int (*power_limit)(nvml_handle handle, unsigned *milliwatts_out);
    int (*persistence)(nvml_handle handle, int *enabled_out);
    int (*energy)(nvml_handle handle, unsigned long long *millijoules_out);
} nvml;

static bool open_library(void) {
    static const struct {
        const char *name;
        size_t offset;
    } entries[] = { { "nvmlInit_v2", offsetof(__typeof__(nvml), init) },
                    { "nvmlSystemGetDriverVersion", offsetof(__typeof__(nvml), driver) },
                    { "nvmlDeviceGetHandleByPciBusId_v2", offsetof(__typeof__(nvml), handle) },
                    { "nvmlDeviceGetClockInfo", offsetof(__typeof__(nvml), clock) },
                    { "nvmlDeviceGetMaxClockInfo", offsetof(__typeof__(nvml), most_clock) },
                    { "nvmlDeviceGetPowerUsage", offsetof(__typeof__(nvml), power) },
                    { "nvmlDeviceGetEnforcedPowerLimit", offsetof(__typeof__(nvml), power_limit) },
                    { "nvmlDeviceGetPersistenceMode", offsetof(__typeof__(nvml), persistence) },
                    { "nvmlDeviceGetTotalEnergyConsumption", offsetof(__typeof__(nvml), energy) } };
    static bool tried, opened;
    if (tried) return opened;
    tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *const entry = dlsym(library, entries[i].name);
        if (entry == NULL) return false;
        *(void **)((char *)&nvml + entries[i].offset) = entry;
    }
    return opened = nvml.init() == NVML_SUCCESS;
}

static unsigned number(int (*ask)(nvml_handle, unsigned *), nvml_handle handle) {
    unsigned value = 0;
    return ask(handle, &value) == NVML_SUCCESS ? value : 0;
}
static unsigned clock_of(int (*ask)(nvml_handle, int, unsigned *), nvml_handle handle, int which) {
    unsigned value = 0;
    return ask(handle, which, &value) == NVML_SUCCESS ? value : 0;
}

bool nvml_ask(const char *pci, nvml_device *device_out) {
    nvml_handle handle;
    int persistent = 0;
    *device_out = (nvml_device){ 0 };
    if (pci == NULL || !open_library() || nvml.handle(pci, &handle) != NVML_SUCCESS) return false;
    nvml.driver(device_out->driver, sizeof device_out->driver);
    device_out->clock = clock_of(nvml.clock, handle, NVML_CLOCK_SM);
    device_out->most_clock = clock_of(nvml.most_clock, handle, NVML_CLOCK_SM);
    device_out->memory_clock = clock_of(nvml.clock, handle, NVML_CLOCK_MEMORY);
    device_out->power = 1e-3 * number(nvml.power, handle);
    device_out->power_limit = 1e-3 * number(nvml.power_limit, handle);
    device_out->persistent = nvml.persistence(handle, &persistent) == NVML_SUCCESS && persistent;
    return true;
}

bool nvml_joules(const char *pci, double *joules_out) {
    nvml_handle handle;
    unsigned long long millijoules;
    if (!open_library() || nvml.handle(pci, &handle) != NVML_SUCCESS ||
        nvml.energy(handle, &millijoules) != NVML_SUCCESS)
        return false;
    *joules_out = 1e-3 * (double)millijoules;
    return true;
}
