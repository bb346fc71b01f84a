/* SPDX-License-Identifier: Apache-2.0 */
/* Text as it comes: tokens may end within a character, what is printed does not. */
#ifndef GENERATE_OUTPUT_H
#define GENERATE_OUTPUT_H

#include <stdio.h>

#include "file.h"

typedef struct output {
    FILE *file;
    uint8_t held[4]; /* the beginning of a character */
    size_t holds;
} output;

/* Prints what is whole and flushes it. Bytes that are no UTF-8 come out as U+FFFD. */
void output_add(output *o, slice text);

/* Prints what is still held. */
void output_end(output *o);

#endif
