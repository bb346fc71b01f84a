/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank of a group has of a model, and what it gets from the others. Without a group these do nothing. */
#ifndef GPT_SHARE_H
#define GPT_SHARE_H

#include "model.h"

/* A rank's share of a configuration. */
gpt_config gpt_share_of(const gpt_config *whole);

/* How many ranks have sequences of their own. */
int64_t gpt_share_batches(const gpt_model *model);

/* Has a rank but a share of the state? */
bool gpt_share_is(const gpt_model *model);

/* Says which part of the state this rank has; of a model whose parameters are placed. */
void gpt_share_begin(gpt_model *model);

/* Room for the weights, and for the gradient: more than there are, where ranks have parts of one size. */
int64_t gpt_share_room(const gpt_model *model);

/* Memory for what is exchanged; after that of weights and gradient. Then for this rank's part of the state. */
bool gpt_share_open(gpt_model *model);
bool gpt_share_keep(gpt_model *model);

/* Where each rank has some of a layer: sums of what they have of its `count` outputs, or of its input's gradient. */
bool gpt_share_sum(gpt_model *model, void *data, int64_t count);

/* Where each has some of the sequences: sums of their losses, and of their gradients, whole or each rank's part. */
bool gpt_share_loss(gpt_model *model, float *loss);
bool gpt_share_gradient(gpt_model *model);

/* The coefficient that clips a gradient of which each rank has a share. */
bool gpt_share_clip(gpt_model *model, float max_norm);

/* All ranks' parts of the weights in use. */
bool gpt_share_spread(gpt_model *model);

/* gpt_state_write() and gpt_state_read() of shares. */
bool gpt_share_write(gpt_model *model, int which, int64_t first, int64_t count, const float *from);
bool gpt_share_read(gpt_model *model, int which, int64_t first, int64_t count, float *to);

/* Is `mine` set on any rank? */
bool gpt_share_any(gpt_model *model, bool mine, bool *any_out);

#endif
