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

/* Notes the launch in $LAUNCHES, as launches.c does on a real device; what the chip could not launch is refused. */
CUresult stub_chip_launch(const stub_chip *chip, CUfunction function, const CUlaunchConfig *config);

/* The blocks of a launch's clusters; 1: it has none. */
unsigned stub_chip_cluster(const CUlaunchConfig *config);

#endif
