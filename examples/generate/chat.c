/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of turns. */
#include <stdlib.h>
#include <string.h>

#include "chat.h"

/* What stands between two texts within another; empty if they are not there. */
static slice between(slice text, const char *before, const char *after) {
    const char *start = text.size > 0 ? memmem(text.bytes, text.size, before, strlen(before)) : NULL;
    if (!start) return (slice){ "", 0 };
    start += strlen(before);
    const size_t left = text.size - (size_t)(start - text.bytes);
    const char *end = memmem(start, left, after, strlen(after));
    return end ? (slice){ start, (size_t)(end - start) } : (slice){ "", 0 };
}

bool chat_open(chat *c, const model_file *m, const char *system, problem *why) {
    *c = (chat){ .t = &m->tokenizer };
    c->start = tokenizer_special(c->t, slice_of("<|im_start|>"));
    c->end = tokenizer_special(c->t, slice_of("<|im_end|>"));
    if (c->start < 0 || c->end < 0)
        return refuse(why, "the model has no tokens <|im_start|> and <|im_end|>, in which --chat is written");
    c->system = system ? slice_of(system) : between(m->chat_template, "<|im_start|>system\n", "<|im_end|>");
    return true;
}

/* A mark, then who speaks and what is said, without the mark at its end. */
static bool speak(const chat *c, const char *who, slice said, token_list *list, problem *why) {
    const size_t size = strlen(who) + 1;
    char *text = malloc(size + said.size);
    if (!text) return refuse(why, "out of memory");
    memcpy(text, who, size - 1);
    text[size - 1] = '\n';
    if (said.size > 0) memcpy(text + size, said.bytes, said.size);
    const bool good = token_list_add(list, c->start, why) &&
                      tokenizer_encode(c->t, (slice){ text, size + said.size }, false, list, why);
    free(text);
    return good;
}

static bool speak_end(const chat *c, token_list *list, problem *why) {
    return token_list_add(list, c->end, why) && tokenizer_encode(c->t, slice_of("\n"), false, list, why);
}

bool chat_turn(chat *c, slice said, token_list *list, problem *why) {
    const bool first = !c->begun;
    c->begun = true;
    if (!first && !speak_end(c, list, why)) return false;
    if (first && c->system.size > 0 && (!speak(c, "system", c->system, list, why) || !speak_end(c, list, why)))
        return false;
    return speak(c, "user", said, list, why) && speak_end(c, list, why) &&
           speak(c, "assistant", (slice){ "", 0 }, list, why);
}
