/* SPDX-License-Identifier: Apache-2.0 */
/* How a text is cut into pieces before a tokenizer merges bytes within each: words, numbers, punctuation, space. */
#ifndef GENERATE_SPLIT_H
#define GENERATE_SPLIT_H

#include "file.h"

typedef struct split_kind split_kind;

/* By the name that GGUF's tokenizer.ggml.pre gives it; NULL where the program does not know it. */
const split_kind *split_kind_named(slice name);

/* True: such tokenizers take a piece that is a token as it is, before any merge. */
bool split_kind_whole(const split_kind *kind);

/* True: texts begin with the model's first token where its file does not say whether. */
bool split_kind_begun(const split_kind *kind);

/* A text that is being cut. */
typedef struct split {
    const split_kind *kind;
    const uint8_t *at, *stop, *end; /* stop: where the first pass's piece ends */
} split;

split split_begin(const split_kind *kind, slice text);
bool split_next(split *s, slice *piece_out);

#endif
