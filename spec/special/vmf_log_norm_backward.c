/* SPDX-License-Identifier: Apache-2.0 */
/* vmf_log_norm_backward: the table and the reference. */
#include <trine/special.h>

#include "special.h"

#define ARGS trine_vmf_log_norm_backward_args

/* Bound: the quotient by 22u of itself, special.h, and the product with dy. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *kappa = trine_ref_value(ref, "kappa"),
                 v = (double)args->dimension / 2 - 1;
    olver o;
    olver_terms(&o);

    for (int64_t i = 0; i < count; i++) {
        const double k = kappa[i];
        put_gradient(ref, "dkappa", i, dy[i], !(k >= 0) ? NAN : isinf(k) ? -1 : -ratio_i(&o, v, k));
        if (isfinite(k) && k > MOST_W) trine_ref_magnitude(ref, "dkappa")[i] = INFINITY;
    }
}

const trine_spec trine_spec_vmf_log_norm_backward = {
    SPEC(vmf_log_norm_backward),
    .summary = "Gradient of vmf_log_norm",
    .formula = "dkappa = -dy I_(v+1)(kappa)/I_v(kappa); v = dimension/2 - 1",
    .source = "Banerjee et al. 2005, eq. 2.8",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(kappa, IN, "T", SHAPE, .fill = "positive often"),
                 TENSOR(dkappa, OUT, "T", SHAPE, .terms = "24", .accumulate = "f64") },
    .params = { PARAM(dimension, I64, .values = "2 3 4 17 64 1000 1000000", .min = 2, .max = MOST_DIMENSION,
                      .doc = "d: unit vectors have so many elements") },
    .types = TYPES,
    .alias = { "dkappa=dy", "dkappa=kappa" },
    .flops = "150*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "sphere f64: T=f64 r=1024 n=1024 dimension=3", "embeddings f32: T=f32 r=1024 n=1024 dimension=512",
               "in cache: T=f64 r=16 n=1024 dimension=64" },
    .reference = reference,
};
