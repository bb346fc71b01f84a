/* SPDX-License-Identifier: Apache-2.0 */
/* In place of libnvidia-ml.so.1 and libamd_smi.so: a device at 0000:65:00.0 whose counter goes on by a joule each time
 * it is read. */
#include <stdint.h>
#include <string.h>

int nvmlInit_v2(void);
int nvmlInit_v2(void) { return 0; }

int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlSystemGetDriverVersion(char *version, unsigned size) { return memset(version, 0, size) == NULL; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **handle);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **handle) {
    static int here;
    *handle = &here;
    return strcmp(pci, "0000:65:00.0") != 0;
}

/* NVML_ERROR_NOT_SUPPORTED */
#define MISSING(name) \
    int name(void); \
    int name(void) { return 3; }
MISSING(nvmlDeviceGetClockInfo)
MISSING(nvmlDeviceGetMaxClockInfo)
MISSING(nvmlDeviceGetPowerUsage)
MISSING(nvmlDeviceGetEnforcedPowerLimit)
MISSING(nvmlDeviceGetPersistenceMode)

int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
    static unsigned long long used = 5000;
    *millijoules = used += 1000;
    return handle == NULL;
}

int amdsmi_init(uint64_t which);
int amdsmi_init(uint64_t which) { return which != 2; }

int amdsmi_get_processor_handle_from_bdf(uint64_t address, void **handle);
int amdsmi_get_processor_handle_from_bdf(uint64_t address, void **handle) {
    static int here;
    *handle = &here;
    return address != 0x6500;
}

int amdsmi_get_energy_count(void *handle, uint64_t *count, float *microjoules, uint64_t *timestamp);
int amdsmi_get_energy_count(void *handle, uint64_t *count, float *microjoules, uint64_t *timestamp) {
    static uint64_t used;
    *count = used += 65536;
    *microjoules = 15.2587890625f;
    *timestamp = 0;
    return handle == NULL;
}
