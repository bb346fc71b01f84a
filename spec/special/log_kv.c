/* SPDX-License-Identifier: Apache-2.0 */
/* log_kv: the table and the reference. */
#include <trine/special.h>

#include "special.h"

#define ARGS trine_log_kv_args

/* Bound: 12u of |y| + hypot(v, x) + 1, special.h. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *orders = trine_ref_value(ref, "v"), *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    olver o;
    olver_terms(&o);

    for (int64_t i = 0; i < count; i++) {
        const double v = fabs(orders[i]);
        if (isnan(v) || !(x[i] >= 0) || (isinf(v) && isinf(x[i]))) {
            y[i] = NAN;
        } else if (isinf(v) || isinf(x[i]) || x[i] == 0) {
            y[i] = isinf(x[i]) ? -INFINITY : INFINITY;
        } else {
            y[i] = (double)log_k(&o, v, x[i]).log;
            magnitude[i] = fmax(v, x[i]) > MOST_W ? INFINITY : fabs(y[i]) + hypot(v, x[i]) + 1;
            slack[i] = trine_smallest_normal(trine_ref_type(ref, "T"));
        }
    }
}

const trine_spec trine_spec_log_kv = {
    SPEC(log_kv),
    .summary = "Logarithm of the modified Bessel function of the second kind",
    .formula = "y = log K_v(x); K_v(x) = integral over t >= 0 of exp(-x cosh t) cosh(v t)",
    .source = "DLMF 10.32.9",
    .tensors = { TENSOR(v, IN | BROADCAST, "T", SHAPE, .fill = "positive often"),
                 TENSOR(x, IN, "T", SHAPE, .fill = "positive often"),
                 TENSOR(y, OUT, "T", SHAPE, .terms = "12", .accumulate = "f64") },
    .types = TYPES,
    .alias = { "y=x" },
    .flops = "400*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "orders f64: T=f64 r=1024 n=1024", "orders f32: T=f32 r=1024 n=1024", "in cache: T=f64 r=16 n=1024" },
    .reference = reference,
};
