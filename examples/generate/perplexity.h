/* SPDX-License-Identifier: Apache-2.0 */
/* How well a model predicts a text. */
#ifndef GENERATE_PERPLEXITY_H
#define GENERATE_PERPLEXITY_H

#include "llama.h"

/* Prints the perplexity of a text. It is cut into windows as long as the context. Within each, every token but the
 * first is predicted from those before it; where texts begin with a token of their own, a window does, and all of its
 * text is predicted. */
bool perplexity_print(llama *m, const tokenizer *t, slice text, problem *why);

#endif
