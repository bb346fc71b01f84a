/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the kernels of kernels.hip and compares what they give with the host. */
#ifndef CDNA_KERNELS_H
#define CDNA_KERNELS_H

#include "toolchain.h"

/* False with b->failure.message if the kernel was stopped, or its result is wrong. */
typedef bool kernel_check(bench *b);

typedef struct kernel_case {
    const char *name;
    kernel_check *check;
} kernel_case;

extern const kernel_case kernel_cases[]; /* to one without a name */

/* The source of the kernels, to be freed. */
char *kernels_source(void);

#endif
