/* SPDX-License-Identifier: Apache-2.0 */
/* slstm: the table and the reference. */
#include <trine/recurrent.h>

#include "slstm.h"

#define ARGS trine_slstm_args

static void reference(trine_ref *ref) { cell_forward(ref, &slstm_cell); }

const trine_spec trine_spec_slstm = {
    SPEC(slstm),
    .summary = "Long short-term memory with exponential input gates along time, head by head",
    .formula = "g = wx[t] + r y[t-1] + bias, gates i, f, z, o; l = log sigmoid(g[f]) + m[t-1], m[t] = max(g[i], "
               "l), g[i] where n[t-1] is 0; c[t] = exp(l - m) c[t-1] + exp(g[i] - m) tanh(g[z]), n[t] = exp(l - "
               "m) n[t-1] + exp(g[i] - m), without the first terms where n[t-1] is 0; y = sigmoid(g[o]) c / n, "
               "gates = g; starts are h0, c0, n0 and m0, or 0, without h0 the first step has no product; last_* "
               "those of the last step; 0 behind the last of packed sequences",
    .source = "Beck et al. 2024 (xLSTM), section 2.2; Poppel et al. 2024 (FlashRNN), section 3",
    .tensors = { TENSOR(wx, IN, "T", "[b] t 4 h d"), TENSOR(r, IN, "T", "h 4 d d", .fill = "unit"),
                 TENSOR(bias, IN | OPTIONAL, "T", "4 h d"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(c0, IN | OPTIONAL, "f32", "[s] h d"),
                 TENSOR(n0, IN | OPTIONAL, "f32", "[s] h d", .fill = "positive"),
                 TENSOR(m0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(y, OUT, "T", "[b] t h d", .terms = "1"),
                 TENSOR(gates, OUT | OPTIONAL, "T", "[b] t 4 h d", .terms = "1"),
                 TENSOR(c, OUT | OPTIONAL, "f32", "[b] t h d", .terms = "1"),
                 TENSOR(n, OUT | OPTIONAL, "f32", "[b] t h d", .terms = "1"),
                 TENSOR(m, OUT | OPTIONAL, "f32", "[b] t h d", .terms = "1"),
                 TENSOR(last_h, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1"),
                 TENSOR(last_c, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1"),
                 TENSOR(last_n, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1"),
                 TENSOR(last_m, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1") },
    .types = CELL_TYPES,
    .require = { CELL_REQUIRE, "with c0: s == max(b, nseq)", "with n0: s == max(b, nseq)", "with m0: s == max(b, nseq)",
                 "with last_h: s == max(b, nseq)", "with last_c: s == max(b, nseq)", "with last_n: s == max(b, nseq)",
                 "with last_m: s == max(b, nseq)", "c0 <-> n0", "n0 <-> m0" },
    .flops = "8*b*t*h*d*d",
    .independent = "h",
    .sizes = CELL_SIZES,
    .cases = { "long: T=bf16 b=16 t=1024 h=12 d=64 +bias", "few heads: T=bf16 b=16 t=512 h=3 d=256 +bias",
               "training: T=f32 b=32 t=128 h=1 d=256 +bias +gates +c +n +m",
               "step: T=bf16 b=64 s=64 t=1 h=8 d=128 +h0 +c0 +n0 +m0 +last_h +last_c +last_n +last_m" },
    .reference = reference,
};
