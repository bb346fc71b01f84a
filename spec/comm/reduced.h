/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the ranks' elements: the references of all_reduce and reduce_scatter. */
#ifndef TRINE_COMM_REDUCED_H
#define TRINE_COMM_REDUCED_H

#include <trine/comm.h>

#include "spec/spec.h"

/* Bound of a sum of c terms, with u the accumulator's roundoff: c - 1 additions, each off by u of a partial sum, which
 * is no larger than the sum of absolute values: (c - 1) u of that in any order (Higham 2002, section 4.2). A partial
 * sum that may overflow is told by the same sum. The largest of numbers is one of them. */
typedef struct reduced {
    double value, magnitude;
} reduced;

/* Of `count` elements, `step` apart. */
static inline reduced reduce_ranks(const double *x, int64_t count, int64_t step, int32_t kind, trine_dtype T) {
    double sum = 0, size = 0, most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double e = x[i * step];
        sum = i == 0 ? e : sum + e;
        size += trine_finite_abs(e);
        if (!isnan(most) && !(e <= most)) most = e;
    }
    if (kind == TRINE_RANKS_MAX) return (reduced){ most, 0 };
    const double largest = trine_largest(T == TRINE_F64 ? TRINE_F64 : TRINE_F32);
    return (reduced){ sum, size > largest ? INFINITY : isfinite(sum) ? size : 0 };
}

#endif
