/* SPDX-License-Identifier: Apache-2.0 */
/* What the vocabulary and the encoder share. */
#ifndef GENERATE_TOKENIZER_PARTS_H
#define GENERATE_TOKENIZER_PARTS_H

#include "tokenizer.h"

typedef struct token {
    size_t at; /* in tokenizer.bytes */
    uint32_t size;
    token_kind kind;
} token;

/* Two tokens that become one; of a text's pairs the one of the least rank does so first. */
typedef struct merge {
    int32_t left, right, sum, rank; /* left -1: an empty place */
} merge;

/* NULL: these two do not merge. */
const merge *merge_of(const tokenizer *t, int32_t left, int32_t right);

/* The token of text of these bytes, and the special token at the beginning of `left` > 0 bytes; -1: there is none. */
int32_t token_of(const tokenizer *t, slice bytes);
int32_t special_at(const tokenizer *t, const uint8_t *at, size_t left, bool control);

#endif
