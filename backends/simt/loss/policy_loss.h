/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of policy_loss and of its gradient pass to their device sides. */
#ifndef TRINE_SIMT_POLICY_LOSS_H
#define TRINE_SIMT_POLICY_LOSS_H

#include "backends/simt/core/params.h"

typedef struct policy_params {
    simt_rows logp, old_logp, ref_logp, advantages, mask, dlogp;
    const float *returns, *dloss;
    float *loss;
    const int32_t *cu; /* NULL: the members of the batch are the sequences */
    int64_t t, sequences;
    float low, high, kl_weight;
    bool one_ratio, mean;
} policy_params;

#endif
