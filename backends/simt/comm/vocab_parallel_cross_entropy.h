/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of vocab_parallel_cross_entropy passes to its device side. */
#ifndef TRINE_SIMT_VOCAB_PARALLEL_CROSS_ENTROPY_H
#define TRINE_SIMT_VOCAB_PARALLEL_CROSS_ENTROPY_H

#include "backends/simt/loss/cross_entropy.h"

/* What a rank tells of a row: the sums of its logits, and the logit of the label where the rank has that. */
typedef struct vocab_told {
    float origin, sum, total, count, at_label, unused;
    int64_t label;
} vocab_told;

/* What a row's gradient follows from. */
typedef struct vocab_row {
    double lse;
    int64_t label;
    float origin, inverse;
    bool void_label; /* out of range, or not that of all ranks */
} vocab_row;

typedef struct vocab_params {
    cross_entropy_params all; /* v: the classes of all ranks */
    simt_ahead ahead;         /* of the logits */
    int64_t first, v;         /* the classes of this rank */
    vocab_told *told;         /* by this rank, of each row */
    const vocab_told *by;     /* by all ranks */
    vocab_row *row;
    int32_t ranks;
} vocab_params;

#endif
