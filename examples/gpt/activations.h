/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a model's activations and their gradients. */
#ifndef GPT_ACTIVATIONS_H
#define GPT_ACTIVATIONS_H

#include "model.h"

/* Points all of them into model->activations, as model->config.memory says; model->arena has what it came to. */
/* Are norms made anew for the gradient? */
bool gpt_norms_again(const gpt_config *config);

bool gpt_activations_open(gpt_model *model);
void gpt_activations_close(gpt_model *model);

#endif
