/* SPDX-License-Identifier: Apache-2.0 */
/* log_kv_backward: the table and the reference. */
#include <trine/special.h>

#include "special.h"

#define ARGS trine_log_kv_backward_args

static double slope_of(const olver *o, double order, double x) {
    const double v = fabs(order);
    if (isnan(v) || !(x >= 0) || (isinf(v) && isinf(x))) return NAN;
    if (isinf(v) || x == 0) return -INFINITY;
    return isinf(x) ? -1 : (double)(log_k(o, v, x).slope / x);
}

/* Bound: the slope by 24u of itself, special.h, and the product with dy. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *v = trine_ref_value(ref, "v"), *x = trine_ref_value(ref, "x");
    olver o;
    olver_terms(&o);

    for (int64_t i = 0; i < count; i++) {
        put_gradient(ref, "dx", i, dy[i], slope_of(&o, v[i], x[i]));
        if (isfinite(x[i]) && isfinite(v[i]) && fmax(fabs(v[i]), x[i]) > MOST_W)
            trine_ref_magnitude(ref, "dx")[i] = INFINITY;
    }
}

const trine_spec trine_spec_log_kv_backward = {
    SPEC(log_kv_backward),
    .summary = "Gradient of log_kv at x",
    .formula = "dx = -dy (K_(v-1)(x)/K_v(x) + v/x)",
    .source = "DLMF 10.29.2",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(v, IN | BROADCAST, "T", SHAPE, .fill = "positive often"),
                 TENSOR(x, IN, "T", SHAPE, .fill = "positive often"),
                 TENSOR(dx, OUT, "T", SHAPE, .terms = "26", .accumulate = "f64") },
    .types = TYPES,
    .alias = { "dx=dy", "dx=x" },
    .flops = "400*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "orders f64: T=f64 r=1024 n=1024", "orders f32: T=f32 r=1024 n=1024", "in cache: T=f64 r=16 n=1024" },
    .reference = reference,
};
