/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold: the table and the reference. A difference of two f32 that is rounded to f64 and then to f32 is what
 * rounding once gives. */
#include <trine/wavelet.h>

#include "spec/spec.h"

#define ARGS trine_soft_threshold_args

static void reference(trine_ref *ref) {
    const int64_t b = trine_ref_dim(ref, "b"), n = trine_ref_dim(ref, "h") * trine_ref_dim(ref, "w");
    const double *x = trine_ref_value(ref, "x"), *threshold = trine_ref_value(ref, "threshold");
    double *y = trine_ref_value(ref, "y");
    for (int64_t i = 0; i < b * n; i++) {
        const double rest = fabs(x[i]) - threshold[i / n];
        y[i] = rest > 0 ? copysign(rest, x[i]) : rest == rest ? 0 : NAN;
    }
}

const trine_spec trine_spec_soft_threshold = {
    SPEC(soft_threshold),
    .summary = "Shrinks elements towards 0 by a threshold",
    .formula = "y[b,h,w] = sign(x[b,h,w]) max(|x[b,h,w]| - threshold[b], 0)",
    .source = "Donoho 1995, section 2",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "T", "[b] [h] w"), TENSOR(threshold, IN | ANY_STRIDE, "T", "b"),
                 TENSOR(y, OUT | EXACT | ANY_STRIDE, "T", "[b] [h] w") },
    .types = { "T=f32|f64" },
    .alias = { "y=x" },
    .exact = true,
    .flops = "2*b*h*w",
    .independent = "b",
    .sizes = { "b: 1 0 2 3 16", "h: 1 0 2 5 17 64", "w: 8 0 1 3 7 16 33 100 1000" },
    .cases = { "bands f32: T=f32 b=64 h=512 w=512", "bands f64: T=f64 b=64 h=512 w=512" },
    .reference = reference,
};
