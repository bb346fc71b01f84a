/* SPDX-License-Identifier: Apache-2.0 */
/* What the model's files share: its memory, and the optimizer's state. */
#ifndef GPT_STATE_H
#define GPT_STATE_H

#include "model.h"

#define TRY(call) \
    do { \
        if (!(call)) return false; \
    } while (0)
#define RUN(op, ...) TRY(trine_##op(model->queue, &(trine_##op##_args){ TRINE_ARGS(op), __VA_ARGS__ }) == TRINE_OK)

/* Device memory for `count` elements, freed with the model. */
bool gpt_reserve(gpt_model *model, void *pointer_out, int64_t count, size_t size);

/* Decides where the state is, and takes the memory; what else is on the device must be there. */
bool gpt_state_open(gpt_model *model);

/* State of what this rank has, by its places here. */
bool gpt_state_put(gpt_model *model, int which, int64_t first, int64_t count, const float *from);
bool gpt_state_get(gpt_model *model, int which, int64_t first, int64_t count, float *to);

/* Random parameters, and no moments. */
bool gpt_state_begin(gpt_model *model, uint64_t seed);

#endif
