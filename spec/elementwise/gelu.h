/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of gelu and its gradient share. */
#ifndef TRINE_SPEC_GELU_H
#define TRINE_SPEC_GELU_H

#include "elementwise.h"

#define PI 3.14159265358979323846

/* (1 + tanh(w))/2 = sigmoid(2 w); this is 2 w. */
static inline double gelu_argument(double x) { return 2 * sqrt(2 / PI) * (x + 0.044715 * x * x * x); }

/* The normal distribution function, small results too. */
static inline double normal_cdf(double x) { return erfc(-x * sqrt(0.5)) / 2; }

#endif
