/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add_backward: the table and the reference. */
#include <trine/bias.h>

#include "bias.h"

#define ARGS trine_dropout_add_backward_args

/* Bound, with u = 2^-24: of dx one product by u, with the output's rounding of it within 2u of |dx|; dbias sums those,
 * before they are rounded to T. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = trine_ref_dim(ref, "n") * trine_ref_dim(ref, "r");
    const double *dy = trine_ref_value(ref, "dy"), scale = trine_dropout_scale(args->p);
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx"), *dresidual = trine_ref_value(ref, "dresidual");
    uint64_t seed = args->seed, offset = args->offset;
    trine_ref_philox(ref, &seed, &offset);
    for (int64_t i = 0; i < count; i++) {
        const bool keep = trine_dropout_keep(seed, offset, ref->first + (uint64_t)i, args->p);
        if (dresidual) dresidual[i] = dy[i];
        dx[i] = keep ? dy[i] * scale : 0;
        magnitude[i] = trine_finite_abs(dx[i]);
        slack[i] = scale == 1 || !keep ? 0 : TINY;
    }
    bias_gradient(ref, dx, magnitude, slack);
}

const trine_spec trine_spec_dropout_add_backward = {
    SPEC(dropout_add_backward),
    .summary = "Gradient of dropout_add",
    .formula =
        "dx[i,j] = dy[i,j] scale where dropout keeps element i n + j, else 0; dresidual[i,j] = dy[i,j]; dbias[j] "
        "= sum_i dx[i,j]",
    .source = "the derivative of dropout_add's formula",
    .tensors = { TENSOR(dy, IN, "T", "r n"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(dx, OUT, "T", "r n", .terms = "2"), TENSOR(dresidual, OUT | OPTIONAL | EXACT, "T", "r n"),
                 TENSOR(dbias, OUT | OPTIONAL, "W", "n", .terms = SUM_DEPTH(r) " + 2") },
    .params = { PARAM(p, F32, .values = "0 0.1 0.5 0.9 1", .min = 0, .max = 1, .doc = "the forward's"),
                PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "the forward's"),
                PARAM(offset, U64, .values = "0 7 4294967296", .doc = "the forward's") },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .require = { "philox instead of seed" },
    .alias = { "dx=dy" },
    .flops = "17*r*n",
    .independent = "r",
    .sizes = BIAS_SIZES,
    .cases = { "gpt2-xl: T=bf16 W=bf16 r=8192 n=1600 p=0.1 seed=1 +dbias",
               "gpt3: T=bf16 W=bf16 r=4096 n=12288 p=0.1 seed=1 +dbias",
               "bert-large f32: T=f32 W=f32 r=4096 n=1024 p=0.1 seed=1 +dbias",
               "without dbias: T=bf16 W=bf16 r=8192 n=1600 p=0.1 seed=1" },
    .reference = reference,
};
