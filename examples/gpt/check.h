/* SPDX-License-Identifier: Apache-2.0 */
/* What the example's tests share: a small model, a text, and runs that end in a checkpoint. */
#ifndef GPT_CHECK_H
#define GPT_CHECK_H

#include "trainer.h"

enum { STEPS = 9, CURVE = 100 };
extern gpt_config tiny;
extern const gpt_schedule short_schedule, long_schedule;

/* Trains the tiny model from `from`, or from the start, up to step `last`, and saves. */
bool train_to(trine_queue *queue, const gpt_data *data, const char *from, int64_t last, const char *to);

/* The losses of CURVE steps in which each parameter is changed before each step by this part of it, up or down. */
bool curve_of(trine_queue *queue, const gpt_data *data, const gpt_config *config, double part, float *losses_out);

/* The coefficient that the specification gives the longest product of the model, and the sum of a batch's losses. */
bool coefficients(trine_queue *queue, const gpt_config *config, double *product_out, double *sum_out);

/* How far a curve is from another, as a part of what the bounds allow. A product whose error is within its bound is the
 * exact one of weights changed by the bound's coefficient: how far such changes at each step take the losses is how far
 * another device's, or another order of sums, may take them; the mean of the losses has a bound of its own. */
double off_by(const float *here, const float *there, const float *perturbed, double sum, double *most_out);

bool same_files(const char *a, const char *b);

/* A text of two words in a changing pattern, in a file of the working directory. */
bool make_text(gpt_data *data, char *error, size_t size);

#endif
