/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine: the table and the reference. */
#include <trine/moe.h>

#include "combined.h"

#define ARGS trine_moe_combine_args

static void reference(trine_ref *ref) { combine_slots(ref, 1); }

const trine_spec trine_spec_moe_combine = {
    SPEC(moe_combine),
    .summary = "The weighted sum, for each token, of what its experts made of it",
    .formula = "y[i,j] = sum over a of weights[i,a] x[places[i,a],j], without those whose place is not one of x",
    .source = "Shazeer et al. 2017",
    .tensors = { TENSOR(x, IN, "T", "p n"), TENSOR(places, IN, "i32", "t k", .fill = "places p"),
                 TENSOR(weights, IN | OPTIONAL, "f32", "t k"), TENSOR(y, OUT, "O", "t n", .terms = "k + 1") },
    .types = { "T=f32 O=f32", "T=bf16 O=bf16|f32", "T=f16 O=f16|f32" },
    .flops = "2*t*k*n",
    .integers_exact = true,
    .sizes = { "p: 1 0 2 7 33 300", "n: 1 0 3 8 31 64 257 1030", "t: 1 0 2 33 200", "k: 1 2 0 8" },
    .cases = { "mixtral: T=bf16 O=bf16 p=8192 n=4096 t=4096 k=2 +weights",
               "qwen3: T=bf16 O=bf16 p=32768 n=2048 t=4096 k=8 +weights",
               "deepseek-v3 16 tokens: T=bf16 O=bf16 p=128 n=7168 t=16 k=8 +weights" },
    .reference = reference,
};
