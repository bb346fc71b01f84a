/* SPDX-License-Identifier: Apache-2.0 */
/* A device's loaded functions by name: found without a lock, entered under one. */
#ifndef TRINE_SIMT_FUNCTIONS_H
#define TRINE_SIMT_FUNCTIONS_H

#include "host.h"

enum { SIMT_MAX_FUNCTIONS = 2048, SIMT_NAME_SIZE = 48 };

/* By hash of the name; what finds no room is loaded again each time. */
typedef struct simt_functions {
    struct simt_loaded {
        char name[SIMT_NAME_SIZE];
        _Atomic(void *) function;
    } entry[SIMT_MAX_FUNCTIONS];
} simt_functions;

/* "softmax_bf16_256" */
void simt_function_name(const char *op, const simt_function *f, char name_out[static SIMT_NAME_SIZE]);

/* NULL if it was not entered. */
void *simt_function_find(simt_functions *table, const char *name);

/* The caller holds the device's lock. */
void simt_function_enter(simt_functions *table, const char *name, void *function);

#endif
