/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that a model goes on with: what of each was read, and the tokens that follow. */
#ifndef GENERATE_WRITING_H
#define GENERATE_WRITING_H

#include "llama.h"
#include "output.h"
#include "sampler.h"

/* Tokens of prompts, tokens that were drawn after them, guesses, and guesses that came true; and seconds. */
typedef struct speed {
    int64_t prefilled, decoded, guessed, right;
    double prefill, decode;
} speed;

/* What all texts share. */
typedef struct writer {
    llama *llama;
    const tokenizer *tokenizer;
    int64_t guesses; /* tokens that are guessed for a pass; 0: none */
    float *logits;   /* LLAMA_LOGITS, vocabulary */
    speed speed;
} writer;

bool writer_open(writer *r, llama *llama, const tokenizer *t, int64_t guesses, problem *why);
void writer_close(writer *r);

typedef struct writing {
    sequence sequence; /* the first of the tokens, as far as they were read */
    token_list tokens;
    sampler sampler;
    int64_t left; /* tokens that may follow */
    output out;
    bool read; /* all of the tokens but the last: what follows is being written */
    bool ended;
} writing;

/* Reads a part of the tokens that were not read; with the last of them the first token that follows is written. */
bool writing_read(writer *r, writing *w, problem *why);

/* Writes a token of each of up to options.slots texts that were read, or more where guesses came true. The tokens are
 * those that follow without guesses, too: a guess is only read along, and a token drawn as ever. */
bool writing_step(writer *r, writing *const *w, int count, problem *why);

void writing_end(writer *r, writing *w);

/* Guesses what follows tokens: what followed the last place where the same 3, or 2, tokens stood. Returns how many
 * of `most` were told. */
int64_t guess_tokens(const token_list *tokens, int64_t most, int32_t *out);

#endif
