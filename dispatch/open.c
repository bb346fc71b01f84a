/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the library, and its lists of backends and devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "float_env.h"
#include "openmp.h"

/* Copies the caller's options as far as both sides know them, and lets the environment fill what they leave open. */
static trine_status resolve_options(trine *lib, const trine_options *options) {
    trine_options *own = &lib->options;
    if (options != NULL) {
        if (options->struct_size < sizeof(size_t) || options->struct_size % sizeof(void *) != 0)
            return trine_fail(TRINE_ERR_ARGUMENT, "trine_open: struct_size is %zu", options->struct_size);
        memcpy(own, options, options->struct_size < sizeof *own ? options->struct_size : sizeof *own);
    }
    own->struct_size = sizeof *own;
    if (own->last_level_cache < 0)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_open: last_level_cache is %lld", (long long)own->last_level_cache);
    const struct {
        const char **field;
        const char *variable;
    } fields[] = { { &own->backends, "TRINE_BACKENDS" },
                   { &own->plugin_path, "TRINE_PATH" },
                   { &own->isa, "TRINE_ISA" },
                   { &own->tune_file, "TRINE_TUNE" } };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *value = *fields[i].field != NULL ? *fields[i].field : trine_env(fields[i].variable);
        *fields[i].field = NULL;
        if (value == NULL) continue;
        if ((lib->strings[i] = strdup(value)) == NULL) return trine_fail(TRINE_ERR_MEMORY, "trine_open: out of memory");
        *fields[i].field = lib->strings[i];
    }
    const char *verbose = trine_env("TRINE_VERBOSE");
    lib->verbose = verbose != NULL ? atoi(verbose) : 0;
    return TRINE_OK;
}

static trine_status open_parts(trine *lib, const trine_options *options) {
    trine_status status = resolve_options(lib, options);
    if (status != TRINE_OK) return status;
    lib->host = (trine_host){
        .struct_size = sizeof lib->host,
        .error = trine_fail,
        .numa_node_of_pci = trine_topology_numa_of_pci,
        .environment = trine_env,
        .options = &lib->options,
        .launch = trine_launch_code,
        .in_parallel = trine_openmp_in_parallel,
        .cpus = trine_topology_cpus,
        .nested_workspace = trine_nested_workspace,
        .nested_run = trine_nested_run,
        .readable = trine_call_readable,
    };
    status = trine_topology_read(&lib->host);
    if (status != TRINE_OK) return status;
    if (lib->options.last_level_cache > 0) lib->host.cache[2] = lib->options.last_level_cache;
    status = trine_registry_load(lib);
    if (status != TRINE_OK) return status;
    if (lib->options.tune_file == NULL || lib->options.tune_file[0] != 0)
        lib->tune = trine_tune_open(lib->options.tune_file);
    lib->shipped = trine_tune_shipped(lib);
    return TRINE_OK;
}

static FLOAT_ENV_INSIDE trine_status open_library(const trine_options *options, trine **lib_out) {
    if (lib_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_open: lib_out is NULL");
    if (trine_plan_error() != NULL) return trine_fail(TRINE_ERR_INTERNAL, "specification: %s", trine_plan_error());
    trine_env_warn();
    trine *lib = calloc(1, sizeof *lib);
    if (lib == NULL) return trine_fail(TRINE_ERR_MEMORY, "trine_open: out of memory");
    const trine_status status = open_parts(lib, options);
    if (status != TRINE_OK) {
        trine_close(lib);
        return status;
    }
    *lib_out = lib;
    return TRINE_OK;
}

trine_status trine_open(const trine_options *options, trine **lib_out) {
    const float_env env = float_env_enter();
    const trine_status status = open_library(options, lib_out);
    float_env_leave(env);
    return status;
}

void trine_close(trine *lib) {
    if (lib == NULL) return;
    trine_tune_close(lib->tune);
    trine_tune_close(lib->shipped);
    trine_registry_free(lib);
    for (size_t i = 0; i < sizeof lib->strings / sizeof lib->strings[0]; i++) free(lib->strings[i]);
    free(lib);
}

int trine_backend_count(const trine *lib) { return lib != NULL ? lib->modules : 0; }

trine_status trine_backend_info(const trine *lib, int index, trine_backend_info_t *info_out) {
    if (lib == NULL || info_out == NULL)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_backend_info: %s is NULL", lib ? "info_out" : "lib");
    if (index < 0 || index >= lib->modules)
        return trine_fail(TRINE_ERR_NOT_FOUND, "trine_backend_info: index is %d, but there are %d backends", index,
                          lib->modules);
    *info_out = lib->module[index].info;
    return TRINE_OK;
}

int trine_device_count(const trine *lib) { return lib != NULL ? lib->devices : 0; }

trine_status trine_device_info(const trine *lib, int device, trine_device_info_t *info_out) {
    if (lib == NULL || info_out == NULL)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_device_info: %s is NULL", lib ? "info_out" : "lib");
    if (device < 0 || device >= lib->devices)
        return trine_fail(TRINE_ERR_NOT_FOUND, "trine_device_info: device is %d, but there are %d", device,
                          lib->devices);
    *info_out = lib->device[device].device->info;
    return TRINE_OK;
}

int trine_device_find(const trine *lib, const char *name) {
    if (lib == NULL || name == NULL) return -1;
    const size_t length = strlen(name);
    for (int i = 0; i < lib->devices; i++) {
        const char *have = lib->device[i].device->info.name;
        if (strcmp(have, name) == 0) return i;
        if (strncmp(have, name, length) == 0 && strcmp(have + length, ":0") == 0) return i;
    }
    return -1;
}
