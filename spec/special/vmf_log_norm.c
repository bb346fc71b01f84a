/* SPDX-License-Identifier: Apache-2.0 */
/* vmf_log_norm: the table and the reference. */
#include <trine/special.h>

#include "special.h"

#define ARGS trine_vmf_log_norm_args

/* Bound: as log_iv, 8u, besides 2 pi, off by u/3, and log(2 pi), special.h. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *kappa = trine_ref_value(ref, "kappa"), v = (double)args->dimension / 2 - 1;
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    olver o;
    olver_terms(&o);

    for (int64_t i = 0; i < count; i++) {
        if (!(kappa[i] >= 0) || isinf(kappa[i])) {
            y[i] = kappa[i] > 0 ? -INFINITY : NAN;
        } else {
            y[i] = (double)-(log_i(&o, v, kappa[i], 4 * HALF_PI) + LOG_TWO_PI);
            magnitude[i] = kappa[i] > MOST_W ? INFINITY : fabs(y[i]) + 2 + v + moved_i(v, kappa[i]);
            slack[i] = trine_smallest_normal(trine_ref_type(ref, "T"));
        }
    }
}

const trine_spec trine_spec_vmf_log_norm = {
    SPEC(vmf_log_norm),
    .summary = "Logarithm of the normalizer of the von Mises-Fisher distribution",
    .formula = "y = v log kappa - log I_v(kappa) - (v+1) log(2 pi); v = dimension/2 - 1",
    .source = "Banerjee et al. 2005, eq. 2.2",
    .tensors = { TENSOR(kappa, IN, "T", SHAPE, .fill = "positive often"),
                 TENSOR(y, OUT, "T", SHAPE, .terms = "10", .accumulate = "f64") },
    .params = { PARAM(dimension, I64, .values = "2 3 4 17 64 1000 1000000", .min = 2, .max = MOST_DIMENSION,
                      .doc = "d: unit vectors have so many elements") },
    .types = TYPES,
    .alias = { "y=kappa" },
    .flops = "200*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "sphere f64: T=f64 r=1024 n=1024 dimension=3", "embeddings f32: T=f32 r=1024 n=1024 dimension=512",
               "in cache: T=f64 r=16 n=1024 dimension=64" },
    .reference = reference,
};
