/* SPDX-License-Identifier: Apache-2.0 */
/* The scalars of a step of AdamW that lr and the step's number make: by the host, or by a block of the device where
 * only that has one of these. They are computed in float64 and rounded once. */
#ifndef TRINE_SIMT_ADAMW_TOLD_H
#define TRINE_SIMT_ADAMW_TOLD_H

#include <stdint.h>

typedef struct adamw_scalars {
    float decay, rate, inverse_root;
} adamw_scalars;

typedef struct adamw_told_params {
    const float *lr; /* NULL: lr_here */
    const int64_t *step;
    double lr_here, weight_decay;
    double log1, log2; /* of the betas */
    int64_t step_here;
    adamw_scalars *scalars;
} adamw_told_params;
enum { ADAMW_TOLD_THREADS = 64 };

#endif
