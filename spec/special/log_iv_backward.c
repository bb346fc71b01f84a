/* SPDX-License-Identifier: Apache-2.0 */
/* log_iv_backward: the table and the reference. */
#include <trine/special.h>

#include "special.h"

#define ARGS trine_log_iv_backward_args

static double slope_of(const olver *o, double v, double x) {
    if (!(v >= 0 && x >= 0) || (isinf(v) && isinf(x))) return NAN;
    if (isinf(v) || isinf(x)) return isinf(v) ? INFINITY : 1;
    return x == 0 ? (v == 0 ? 0 : INFINITY) : ratio_i(o, v, x) + v / x;
}

/* Bound: the slope by 24u of itself, special.h, and the product with dy. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *v = trine_ref_value(ref, "v"), *x = trine_ref_value(ref, "x");
    olver o;
    olver_terms(&o);

    for (int64_t i = 0; i < count; i++) {
        put_gradient(ref, "dx", i, dy[i], slope_of(&o, v[i], x[i]));
        if (isfinite(x[i]) && isfinite(v[i]) && fmax(v[i], x[i]) > MOST_W) trine_ref_magnitude(ref, "dx")[i] = INFINITY;
    }
}

const trine_spec trine_spec_log_iv_backward = {
    SPEC(log_iv_backward),
    .summary = "Gradient of log_iv at x",
    .formula = "dx = dy (I_(v+1)(x)/I_v(x) + v/x)",
    .source = "DLMF 10.29.2",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(v, IN | BROADCAST, "T", SHAPE, .fill = "positive often"),
                 TENSOR(x, IN, "T", SHAPE, .fill = "positive often"),
                 TENSOR(dx, OUT, "T", SHAPE, .terms = "26", .accumulate = "f64") },
    .types = TYPES,
    .alias = { "dx=dy", "dx=x" },
    .flops = "150*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "orders f64: T=f64 r=1024 n=1024", "orders f32: T=f32 r=1024 n=1024", "in cache: T=f64 r=16 n=1024" },
    .reference = reference,
};
