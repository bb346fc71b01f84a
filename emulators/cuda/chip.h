/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the stub driver that count: they have the properties of a chip, and note what is launched instead of
 * computing it. */
#ifndef TRINE_STUB_CHIP_H
#define TRINE_STUB_CHIP_H

#include <cuda.h>
#include <stdbool.h>

typedef struct stub_chip {
    const char *name;
    int major, minor, units;
    int shared;  /* bytes that a block can have; an SM has 1 KB more */
    int cache;   /* of the second level */
    bool hopper; /* clusters and tensor maps */
} stub_chip;

/* The one that $STUB_CHIP names; NULL: devices are emulated. */
const stub_chip *stub_chip_chosen(void);

/* False: not a property of chips. */
bool stub_chip_attribute(const stub_chip *chip, CUdevice_attribute attribute, int *value_out);

/* A function is its name. */
CUfunction stub_chip_function(const char *name);

/* Notes the launch in $LAUNCHES, as launches.c does on a real device, and its shape in $STUB_SHAPES; what the chip
 * could not launch on so many SMs is refused. */
CUresult stub_chip_launch(const stub_chip *chip, CUfunction function, const CUlaunchConfig *config, int units);

/* The SMs of the device: the chip's, or $STUB_UNITS of them; an emulated device's. */
int stub_units(void);

/* Has an emulated device clusters? Only where $STUB_CLUSTERS is set, since what sends by barriers in memory is not
 * emulated. */
int stub_clusters(void);

/* The blocks of a launch's clusters; 1: it has none. */
unsigned stub_chip_cluster(const CUlaunchConfig *config);

/* libcuda.c: what an entry point of this name gives before it does anything. */
CUresult stub_verdict(const char *name);

/* green.c: the SMs of a stream, all of the device's if it is of no green context; and whether a stream was of one,
 * which then knows it no more. */
int stub_green_units(CUstream stream);
bool stub_green_forget(CUstream stream);

#endif
