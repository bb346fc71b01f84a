/* SPDX-License-Identifier: Apache-2.0 */
/* gru: the table and the reference. */
#include <trine/recurrent.h>

#include "gru.h"

#define ARGS trine_gru_args

static void reference(trine_ref *ref) { cell_forward(ref, &gru_cell); }

const trine_spec trine_spec_gru = {
    SPEC(gru),
    .summary = "Gated recurrent unit along time, head by head",
    .formula = "gates r, z, n: a = r[n] h[t-1] + bias[hn]; g[r] = wx[r] + r[r] h[t-1] + bias[r], g[z] likewise, "
               "g[n] = wx[n] + bias[n] + sigmoid(g[r]) a; h[t] = sigmoid(g[z]) h[t-1] + (1 - sigmoid(g[z])) "
               "tanh(g[n]); y = h, gates = g[r], g[z], g[n], a; h[-1] is h0, or 0, without h0 the first step has "
               "no product; last_h that of the last step; 0 behind the last of packed sequences",
    .source = "Cho et al. 2014; Poppel et al. 2024 (FlashRNN), section 3; as torch.nn.GRU has it",
    .tensors = { TENSOR(wx, IN, "T", "[b] t 3 h d"), TENSOR(r, IN, "T", "h 3 d d", .fill = "unit"),
                 TENSOR(bias, IN | OPTIONAL, "T", "4 h d"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(y, OUT, "T", "[b] t h d", .terms = "1"),
                 TENSOR(gates, OUT | OPTIONAL, "T", "[b] t 4 h d", .terms = "1"),
                 TENSOR(last_h, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1") },
    .types = CELL_TYPES,
    .require = { CELL_REQUIRE, "with last_h: s == max(b, nseq)" },
    .flops = "6*b*t*h*d*d",
    .independent = "h",
    .sizes = CELL_SIZES,
    .cases = { "long: T=bf16 b=16 t=1024 h=12 d=64 +bias", "few heads: T=bf16 b=16 t=512 h=3 d=256 +bias",
               "training: T=f32 b=32 t=128 h=1 d=256 +bias +gates",
               "step: T=bf16 b=64 s=64 t=1 h=8 d=128 +h0 +last_h" },
    .reference = reference,
};
