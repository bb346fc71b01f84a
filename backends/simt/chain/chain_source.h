/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a chain for the vendor's compiler: one kernel for a program and the way its tensors lie. */
#ifndef TRINE_SIMT_CHAIN_SOURCE_H
#define TRINE_SIMT_CHAIN_SOURCE_H

#include "chain_job.h"
#include <trine/base.h>

#define CHAIN_ENTRY "chain_compiled"

/* What the code depends on besides the program. */
typedef struct chain_layout {
    uint16_t type[CHAIN_VIEWS]; /* trine_dtype, of those that are there */
    uint8_t place[CHAIN_VIEWS]; /* CHAIN_ALONG ... */
    uint8_t outer;              /* dimensions besides the last */
    uint8_t length;             /* elements of a unit of a walk, or of a vector of a row */
    uint8_t units;              /* of a walk: those of a thread */
    uint8_t vectors;            /* of rows: that a thread holds */
    bool whole;                 /* of rows: their vectors are aligned and whole */
    bool pieces;                /* they are longer than what a group holds */
    bool many;                  /* calls, by a chain_list_job */
    uint16_t group;             /* threads of a row; 0: a walk */
    uint16_t threads;           /* of a block */
} chain_layout;

/* Writes it; what does not fit is left out. Returns its length. */
size_t chain_source(const chain_program *program, const chain_layout *layout, char *text_out, size_t size);

#endif
