/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: its devices. Work goes to each device's primary context, which the CUDA runtime and all that is
 * built on it use too. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <trine/ops.h>

#include "backends/simt/core/group.h"
#include "backends/simt/core/queue.h"
#include "state.h"

extern const char trine_tuned_cuda_text[];

_Static_assert(offsetof(cuda_queue, stream) == 0, "kernels from elsewhere find the stream there");

static trine_device devices[CUDA_MAX_DEVICES];

static const trine_kernel *kernels(const trine_device *device, int op) {
    (void)device;
    return cuda_ops[op].kernels;
}

/* ---------------------------------------------------------------------------------------------------------- devices */

/* What is said of a device, and the storage of its strings. */
typedef struct description {
    char name[16], model[128], arch[16], pci[16];
} description;
static description descriptions[CUDA_MAX_DEVICES];
static cuda_device states[CUDA_MAX_DEVICES];
static CUmodule modules[CUDA_MAX_DEVICES][TRINE_OP_COUNT][CUDA_PARTS];
static char driver_version[16];

static int attribute(const cuda_driver *driver, CUdevice device, CUdevice_attribute which) {
    int value = 0;
    return driver->DeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* Memory moves twice per clock on a bus of so many bits; an SM finishes 128 fused multiply-adds a clock (CUDA C++
 * Programming Guide 13.0, throughput of native arithmetic instructions, compute capability 8.6 and later;
 * 64 on 8.0). */
static void describe_speed(const cuda_driver *driver, CUdevice device, trine_device *out) {
    const double memory_clock = 1e3 * attribute(driver, device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    const double bus = attribute(driver, device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
    const double clock = 1e3 * attribute(driver, device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    out->bytes_per_second = memory_clock * bus > 0 ? 2 * memory_clock * bus : 1e12;
    out->flops_per_second = clock > 0 ? 2 * 128 * clock * out->info.units : 1e13;
}

/* False with the reason: "no code for this architecture: sm_75". */
static bool describe(const cuda_driver *driver, const trine_host *host, int number, int place, char *reason_out,
                     size_t reason_size) {
    description *d = &descriptions[place];
    trine_device *out = &devices[place];
    CUdevice device;
    size_t memory = 0;
    CUresult result = driver->DeviceGet(&device, number);
    if (result == CUDA_SUCCESS) result = driver->DeviceGetName(d->model, sizeof d->model, device);
    if (result == CUDA_SUCCESS) result = driver->DeviceTotalMem(&memory, device);
    if (result == CUDA_SUCCESS) result = driver->DeviceGetPCIBusId(d->pci, sizeof d->pci, device);
    if (result != CUDA_SUCCESS) {
        snprintf(reason_out, reason_size, "device %d: %s", number, cuda_words(driver, result));
        return false;
    }
    const int major = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    const int code = cuda_code_for(major, minor);
    if (code == 0) {
        snprintf(reason_out, reason_size, "no code for this architecture: sm_%d%d (%s)", major, minor, d->model);
        return false;
    }
    for (char *c = d->pci; *c; c++)
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    snprintf(d->name, sizeof d->name, "cuda:%d", number);
    snprintf(d->arch, sizeof d->arch, "sm_%d%d", major, minor);
    const int shared = attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    *out = (trine_device){
        .info = { .name = d->name,
                  .model = d->model,
                  .arch = d->arch,
                  .pci = d->pci,
                  .units = attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                  .numa_node = host->numa_node_of_pci(d->pci),
                  .memory = (int64_t)memory,
                  .cache = { shared, 0, attribute(driver, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) } },
        .state = &states[place],
        .driver = driver_version,
    };
    describe_speed(driver, device, out);
    states[place].driver = driver;
    states[place].device = device;
    states[place].module = modules[place];
    states[place].units = out->info.units;
    states[place].memory = memory;
    states[place].major = major;
    states[place].minor = minor;
    states[place].shared = attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    states[place].tensor_maps = attribute(driver, device, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
    states[place].cluster_launch = attribute(driver, device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
    states[place].overlaps = code >= 90;
    pthread_mutex_init(&states[place].lock, NULL);
    return true;
}

/* Devices that can be used; the reason is why one cannot, or why there are none. */
static int find_devices(const cuda_driver *driver, const trine_host *host, char *reason_out, size_t reason_size) {
    int count = 0, usable = 0;
    const CUresult result = driver->DeviceGetCount(&count);
    snprintf(reason_out, reason_size, "no device%s%s", result == CUDA_SUCCESS ? "" : ": ",
             result == CUDA_SUCCESS ? "" : cuda_words(driver, result));
    for (int i = 0; result == CUDA_SUCCESS && i < count && usable < CUDA_MAX_DEVICES; i++)
        usable += describe(driver, host, i, usable, reason_out, reason_size);
    return usable;
}

const trine_backend *simt_open_backend(const trine_host *host, char *reason_out, size_t reason_size) {
    static trine_backend backend = {
        .struct_size = sizeof backend,
        .name = "cuda",
        .device = devices,
        .kernels = kernels,
    };
    if (backend.devices > 0) return &backend;
    const cuda_driver *driver = cuda_driver_open(host, reason_out, reason_size);
    if (driver == NULL) return NULL;
    simt_fill_backend(&backend);
    simt_fill_groups(&backend);
    backend.peak = cuda_peak;
    backend.tuned = trine_tuned_cuda_text;
    snprintf(driver_version, sizeof driver_version, "%d.%d", driver->version / 1000, driver->version % 1000 / 10);
    backend.devices = find_devices(driver, host, reason_out, reason_size);
    return backend.devices > 0 ? &backend : NULL;
}
