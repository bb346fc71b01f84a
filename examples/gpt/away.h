/* SPDX-License-Identifier: Apache-2.0 */
/* State of the optimizer that is not on the device: in the host's memory or in a file. The CPU takes the steps. */
#ifndef GPT_AWAY_H
#define GPT_AWAY_H

#include "model.h"

/* Functions that return bool return false with the reason in model->trouble, or in trine_error_message() if that is
 * empty. */

/* A place for the state of the parameters from `first` on, below `last`: what is in it is not known. */
gpt_away *gpt_away_open(gpt_model *model, int64_t first, int64_t last);
void gpt_away_close(gpt_away *away);

/* Does the state's file go past the page cache? */
bool gpt_away_direct(const gpt_away *away);

/* A step of all that is there, with the gradient in the device's memory times `scale`: in pieces, of which one is read
 * from the device, and the file, while the CPU takes another's step and a third's parameters go to the device. The
 * gradient must be whole before the call, and the parameters are there when it returns. */
bool gpt_away_step(gpt_away *away, gpt_model *model, const gpt_step *step, float scale);

/* The state of `count` parameters from `first` on: GPT_PARAM, GPT_M or GPT_V. */
bool gpt_away_write(gpt_away *away, gpt_model *model, int which, int64_t first, int64_t count, const float *from);
bool gpt_away_read(gpt_away *away, gpt_model *model, int which, int64_t first, int64_t count, float *to);

/* Brings the device's parameters up to these. */
bool gpt_away_refresh(gpt_away *away, gpt_model *model);

#endif
