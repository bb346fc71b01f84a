/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan_backward: the table and the reference. */
#include <trine/scan.h>

#include "scan.h"

#define ARGS trine_linear_scan_backward_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const scan_sequences all = scan_sequences_of(ref, args->reverse);
    const double *dy = trine_ref_value(ref, "dy"), *g = trine_ref_value(ref, "g"), *y = trine_ref_value(ref, "y"),
                 *h0 = trine_ref_value(ref, "h0"), *dlast = trine_ref_value(ref, "dlast"), one = 1;
    const scan_state none = { 0 };
    for (int64_t i = 0; i < all.count; i++)
        for (int64_t j = 0; j < all.n; j++) {
            const int64_t row = i * all.n + j, steps = scan_steps(&all, i);
            scan_state s = { 0 };
            if (dlast) s.h = dlast[row], s.size = trine_finite_abs(s.h);
            for (int64_t k = steps - 1; k >= 0; k--) {
                const int64_t at = scan_place(&all, i, k, j);
                const double *gate = k < steps - 1 ? g + scan_place(&all, i, k + 1, j) : dlast ? &one : NULL;
                scan_step(&s, gate, dy[at]);
                scan_put(ref, "dx", at, &s);
                const double *before = k > 0 ? y + scan_place(&all, i, k - 1, j) : h0 ? h0 + row : NULL;
                const scan_state p = before ? scan_product(&s, *before) : none;
                scan_put(ref, "dg", at, &p);
            }
            if (steps > 0) s = scan_product(&s, g[scan_place(&all, i, 0, j)]);
            scan_put(ref, "dh0", row, &s);
        }
    for (int64_t at = scan_end(&all) * all.n; all.cu && at < all.t * all.n; at++)
        scan_put(ref, "dx", at, &none), scan_put(ref, "dg", at, &none);
}

const trine_spec trine_spec_linear_scan_backward = {
    SPEC(linear_scan_backward),
    .summary = "Gradient of linear_scan",
    .formula = "dh[b,t,j] = dy[b,t,j] + g[b,t+1,j] dh[b,t+1,j], at the last step dy + dlast; dx = dh; dg[b,t,j] = "
               "dh[b,t,j] y[b,t-1,j], at the first step with h0 for y, 0 if there is none; dh0 = g dh of the first "
               "step, dlast or 0 if there is no step; steps as in linear_scan, 0 behind the last sequence",
    .source = "the derivative of linear_scan's formula",
    .tensors = { TENSOR(dy, IN, "T", "[b] t n"), TENSOR(g, IN, "T", "[b] t n", .fill = "unit often"),
                 TENSOR(y, IN, "T", "[b] t n"), TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] n"), TENSOR(dlast, IN | OPTIONAL, "f32", "[s] n"),
                 TENSOR(dx, OUT, "T", "[b] t n", .terms = "1"), TENSOR(dg, OUT, "T", "[b] t n", .terms = "1"),
                 TENSOR(dh0, OUT | OPTIONAL, "f32", "[s] n", .terms = "1") },
    .params = { PARAM(reverse, BOOL, .values = "0 1", .doc = "of the forward") },
    .types = { "T=f32|bf16|f16" },
    .require = { "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0", "with h0: s == max(b, nseq)",
                 "with dlast: s == max(b, nseq)", "with dh0: s == max(b, nseq)", "dh0 -> h0" },
    .flops = "3*b*t*n",
    .independent = "n",
    .sizes = { "b: 1 0 2 3", "t: 7 0 1 2 33 130 600", "n: 64 0 1 3 8 31 130 257 1030", "nseq: 1 2 5 40",
               "s: 1 0 2 3 5 40" },
    .cases = { "hgrn: T=bf16 b=8 t=2048 n=4096", "long, few channels: T=bf16 b=1 t=65536 n=256",
               "states: T=bf16 b=4 t=2048 n=2048 s=4 +h0 +dlast +dh0",
               "packed: T=bf16 b=1 t=16384 n=2048 nseq=8 +cu_seqlens" },
    .reference = reference,
};
