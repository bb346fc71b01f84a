/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of energy. amd-smi is opened at run time; what is declared of it here is part of its stable interface (AMD
 * SMI C API, ROCm 6.1 and later). */
#include "meter.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"

/* ------------------------------------------------------------------------------------------------------------- RAPL */

static bool read_number(const char *path, double *value_out) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    uint64_t value = 0;
    const bool read = fscanf(file, "%" SCNu64, &value) == 1;
    *value_out = (double)value;
    if (!read) errno = EIO;
    fclose(file);
    return read;
}

/* A package, or the memory beside it: other zones are parts of packages, or hold them. */
static bool counts(const char *folder) {
    char path[320], name[64] = "";
    snprintf(path, sizeof path, "%s/name", folder);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    const bool read = fscanf(file, "%63s", name) == 1;
    fclose(file);
    return read && (strncmp(name, "package", 7) == 0 || strcmp(name, "dram") == 0);
}

static bool rapl_open(meter *m, const char *sys, char *why, size_t size) {
    char folder[128], path[320];
    snprintf(folder, sizeof folder, "%.60s/class/powercap", sys);
    DIR *directory = opendir(folder);
    struct dirent *entry;
    m->name = "RAPL";
    snprintf(why, size, "%s has no package of RAPL", folder);
    while (directory && (entry = readdir(directory)) && m->zones < METER_ZONES) {
        __typeof__(m->zone[0]) *zone = &m->zone[m->zones];
        char one[256];
        snprintf(one, sizeof one, "%s/%.100s", folder, entry->d_name);
        if (strncmp(entry->d_name, "intel-rapl:", 11) != 0 || !counts(one)) continue;
        snprintf(path, sizeof path, "%s/max_energy_range_uj", one);
        if (!read_number(path, &zone->range)) zone->range = 0;
        snprintf(zone->path, sizeof zone->path, "%.200s/energy_uj", one);
        if (!read_number(zone->path, &zone->before)) {
            snprintf(why, size, "%s: %s", zone->path, strerror(errno));
            m->zones = 0;
            break;
        }
        m->zones++;
    }
    if (directory) closedir(directory);
    return m->zones > 0;
}

static bool rapl_read(meter *m, double *joules_out) {
    *joules_out = 0;
    for (int i = 0; i < m->zones; i++) {
        double now;
        if (!read_number(m->zone[i].path, &now)) return false;
        m->zone[i].total += now - m->zone[i].before + (now < m->zone[i].before ? m->zone[i].range : 0);
        m->zone[i].before = now;
        *joules_out += 1e-6 * m->zone[i].total;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- amd-smi */

typedef struct {
    uint64_t address; /* function 3 bits, device 5, bus 8, domain 48 */
} amd_bdf;

static int (*amd_energy)(void *handle, uint64_t *count, float *resolution, uint64_t *timestamp);

static bool amd_open(meter *m, char *why, size_t size) {
    static const char *const names[] = { "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24", "libamd_smi.so",
                                         "/opt/rocm/lib/libamd_smi.so" };
    enum { AMD_GPUS = 2 };
    void *library = NULL;
    unsigned domain, bus, device, function;
    m->name = "amd-smi";
    for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return snprintf(why, size, "libamd_smi.so is not installed"), false;
    int (*init)(uint64_t) = (__typeof__(init))(uintptr_t)dlsym(library, "amdsmi_init");
    int (*find)(amd_bdf, void **) = (__typeof__(find))(uintptr_t)dlsym(library, "amdsmi_get_processor_handle_from_bdf");
    amd_energy = (__typeof__(amd_energy))(uintptr_t)dlsym(library, "amdsmi_get_energy_count");
    if (!init || !find || !amd_energy || init(AMD_GPUS) != 0)
        return snprintf(why, size, "libamd_smi.so does not start"), false;
    if (sscanf(m->pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4 ||
        find((amd_bdf){ (uint64_t)domain << 16 | bus << 8 | device << 3 | function }, &m->handle) != 0)
        return snprintf(why, size, "amd-smi does not know the device at %s", m->pci), false;
    double joules;
    return meter_read(m, &joules) || (snprintf(why, size, "amd-smi has no counter of %s", m->pci), false);
}

static bool amd_read(const meter *m, double *joules_out) {
    uint64_t count = 0, timestamp;
    float microjoules = 0;
    if (amd_energy(m->handle, &count, &microjoules, &timestamp) != 0) return false;
    *joules_out = 1e-6 * (double)count * (double)microjoules;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- all */

bool meter_open(meter *m, const trine_device_info_t *device, const char *sys, char *why, size_t size) {
    double joules;
    *m = (meter){ 0 };
    if (device->emulated) return snprintf(why, size, "%s is emulated", device->name), false;
    snprintf(m->pci, sizeof m->pci, "%s", device->pci ? device->pci : "");
    if (strcmp(device->name, "cpu") == 0) return rapl_open(m, sys, why, size);
    if (strncmp(device->name, "hip:", 4) == 0) return amd_open(m, why, size);
    m->name = "NVML";
    snprintf(why, size, "NVML has no counter of %s", device->name);
    return nvml_joules(m->pci, &joules);
}

bool meter_read(void *opened, double *joules_out) {
    meter *m = opened;
    if (m->zones > 0) return rapl_read(m, joules_out);
    return m->handle ? amd_read(m, joules_out) : nvml_joules(m->pci, joules_out);
}
