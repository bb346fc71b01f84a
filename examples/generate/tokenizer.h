/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair encoding over bytes, as GPT-2, Llama 3 and SmolLM have it: text to tokens and back. */
#ifndef GENERATE_TOKENIZER_H
#define GENERATE_TOKENIZER_H

#include "split.h"

typedef enum token_kind {
    TOKEN_TEXT,   /* spelled in the byte alphabet: a letter stands for each byte */
    TOKEN_USER,   /* taken out of any text before it is cut */
    TOKEN_CONTROL /* the same where control tokens are asked for; stands for no text */
} token_kind;

typedef struct tokenizer {
    const split_kind *kind;
    bool whole; /* a piece that is a token is taken as it is, before any merge */
    struct token *token;
    struct merge *merge; /* a hash table of pairs */
    int32_t *by_bytes;   /* a hash table of tokens of text */
    int32_t *special;    /* those of the other kinds, the longest first */
    uint8_t *bytes;      /* of all tokens */
    size_t bytes_used, bytes_room;
    int32_t tokens, room, specials, merges, merge_room;
    uint64_t by_bytes_mask, merge_mask;
    int32_t of_byte[256]; /* -1: the vocabulary has no such byte */
    bool begins[256];     /* a special token may begin with this byte */
    int32_t first;        /* put before each text; -1: nothing */
    int32_t stop[4];      /* the tokens at which an answer ends */
    int32_t stops;
} tokenizer;

/* A vocabulary of up to `tokens` tokens and `merges` merges, which are then added in the order of their numbers and
 * ranks, tokens first. `bytes`: of all the tokens' spellings. tokenizer_free() also takes one that is half made. */
bool tokenizer_open(tokenizer *t, const split_kind *kind, uint64_t tokens, uint64_t merges, uint64_t bytes,
                    problem *why);
bool tokenizer_add(tokenizer *t, slice spelled, token_kind kind, problem *why);
bool tokenizer_add_end(tokenizer *t, problem *why);
bool tokenizer_merge(tokenizer *t, slice left, slice right, problem *why);
void tokenizer_free(tokenizer *t);

/* Tokens that grow. */
typedef struct token_list {
    int32_t *id;
    int64_t count, room;
} token_list;

bool token_list_add(token_list *list, int32_t id, problem *why);
void token_list_free(token_list *list);

/* Appends a text's tokens. Control tokens are looked for in it only if `control` says so. Bytes that the vocabulary
 * lacks are left out. */
bool tokenizer_encode(const tokenizer *t, slice text, bool control, token_list *list, problem *why);

/* The bytes of a token below t->tokens; none of a control token. */
slice tokenizer_text(const tokenizer *t, int32_t id);

/* The special token spelled so, or -1. */
int32_t tokenizer_special(const tokenizer *t, slice spelled);

bool tokenizer_stops(const tokenizer *t, int32_t id);

#endif
