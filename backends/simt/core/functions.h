/* SPDX-License-Identifier: Apache-2.0 */
/* A device's loaded functions by name: found without a lock, entered under one. */
#ifndef TRINE_SIMT_FUNCTIONS_H
#define TRINE_SIMT_FUNCTIONS_H

#include "host.h"

enum { SIMT_NAME_SIZE = 96 };

/* By hash of the name. A table that is half full is replaced by one of twice the size; those that look things up may
 * still be in the old one, which stays. */
typedef struct simt_functions {
    _Atomic(struct simt_function_table *) table; /* NULL: nothing was entered yet */
} simt_functions;

/* "softmax_bf16_256"; false if it has no room, and is cut. */
bool simt_function_name(const char *op, const simt_function *f, char name_out[static SIMT_NAME_SIZE]);

/* NULL if it was not entered. */
void *simt_function_find(simt_functions *functions, const char *name);

/* The caller holds the device's lock. Without memory for it nothing is entered, and the function is loaded again each
 * time. */
void simt_function_enter(simt_functions *functions, const char *name, void *function);

#endif
