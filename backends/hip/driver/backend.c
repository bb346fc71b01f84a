/* SPDX-License-Identifier: Apache-2.0 */
/* The HIP backend: its devices. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <trine/ops.h>

#include "backends/simt/core/group.h"
#include "backends/simt/core/queue.h"
#include "state.h"

_Static_assert(offsetof(hip_queue, stream) == 0, "kernels from elsewhere find the stream there");

static trine_device devices[HIP_MAX_DEVICES];

static const trine_kernel *kernels(const trine_device *device, int op) {
    (void)device;
    return hip_ops[op].kernels;
}

/* What is said of a device, and the storage of its strings. */
typedef struct description {
    char name[16], model[128], arch[32], pci[16];
} description;
static description descriptions[HIP_MAX_DEVICES];
static hip_device states[HIP_MAX_DEVICES];
static hip_module modules[HIP_MAX_DEVICES][TRINE_OP_COUNT];
static char driver_version[24];

static int attribute(const hip_driver *driver, int device, hip_attribute which) {
    int value = 0;
    return driver->DeviceGetAttribute(&value, which, device) == HIP_SUCCESS ? value : 0;
}

/* Transfers of the memory's pins in a cycle of the clock that HIP reports: HBM2e on MI200, HBM3 from MI300 on. A
 * compute unit finishes 128 packed multiply-adds a clock (AMD CDNA2 and CDNA3 white papers, peak rates). */
static void describe_speed(const hip_driver *driver, int device, trine_device *out) {
    const double memory_clock = 1e3 * attribute(driver, device, HIP_MEMORY_CLOCK_RATE);
    const double bus = attribute(driver, device, HIP_MEMORY_BUS_WIDTH) / 8.0;
    const double clock = 1e3 * attribute(driver, device, HIP_CLOCK_RATE);
    const double transfers = strcmp(out->info.arch, "gfx90a") == 0 ? 2 : 4;
    out->bytes_per_second = memory_clock * bus > 0 ? transfers * memory_clock * bus : 1e12;
    out->flops_per_second = clock > 0 ? 2 * 128 * clock * out->info.units : 1e13;
}

static int find_arch(const char *name) {
    for (int i = 0; i < HIP_ARCHS; i++)
        if (strcmp(hip_archs[i], name) == 0) return i;
    return -1;
}

/* Each architecture that code is built for has its row. */
static const hip_chip *find_chip(const char *arch) {
    const hip_chip *chip = hip_chips;
    while (strcmp(chip->arch, arch) != 0) chip++;
    return chip;
}

/* False with the reason: "no code for this architecture: gfx908 (...)". */
static bool describe(const hip_driver *driver, const trine_host *host, int number, int place, char *reason_out,
                     size_t reason_size) {
    description *d = &descriptions[place];
    trine_device *out = &devices[place];
    size_t memory = 0;
    hip_result result = driver->DeviceGetName(d->model, sizeof d->model, number);
    if (result == HIP_SUCCESS) result = driver->DeviceTotalMem(&memory, number);
    if (result == HIP_SUCCESS) result = driver->DeviceGetPCIBusId(d->pci, sizeof d->pci, number);
    if (result == HIP_SUCCESS) result = hip_architecture(driver, number, sizeof d->arch, d->arch);
    if (result != HIP_SUCCESS) {
        snprintf(reason_out, reason_size, "device %d: %s", number, hip_words(driver, result));
        return false;
    }
    const int arch = find_arch(d->arch);
    if (arch < 0) {
        snprintf(reason_out, reason_size, "no code for this architecture: %s (%s)", d->arch, d->model);
        return false;
    }
    for (char *c = d->pci; *c; c++)
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    snprintf(d->name, sizeof d->name, "hip:%d", number);
    *out = (trine_device){
        .info = { .name = d->name,
                  .model = d->model,
                  .arch = d->arch,
                  .pci = d->pci,
                  .units = attribute(driver, number, HIP_MULTIPROCESSOR_COUNT),
                  .numa_node = host->numa_node_of_pci(d->pci),
                  .memory = (int64_t)memory,
                  .cache = { attribute(driver, number, HIP_MAX_SHARED_MEMORY_PER_BLOCK), 0,
                             attribute(driver, number, HIP_L2_CACHE_SIZE) } },
        .state = &states[place],
        .driver = driver_version,
    };
    describe_speed(driver, number, out);
    states[place].driver = driver;
    states[place].device = number;
    states[place].module = modules[place];
    states[place].arch = arch;
    states[place].chip = find_chip(d->arch);
    states[place].units = out->info.units;
    states[place].memory = (size_t)out->info.memory;
    pthread_mutex_init(&states[place].lock, NULL);
    return true;
}

/* Devices that can be used; the reason is why one cannot, or why there are none. */
static int find_devices(const hip_driver *driver, const trine_host *host, char *reason_out, size_t reason_size) {
    int count = 0, usable = 0;
    const hip_result result = driver->GetDeviceCount(&count);
    snprintf(reason_out, reason_size, "no device%s%s", result == HIP_SUCCESS ? "" : ": ",
             result == HIP_SUCCESS ? "" : hip_words(driver, result));
    for (int i = 0; result == HIP_SUCCESS && i < count && usable < HIP_MAX_DEVICES; i++)
        usable += describe(driver, host, i, usable, reason_out, reason_size);
    return usable;
}

/* HIP counts 10^7 for a major version and 10^5 for a minor one. */
static bool read_version(const hip_driver *driver, char *reason_out, size_t reason_size) {
    int version = 0;
    const hip_result result = driver->RuntimeGetVersion(&version);
    snprintf(driver_version, sizeof driver_version, "%d.%d.%d", version / 10000000, version / 100000 % 100,
             version % 100000);
    if (result != HIP_SUCCESS)
        snprintf(reason_out, reason_size, "no driver: hipRuntimeGetVersion: %s", hip_words(driver, result));
    return result == HIP_SUCCESS;
}

const trine_backend *simt_open_backend(const trine_host *host, char *reason_out, size_t reason_size) {
    static trine_backend backend = {
        .struct_size = sizeof backend, .name = "hip", .device = devices, .kernels = kernels
    };
    if (backend.devices > 0) return &backend;
    const hip_driver *driver = hip_driver_open(host, reason_out, reason_size);
    if (driver == NULL) return NULL;
    simt_fill_backend(&backend);
    simt_fill_groups(&backend);
    backend.devices = find_devices(driver, host, reason_out, reason_size);
    if (backend.devices > 0 && !read_version(driver, reason_out, reason_size)) backend.devices = 0;
    return backend.devices > 0 ? &backend : NULL;
}
