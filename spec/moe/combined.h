/* SPDX-License-Identifier: Apache-2.0 */
/* What experts made of tokens, brought together: the references of moe_combine and moe_collect. */
#ifndef TRINE_SPEC_MOE_COMBINED_H
#define TRINE_SPEC_MOE_COMBINED_H

#include "spec/spec.h"

/* Bound: a sum of k products in any order, fused or not, is off by at most k u sum |w x| (Jeannerod and Rump 2013).
 * Products below 2^-126 lose up to 2^-150 each. Of several ranks all rows are one line, as are all tokens. */
static inline void combine_slots(trine_ref *ref, int64_t ranks) {
    const int64_t t = ranks * trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"), p = ranks * trine_ref_dim(ref, "p"),
                  n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *places = trine_ref_value(ref, "places"),
                 *weights = trine_ref_value(ref, "weights");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    for (int64_t at = 0; at < t * n; at++) {
        const int64_t first = at / n * k;
        long double sum = 0;
        for (int64_t a = first; a < first + k; a++) {
            if (places[a] < 0 || places[a] >= (double)p) continue;
            const long double term = (long double)(weights ? weights[a] : 1) * x[(int64_t)places[a] * n + at % n];
            sum += term;
            magnitude[at] += trine_finite_abs((double)term);
            slack[at] += 0x1p-150;
        }
        y[at] = (double)sum;
    }
}

#endif
