/* SPDX-License-Identifier: Apache-2.0 */
/* The chips, and the notes of what was launched on them. */
#include "chip.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FUNCTIONS = 1 << 12, MOST_CLUSTER = 16 }; /* of functions that may have more than 8: the module lets all */

/* An A100 and an H200. */
static const stub_chip chips[] = {
    { "sm_80", 8, 0, .units = 108, .shared = 163 << 10, .cache = 40 << 20 },
    { "sm_90a", 9, 0, .units = 132, .shared = 227 << 10, .cache = 60 << 20, .hopper = true },
};

static struct function {
    char *name;
    bool launched;
} functions[MAX_FUNCTIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const stub_chip *stub_chip_chosen(void) {
    const char *name = getenv("STUB_CHIP");
    for (size_t i = 0; name != NULL && i < sizeof chips / sizeof chips[0]; i++)
        if (strcmp(chips[i].name, name) == 0) return &chips[i];
    if (name != NULL) abort();
    return NULL;
}

bool stub_chip_attribute(const stub_chip *chip, CUdevice_attribute attribute, int *value_out) {
    const struct {
        CUdevice_attribute attribute;
        int value;
    } known[] = {
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, chip->major },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, chip->minor },
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, stub_units() },
        { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, chip->shared },
        { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, chip->shared + 1024 },
        { CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, chip->cache },
        { CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, chip->hopper },
        { CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, chip->hopper },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].attribute != attribute) continue;
        *value_out = known[i].value;
        return true;
    }
    return false;
}

CUfunction stub_chip_function(const char *name) {
    struct function *f = functions;
    pthread_mutex_lock(&lock);
    while (f->name != NULL && strcmp(f->name, name) != 0)
        if (++f == functions + MAX_FUNCTIONS) abort();
    if (f->name == NULL) f->name = strdup(name);
    pthread_mutex_unlock(&lock);
    return (CUfunction)(void *)f;
}

unsigned stub_chip_cluster(const CUlaunchConfig *config) {
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return config->attrs[i].value.clusterDim.x;
    return 1;
}

int stub_units(void) {
    const stub_chip *chip = stub_chip_chosen();
    const char *units = getenv("STUB_UNITS");
    return units != NULL ? atoi(units) : chip != NULL ? chip->units : 4;
}

int stub_clusters(void) { return getenv("STUB_CLUSTERS") != NULL; }

static void note(const char *variable, const char *format, ...) {
    const char *path = getenv(variable);
    va_list values;
    if (path == NULL) return;
    char line[512];
    va_start(values, format);
    const int length = vsnprintf(line, sizeof line, format, values),
              file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    va_end(values);
    if (file < 0 || write(file, line, (size_t)length) != length) abort();
    close(file);
}

static bool is_together(const CUlaunchConfig *config) {
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return config->attrs[i].value.cooperative != 0;
    return false;
}

CUresult stub_chip_launch(const stub_chip *chip, CUfunction function, const CUlaunchConfig *config, int units) {
    struct function *f = (struct function *)(void *)function;
    const unsigned cluster = stub_chip_cluster(config);
    if (config->gridDimX == 0 || config->gridDimX % cluster != 0 || cluster > (chip->hopper ? MOST_CLUSTER : 1) ||
        config->blockDimX == 0 || config->blockDimX > 1024 || config->sharedMemBytes > (unsigned)chip->shared)
        return CUDA_ERROR_INVALID_VALUE;
    /* of blocks that take most of an SM's memory, which those that wait for each other are */
    if (is_together(config) && config->gridDimX > (unsigned)units) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    pthread_mutex_lock(&lock);
    note("STUB_SHAPES", "%s: %u blocks of %u, clusters of %u%s\n", f->name, config->gridDimX, config->blockDimX,
         cluster, is_together(config) ? ", together" : "");
    if (!f->launched) note("LAUNCHES", "ran %s\n", f->name);
    f->launched = true;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
