/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan: the table and the reference. */
#include <trine/scan.h>

#include "scan.h"

#define ARGS trine_linear_scan_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const scan_sequences all = scan_sequences_of(ref, args->reverse);
    const double *x = trine_ref_value(ref, "x"), *g = trine_ref_value(ref, "g"), *h0 = trine_ref_value(ref, "h0");
    for (int64_t i = 0; i < all.count; i++)
        for (int64_t j = 0; j < all.n; j++) {
            scan_state s = { 0 };
            if (h0) s.h = h0[i * all.n + j], s.size = trine_finite_abs(s.h);
            for (int64_t k = 0; k < scan_steps(&all, i); k++) {
                const int64_t at = scan_place(&all, i, k, j);
                scan_step(&s, k > 0 || h0 ? g + at : NULL, x[at]);
                scan_put(ref, "y", at, &s);
            }
            scan_put(ref, "last", i * all.n + j, &s);
        }
    for (int64_t at = scan_end(&all) * all.n; all.cu && at < all.t * all.n; at++)
        scan_put(ref, "y", at, &(scan_state){ 0 });
}

const trine_spec trine_spec_linear_scan = {
    SPEC(linear_scan),
    .summary = "A gated linear recurrence along time, channel by channel",
    .formula = "y[b,t,j] = g[b,t,j] y[b,t-1,j] + x[b,t,j], at the first step with y[b,-1] = h0, or x alone if there is "
               "none; last = y at the last step, h0 or 0 if there is no step; t from the end to the beginning with "
               "reverse; y = 0 behind the last of packed sequences",
    .source = "Qin et al. 2023 (HGRN), section 3; Zhu et al. 2024, section 3.3.1; Schulman et al. 2016, section 3",
    .tensors = { TENSOR(x, IN, "T", "[b] t n"), TENSOR(g, IN, "T", "[b] t n", .fill = "unit often"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] n"), TENSOR(y, OUT, "T", "[b] t n", .terms = "1"),
                 TENSOR(last, OUT | OPTIONAL, "f32", "[s] n", .terms = "1") },
    .params = { PARAM(reverse, BOOL, .values = "0 1", .doc = "from the end of each sequence to its beginning") },
    .types = { "T=f32|bf16|f16" },
    .require = { "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0", "with h0: s == max(b, nseq)",
                 "with last: s == max(b, nseq)" },
    .flops = "2*b*t*n",
    .independent = "n",
    .sizes = { "b: 1 0 2 3", "t: 7 0 1 2 33 130 600", "n: 64 0 1 3 8 31 130 257 1030", "nseq: 1 2 5 40",
               "s: 1 0 2 3 5 40" },
    .cases = { "hgrn: T=bf16 b=8 t=2048 n=4096", "long, few channels: T=bf16 b=1 t=65536 n=256",
               "decode: T=bf16 b=64 s=64 t=1 n=4096 +h0 +last", "packed: T=bf16 b=1 t=16384 n=2048 nseq=8 +cu_seqlens",
               "gae: T=f32 b=1 t=128 n=4096 reverse=1" },
    .reference = reference,
};
