/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal: the table and the reference. */
#include <trine/scan.h>

#include "conv1d.h"

#define ARGS trine_conv1d_causal_args

static void put_last(trine_ref *ref, const conv *c, int64_t i) {
    double *last = trine_ref_value(ref, "last");
    for (int64_t q = 0; last && q < c->k - 1; q++)
        for (int64_t j = 0; j < c->all.n; j++) {
            const double *x = conv_input(c, i, scan_steps(&c->all, i) - c->k + 1 + q, j);
            last[(i * (c->k - 1) + q) * c->all.n + j] = x ? *x : 0;
        }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const conv c = conv_of(ref, args->silu);
    for (int64_t i = 0; i < c.all.count; i++) {
        for (int64_t t = 0; t < scan_steps(&c.all, i); t++)
            for (int64_t j = 0; j < c.all.n; j++) {
                const scan_state z = conv_sum(&c, i, t, j), y = c.silu ? conv_silu(&z) : z;
                scan_put(ref, "y", scan_place(&c.all, i, t, j), &y);
            }
        put_last(ref, &c, i);
    }
    for (int64_t at = scan_end(&c.all) * c.all.n; c.all.cu && at < c.all.t * c.all.n; at++)
        scan_put(ref, "y", at, &(scan_state){ 0 });
}

const trine_spec trine_spec_conv1d_causal = {
    SPEC(conv1d_causal),
    .summary = "A causal convolution along time, channel by channel",
    .formula = "y[b,t,j] = z, or z sigmoid(z) with silu, z = sum over i < k of weight[j,i] x[b,t-k+1+i,j] + bias[j], "
               "x[b,-k+1+i] = x0[b,i], or left out if there is none; last[b,i] = x[b,T-k+1+i], 0 if there is none; "
               "y = 0 behind the last of packed sequences",
    .source = "Gu and Dao 2023, section 3.4, as causal-conv1d has it",
    .tensors = { TENSOR(x, IN, "T", "[b] t n"), TENSOR(weight, IN, "W", "n k"), TENSOR(bias, IN | OPTIONAL, "W", "n"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(x0, IN | OPTIONAL, "T", "[s] k-1 n"), TENSOR(y, OUT, "T", "[b] t n", .terms = "1"),
                 TENSOR(last, OUT | OPTIONAL | EXACT, "T", "[s] k-1 n") },
    .params = { PARAM(silu, BOOL, .values = "0 1", .doc = "y is the silu of the sum") },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .require = { "k > 0", "k <= 8", "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0",
                 "with x0: s == max(b, nseq)", "with last: s == max(b, nseq)" },
    .flops = "2*b*t*n*k",
    .independent = "n",
    .sizes = { "b: 1 0 2 3", "t: 7 0 1 2 33 130 600", "n: 64 0 1 3 8 31 130 257 1030", "k: 4 1 2 3 5 8", "nseq: 1 2 5",
               "s: 1 0 2 3 5" },
    .cases = { "mamba: T=bf16 W=bf16 b=8 t=2048 n=4096 k=4 silu=1 +bias",
               "long, few channels: T=bf16 W=f32 b=1 t=65536 n=256 k=4 silu=1",
               "decode: T=bf16 W=bf16 b=64 s=64 t=1 n=4096 k=4 silu=1 +bias +x0 +last",
               "packed: T=bf16 W=bf16 b=1 t=16384 n=2048 k=4 nseq=8 silu=1 +cu_seqlens" },
    .reference = reference,
};
