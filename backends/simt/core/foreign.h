/* SPDX-License-Identifier: Apache-2.0 */
/* Device code that kernels from elsewhere bring: trine_host's `launch`. */
#ifndef TRINE_SIMT_FOREIGN_H
#define TRINE_SIMT_FOREIGN_H

#include <stdatomic.h>

#include "backends/backend.h"

/* A function that a device has loaded, in a list that only grows. */
typedef struct simt_foreign {
    struct simt_foreign *next;
    const void *image;
    void *module, *function;
    uint32_t shared; /* the most bytes that a launch has asked for */
    char name[];
} simt_foreign;

typedef _Atomic(simt_foreign *) simt_foreign_list;

/* The backend's `launch`. */
trine_status simt_launch_foreign(const trine_call *call, const trine_code *code, const trine_launch *launch);

#endif
