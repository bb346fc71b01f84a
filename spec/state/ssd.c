/* SPDX-License-Identifier: Apache-2.0 */
/* ssd: the table and the reference. */
#include <trine/state.h>

#include "ssd.h"

#define ARGS trine_ssd_args

/* + d x: two roundings, or one. */
static void finish(const trine_ref *ref, int64_t head, double value, state_number *y) {
    const double *d = trine_ref_value(ref, "d");
    if (d == NULL) return;
    const double term = d[head] * value;
    y->x += term;
    y->error += U * trine_finite_abs(term) + U * (trine_finite_abs(y->x) + y->error) + 2 * FLUSH;
    if (isinf(d[head]) || isinf(value) || !(trine_finite_abs(term) < LARGEST)) y->error = INFINITY;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const state_problem s = ssd_of(ref, args->softplus);
    state_forward(ref, &s, "y", finish);
}

const trine_spec trine_spec_ssd = {
    SPEC(ssd),
    .summary = "The scan of Mamba-2",
    .formula = "of each member of the batch and head, with b and c of group h / (H/G): l = dt + dt_bias, or with "
               "softplus log(1 + exp(dt + dt_bias)); S[t] = exp(l[t] a) S[t-1] + l[t] x[t] b[t]^T, S[-1] = s0 or 0; "
               "y[t] = S[t] c[t] + d x[t]; last = S at the last step, s0 or 0 if there is no step; y = 0 behind the "
               "last of packed sequences",
    .source = "Dao and Gu 2024 (Mamba-2), section 6",
    .tensors = { SSD_INPUTS, TENSOR(y, OUT, "T", "[b] t h p", .terms = "1"),
                 TENSOR(last, OUT | OPTIONAL, "f32", "[s] h p n", .terms = "1") },
    .params = { SSD_PARAMS },
    .types = { "T=f32|bf16|f16" },
    .require = { SSD_REQUIRE, "with last: s == max(b, nseq)" },
    .alias = { "last=s0" },
    .flops = "5*b*t*h*p*n",
    .independent = "p",
    .sizes = { "b: 1 0 2", "t: 7 0 1 2 33 70", "h: 2 1 4 6", "p: 16 0 1 7 33 64 130", "g: 1 2 3",
               "n: 16 1 3 33 64 100 128 256", "nseq: 1 2 4", "s: 1 0 2 4" },
    .cases = { "mamba2-2.7b: T=bf16 b=1 t=4096 h=80 p=64 g=1 n=128 softplus=1 +d +dt_bias",
               "mamba2-2.7b decode: T=bf16 b=32 s=32 t=1 h=80 p=64 g=1 n=128 softplus=1 +d +dt_bias +s0 +last",
               "mamba2-2.7b packed: T=bf16 b=1 t=8192 h=80 p=64 g=1 n=128 nseq=8 softplus=1 +d +dt_bias +cu_seqlens",
               "codestral: T=bf16 b=1 t=2048 h=128 p=64 g=8 n=128 softplus=1 +d +dt_bias" },
    .reference = reference,
    .prepare = ssd_prepare,
};
