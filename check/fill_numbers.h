/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that are whole numbers and say where something is. */
#ifndef TRINE_CHECK_FILL_NUMBERS_H
#define TRINE_CHECK_FILL_NUMBERS_H

#include "problem.h"

/* A word of a table that asks for such an input, and what makes it; false if the sizes leave no number. */
typedef struct filling {
    const char *word;
    bool (*make)(problem *p, int tensor);
} filling;

/* NULL if the tensor is none. */
const filling *fill_numbers(const trine_spec_tensor *spec);

#endif
