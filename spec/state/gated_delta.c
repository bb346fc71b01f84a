/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta: the table and the reference. */
#include <trine/state.h>

#include "gated_delta.h"

#define ARGS trine_gated_delta_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const state_problem s = gated_delta_of(ref, args->scale);
    state_forward(ref, &s, "o", NULL);
}

const trine_spec trine_spec_gated_delta = {
    SPEC(gated_delta),
    .summary = "Linear attention with gates and the delta rule",
    .formula = "of each member of the batch and head, m = h / (H/hk): P[t] = exp(g[t]) S[t-1], S[-1] = s0 or 0, gates "
               "being 1 without g; S[t] = P[t] + k[t,m] u[t]^T; u = beta (v - P^T k), or v without beta; o[t] = scale "
               "S[t]^T q[t,m]; last = S at the last step, s0 or 0 if there is no step; o = 0 behind the last of packed "
               "sequences",
    .source = "Yang et al. 2025 (Gated DeltaNet), equation 10; Yang et al. 2024 (DeltaNet), section 3",
    .tensors = { GATED_DELTA_INPUTS, TENSOR(o, OUT, "T", "[b] t h e", .terms = "1"),
                 TENSOR(last, OUT | OPTIONAL, "f32", "[s] h d e", .terms = "1") },
    .params = { GATED_DELTA_PARAMS },
    .types = { "T=f32|bf16|f16" },
    .require = { GATED_DELTA_REQUIRE, "with last: s == max(b, nseq)" },
    .alias = { "last=s0" },
    .flops = "7*b*t*h*d*e",
    .independent = "e",
    .sizes = { "b: 1 0 2", "t: 7 0 1 2 33 70", "h: 2 1 4 6", "hk: 1 2 3", "d: 16 1 3 33 64 100 128 256",
               "e: 16 0 1 7 33 64 130", "nseq: 1 2 4", "s: 1 0 2 4" },
    .cases = { "qwen3-next: T=bf16 b=1 t=4096 h=32 hk=16 d=128 e=128 +g +beta",
               "qwen3-next decode: T=bf16 b=32 s=32 t=1 h=32 hk=16 d=128 e=128 +g +beta +s0 +last",
               "qwen3-next packed: T=bf16 b=1 t=8192 h=32 hk=16 d=128 e=128 nseq=8 +g +beta +cu_seqlens",
               "deltanet-1.3b: T=bf16 b=2 t=2048 h=16 hk=16 d=128 e=128 +beta",
               "gated linear attention: T=bf16 b=2 t=2048 h=16 hk=16 d=128 e=128 +g" },
    .reference = reference,
    .prepare = gated_delta_prepare,
};
