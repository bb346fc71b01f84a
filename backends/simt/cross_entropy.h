/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of cross_entropy and of its gradient pass to their device sides. */
#ifndef TRINE_SIMT_CROSS_ENTROPY_H
#define TRINE_SIMT_CROSS_ENTROPY_H

#include "params.h"

typedef struct cross_entropy_params {
    simt_rows logits, labels, loss, lse, dloss, dlogits; /* the last two of the gradient */
    int64_t rows, v, ignore;
    float scale;      /* of the logits */
    float base2;      /* scale log2(e): exponentials are powers of two of a logit times this */
    double smoothing; /* e */
    float z_loss;
    bool long_labels; /* i64, not i32 */
    bool wide;
} cross_entropy_params;

#endif
