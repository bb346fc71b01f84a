/* SPDX-License-Identifier: Apache-2.0 */
/* moe_collect: the table and the reference. */
#include <trine/comm.h>

#include "spec/moe/combined.h"

#define ARGS trine_moe_collect_args

static void reference(trine_ref *ref) { combine_slots(ref, trine_ref_dim(ref, "ranks")); }

const trine_spec trine_spec_moe_collect = {
    SPEC(moe_collect),
    .summary = "The weighted sum, for each token, of what its experts on all ranks made of it",
    .formula = "y[s,i,j] = sum over a of weights[s,i,a] x[r,q,j] with places[s,i,a] = r p + q, without those whose "
               "place is not one of x",
    .source = "Lepikhin et al. 2021 (GShard)",
    .tensors = { TENSOR(x, IN, "T", "ranks p n"), TENSOR(places, IN, "i32", "ranks t k", .fill = "slots ranks*p"),
                 TENSOR(weights, IN | OPTIONAL, "f32", "ranks t k"),
                 TENSOR(y, OUT, "O", "ranks t n", .terms = "k + 1") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = { "T=f32 O=f32", "T=bf16 O=bf16|f32", "T=f16 O=f16|f32" },
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "2*ranks*t*k*n",
    .integers_exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "p: 40 0 1 7 300", "n: 8 0 1 3 31 130 520", "t: 7 0 1 2 33 90", "k: 2 1 0 8" },
    .cases = { "mixtral, 2 ranks: T=bf16 O=bf16 ranks=2 p=4608 n=4096 t=2048 k=2 +weights",
               "qwen3: T=bf16 O=bf16 ranks=4 p=9216 n=2048 t=1024 k=8 +weights",
               "deepseek-v3 16 tokens: T=bf16 O=bf16 ranks=4 p=512 n=7168 t=16 k=8 +weights" },
    .reference = reference,
};
