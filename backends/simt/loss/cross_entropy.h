/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of cross_entropy and of its gradient pass to their device sides. */
#ifndef TRINE_SIMT_CROSS_ENTROPY_H
#define TRINE_SIMT_CROSS_ENTROPY_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/params.h"

#define COARSE_LSE \
    1024.0f /* from there on cross_entropy_backward takes the row's own sums for it, as the specification says */

enum { GRADIENT_BYTES = 32 }; /* of logits that a thread of the gradient has: more do not gain (H200) */

/* A type of logits and gradients, where it is known at run time. */
typedef enum loss_type { LOSS_F32, LOSS_BF16, LOSS_F16 } loss_type;

typedef struct cross_entropy_params {
    simt_rows logits, labels, loss, lse;
    int64_t rows, v, ignore;
    float scale; /* of the logits */
    /* exp(z - top) is 2^(base2 (f x - origin)); f halves x, or turns it round as well, so that finite x have a finite
     * difference */
    float f, base2;
    float unit;       /* z = unit f x */
    float per_unit;   /* 1/unit, or 0 */
    double smoothing; /* e */
    float z_loss;
    bool long_labels;     /* i64, not i32 */
    const float *weights; /* of the classes; NULL: all are 1 */
    loss_type from, to;   /* of logits and dlogits */
    /* of the gradient: */
    simt_rows dloss, dlogits;
    int64_t dloss_step;     /* 0: one element for all rows */
    simt_divisor pieces;    /* of a row */
    int64_t tasks;          /* of all rows */
    float spread, at_label; /* e/v, and 1 - e more */
    simt_part part;
    simt_ahead ahead; /* of the logits */
} cross_entropy_params;

#endif
