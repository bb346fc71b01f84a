/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement: results against the float64 reference under the specification's bound, against each other, and by
 * invariants. */
#ifndef TRINE_CHECK_COMPARE_H
#define TRINE_CHECK_COMPARE_H

#include "problem.h"

/* What one kernel made of a case: for each output its elements in row-major order, in their type. */
typedef struct outcome {
    unsigned char *output[TRINE_MAX_TENSORS];
} outcome;

/* All outputs that `y` has against the reference, whose results the problem holds.
 * False with the first deviation in `text_out`. */
bool compare_reference(const problem *p, const outcome *y, char *text_out, size_t size);

/* The reference's results of a golden case against the oracle's. */
bool compare_golden(const problem *p, char *text_out, size_t size);

/* Two kernels against each other: within the sum of their bounds. */
bool compare_pair(const problem *p, const outcome *a, const outcome *b, char *text_out, size_t size);

/* Two runs of one kernel: the same bits, where not NaN. */
bool compare_bits(const problem *p, int tensor, const unsigned char *a, const unsigned char *b, char *text_out,
                  size_t size);

/* The error allowed to element `k` of output `tensor`, besides the rounding of the output; infinite where an
 * intermediate may overflow. */
double compare_allowed(const problem *p, int tensor, double coefficient, int64_t k);

#endif
