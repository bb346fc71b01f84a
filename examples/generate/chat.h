/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations in ChatML: <|im_start|>, who speaks, a new line, what is said, <|im_end|>, a new line. */
#ifndef GENERATE_CHAT_H
#define GENERATE_CHAT_H

#include "model.h"

typedef struct chat {
    const tokenizer *t;
    int32_t start, end; /* the two marks */
    bool begun;
    slice system; /* said first; empty: nothing is */
} chat;

/* `system` NULL: what the model's own template says first, if anything. Fails where the model has no such marks. */
bool chat_open(chat *c, const model_file *m, const char *system, problem *why);

/* Appends the tokens of a turn: the end of an answer before it, what the user says, and the beginning of the answer. A
 * conversation begins with a mark, whatever other texts begin with. What is said is not looked through for control
 * tokens. */
bool chat_turn(chat *c, slice said, token_list *list, problem *why);

#endif
