/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's management library says of a device. */
#ifndef TRINE_TOOLS_NVML_H
#define TRINE_TOOLS_NVML_H

#include <stdbool.h>

typedef struct nvml_device {
    char driver[80];
    unsigned clock, most_clock, memory_clock; /* MHz */
    double power, power_limit;                /* W */
    bool persistent;
} nvml_device;

/* Of the device at a PCI address, "0000:65:00.0". False if the library is not installed, or does not know the device;
 * it is opened when first asked. What it does not tell of a device is 0. */
bool nvml_ask(const char *pci, nvml_device *device_out);

/* What the device has used since its driver was loaded. False if that is not counted. */
bool nvml_joules(const char *pci, double *joules_out);

#endif
