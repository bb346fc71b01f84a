/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of energy: RAPL of the CPU, NVML of NVIDIA's devices, amd-smi of AMD's. */
#ifndef TRINE_TOOLS_METER_H
#define TRINE_TOOLS_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <trine/trine.h>

enum { METER_ZONES = 32 };

typedef struct meter {
    const char *name; /* "RAPL", "NVML" or "amd-smi" */
    char pci[32];
    void *handle; /* amd-smi's */
    /* RAPL's: packages and their memory. Counters wrap. */
    int zones;
    struct {
        char path[256];
        double range, before, total; /* microjoules */
    } zone[METER_ZONES];
} meter;

/* The counter of a device; `sys` is "/sys". False, with the reason, if there is none that this program may read. */
bool meter_open(meter *m, const trine_device_info_t *device, const char *sys, char *why, size_t size);

/* Joules since some time. Of a meter that is open. */
bool meter_read(void *meter, double *joules_out);

#endif
