/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add: the table and the reference. */
#include <trine/bias.h>

#include "bias.h"

#define ARGS trine_dropout_add_args

/* Bound, with u = 2^-24: the scale is part of the definition; the sum with the bias, the product and the sum with the
 * residual round once each, 3u of |x + bias| scale + |residual|; second order and the output's rounding of it within
 * 4u. What is dropped is +0, whatever it was. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n"), count = trine_ref_dim(ref, "r") * n;
    const double *x = trine_ref_value(ref, "x"), *bias = trine_ref_value(ref, "bias"),
                 *residual = trine_ref_value(ref, "residual"), scale = trine_dropout_scale(args->p);
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    uint64_t seed = args->seed, offset = args->offset;
    trine_ref_philox(ref, &seed, &offset);
    for (int64_t i = 0; i < count; i++) {
        const bool keep = trine_dropout_keep(seed, offset, ref->first + (uint64_t)i, args->p);
        const bias_sum sum = bias_sum_of(x, bias, i, n);
        const double kept = keep ? sum.h * scale : 0, beside = residual ? residual[i] : 0;
        y[i] = kept + beside;
        magnitude[i] = keep && sum.over ? INFINITY : trine_pair_magnitude(kept, beside);
        slack[i] = 2 * TINY * fmax(scale, 1);
    }
}

const trine_spec trine_spec_dropout_add = {
    SPEC(dropout_add),
    .summary = "Dropout of rows plus a bias, added to a residual",
    .formula = "y[i,j] = residual[i,j] + (x[i,j] + bias[j]) scale where dropout keeps element i n + j of a tensor with "
               "the same p, seed, offset and philox, else residual[i,j]; scale = 1/(1-p) rounded to f32",
    .source = "Srivastava et al. 2014, section 10; Narayanan et al. 2021 (Megatron-LM), section 4.2",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(bias, IN | OPTIONAL, "W", "n"),
                 TENSOR(residual, IN | OPTIONAL, "T", "r n"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(y, OUT, "T", "r n", .terms = "4") },
    .params = { PARAM(p, F32, .values = "0 0.1 0.5 0.9 1", .min = 0, .max = 1, .doc = "probability of dropping"),
                PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"),
                PARAM(offset, U64, .values = "0 7 4294967296",
                      .doc = "high half of its counter: another for every call") },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .require = { "philox instead of seed" },
    .alias = { "y=x residual" },
    .flops = "18*r*n",
    .independent = "r",
    .sizes = BIAS_SIZES,
    .cases = { "gpt2-xl: T=bf16 W=bf16 r=8192 n=1600 p=0.1 seed=1 +bias +residual",
               "gpt3: T=bf16 W=bf16 r=4096 n=12288 p=0.1 seed=1 +bias +residual",
               "bert-large f32: T=f32 W=f32 r=4096 n=1024 p=0.1 seed=1 +bias +residual",
               "inference: T=bf16 W=bf16 r=8192 n=1600 p=0 +bias +residual" },
    .reference = reference,
};
