/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold_backward: the table and the reference. dthreshold is a sum of at most h w terms in f64, in any
 * order. */
#include <trine/wavelet.h>

#include "spec/spec.h"

#define ARGS trine_soft_threshold_backward_args

static void reference(trine_ref *ref) {
    const int64_t b = trine_ref_dim(ref, "b"), n = trine_ref_dim(ref, "h") * trine_ref_dim(ref, "w");
    const double *x = trine_ref_value(ref, "x"), *threshold = trine_ref_value(ref, "threshold"),
                 *dy = trine_ref_value(ref, "dy");
    double *dx = trine_ref_value(ref, "dx"), *dthreshold = trine_ref_value(ref, "dthreshold");
    for (int64_t band = 0; band < b; band++) {
        double sum = 0, size = 0;
        for (int64_t i = band * n; i < (band + 1) * n; i++) {
            const double rest = fabs(x[i]) - threshold[band], own = rest > 0 ? dy[i] : rest == rest ? 0 : NAN;
            sum += x[i] < 0 ? own : -own;
            size += trine_finite_abs(own);
            if (dx) dx[i] = own;
        }
        if (!dthreshold) continue;
        dthreshold[band] = sum;
        trine_ref_magnitude(ref, "dthreshold")[band] = size;
    }
}

const trine_spec trine_spec_soft_threshold_backward = {
    SPEC(soft_threshold_backward),
    .summary = "Gradient of soft_threshold",
    .formula = "dx[b,h,w] = dy[b,h,w] if |x[b,h,w]| > threshold[b], else 0; dthreshold[b] = - sum over h, w of "
               "sign(x[b,h,w]) dx[b,h,w]",
    .source = "The derivative of soft_threshold's formula",
    .tensors = { TENSOR(dy, IN | ANY_STRIDE, "T", "[b] [h] w"), TENSOR(x, IN | ANY_STRIDE, "T", "[b] [h] w"),
                 TENSOR(threshold, IN | ANY_STRIDE, "T", "b"),
                 TENSOR(dx, OUT | OPTIONAL | EXACT | ANY_STRIDE, "T", "[b] [h] w"),
                 TENSOR(dthreshold, OUT | OPTIONAL | ANY_STRIDE, "T", "b", .terms = "h*w + 2", .accumulate = "f64") },
    .types = { "T=f32|f64" },
    .require = { "dx | dthreshold" },
    .alias = { "dx=dy" },
    .flops = "3*b*h*w",
    .independent = "b",
    .sizes = { "b: 1 0 2 3 16", "h: 1 0 2 5 17 64", "w: 8 0 1 3 7 16 33 100 1000" },
    .cases = { "bands f32: T=f32 b=64 h=512 w=512 +dx +dthreshold",
               "bands f64: T=f64 b=64 h=512 w=512 +dx +dthreshold" },
    .reference = reference,
};
