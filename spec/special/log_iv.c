/* SPDX-License-Identifier: Apache-2.0 */
/* log_iv: the table and the reference. */
#include <trine/special.h>

#include "special.h"

#define ARGS trine_log_iv_args

/* Bound: 8u of |y| + v + xR, special.h. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *v = trine_ref_value(ref, "v"), *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    olver o;
    olver_terms(&o);

    for (int64_t i = 0; i < count; i++) {
        if (!(v[i] >= 0 && x[i] >= 0) || (isinf(v[i]) && isinf(x[i]))) {
            y[i] = NAN;
        } else if (isinf(v[i]) || isinf(x[i])) {
            y[i] = isinf(v[i]) ? -INFINITY : INFINITY;
        } else if (x[i] == 0) {
            y[i] = v[i] == 0 ? 0 : -INFINITY;
        } else {
            y[i] = (double)log_i(&o, v[i], x[i], x[i]);
            magnitude[i] = fmax(v[i], x[i]) > MOST_W ? INFINITY : fabs(y[i]) + moved_i(v[i], x[i]);
            slack[i] = trine_smallest_normal(trine_ref_type(ref, "T"));
        }
    }
}

const trine_spec trine_spec_log_iv = {
    SPEC(log_iv),
    .summary = "Logarithm of the modified Bessel function of the first kind",
    .formula = "y = log I_v(x); I_v(x) = sum_k (x/2)^(2k+v) / (k! Gamma(k+v+1))",
    .source = "DLMF 10.25.2",
    .tensors = { TENSOR(v, IN | BROADCAST, "T", SHAPE, .fill = "positive often"),
                 TENSOR(x, IN, "T", SHAPE, .fill = "positive often"),
                 TENSOR(y, OUT, "T", SHAPE, .terms = "8", .accumulate = "f64") },
    .types = TYPES,
    .alias = { "y=x" },
    .flops = "200*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "orders f64: T=f64 r=1024 n=1024", "orders f32: T=f32 r=1024 n=1024", "in cache: T=f64 r=16 n=1024" },
    .reference = reference,
};
