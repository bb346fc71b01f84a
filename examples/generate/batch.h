/* SPDX-License-Identifier: Apache-2.0 */
/* Several prompts at once. */
#ifndef GENERATE_BATCH_H
#define GENERATE_BATCH_H

#include "writing.h"

typedef struct batch_prompt {
    token_list tokens;
    slice shown; /* printed before what follows */
} batch_prompt;

/* Goes on with prompts, by up to `most` tokens each, as many at a time as the model has slots, and pages for: one that
 * ends makes place for the next. Each is printed as if it were alone, in their order, as soon as it is known. */
bool batch_run(writer *r, const batch_prompt *prompt, int64_t prompts, int64_t most, const sampler *s, FILE *to,
               problem *why);

#endif
