/* SPDX-License-Identifier: Apache-2.0 */
/* What a choice of kernel is made by: a call's types, buckets of its sizes, and parameters; as a key and as text. */
#ifndef TRINE_CHOICE_H
#define TRINE_CHOICE_H

#include "dispatch.h"

/* What tells calls apart: the same from a call and from the text of a line.
 * Two keys that collide cost speed, never correctness. */
typedef struct trine_choice {
    trine_dtype type[TRINE_MAX_SYMBOLS];
    int64_t dim[TRINE_MAX_SYMBOLS];
    uint64_t param[TRINE_MAX_PARAMS]; /* BOOL and ENUM; of a TEXT a hash */
    uint32_t present;                 /* of the optional tensors */
    uint32_t transposed;              /* of those that may be */
    uint32_t flags;                   /* those that decide which kernels may run, and what they may do */
} trine_choice;

void trine_choice_of(const trine_queue *queue, const trine_call *call, trine_choice *choice_out);

/* `owner`: a hash of whose choice it is. Never 0. */
uint64_t trine_choice_key(uint64_t owner, const trine_plan *plan, const trine_choice *choice);

/* "T=bf16 m=4096 n=4096 b=transposed": sizes are the least of their buckets, of which there are four from each power of
 * two to the next. */
void trine_choice_text(const trine_plan *plan, const trine_choice *choice, char *text_out, size_t size);
/* Applies a word of such a text, which it cuts; false if it is none. */
bool trine_choice_parse(const trine_plan *plan, char *word, trine_choice *choice);

#endif
