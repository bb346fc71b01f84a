/* SPDX-License-Identifier: Apache-2.0 */
/* What the example's tests share: a small model, a text, and runs that end in a checkpoint. */
#ifndef GPT_CHECK_H
#define GPT_CHECK_H

#include "trainer.h"

enum { STEPS = 9 };
extern gpt_config tiny;
extern const gpt_schedule short_schedule;

/* Trains the tiny model from `from`, or from the start, up to step `last`, and saves. */
bool train_to(trine_queue *queue, const gpt_data *data, const char *from, int64_t last, const char *to);

bool same_files(const char *a, const char *b);

/* A text of two words in a changing pattern, in a file of the working directory. */
bool make_text(gpt_data *data, char *error, size_t size);

#endif
