/* SPDX-License-Identifier: Apache-2.0 */
/* lstm: the table and the reference. */
#include <trine/recurrent.h>

#include "lstm.h"

#define ARGS trine_lstm_args

static void reference(trine_ref *ref) { cell_forward(ref, &lstm_cell); }

const trine_spec trine_spec_lstm = {
    SPEC(lstm),
    .summary = "Long short-term memory along time, head by head",
    .formula = "g = wx[t] + r h[t-1] + bias, gates i, f, z, o; c[t] = sigmoid(g[f]) c[t-1] + sigmoid(g[i]) "
               "tanh(g[z]); h[t] = sigmoid(g[o]) tanh(c[t]); y = h, gates = g; h[-1] and c[-1] are h0 and c0, or "
               "0, without h0 the first step has no product; last_h and last_c those of the last step; 0 behind "
               "the last of packed sequences",
    .source = "Hochreiter and Schmidhuber 1997; Gers et al. 2000; Poppel et al. 2024 (FlashRNN), section 3",
    .tensors = { TENSOR(wx, IN, "T", "[b] t 4 h d"), TENSOR(r, IN, "T", "h 4 d d", .fill = "unit"),
                 TENSOR(bias, IN | OPTIONAL, "T", "4 h d"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(c0, IN | OPTIONAL, "f32", "[s] h d"), TENSOR(y, OUT, "T", "[b] t h d", .terms = "1"),
                 TENSOR(gates, OUT | OPTIONAL, "T", "[b] t 4 h d", .terms = "1"),
                 TENSOR(c, OUT | OPTIONAL, "f32", "[b] t h d", .terms = "1"),
                 TENSOR(last_h, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1"),
                 TENSOR(last_c, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1") },
    .types = CELL_TYPES,
    .require = { CELL_REQUIRE, "with c0: s == max(b, nseq)", "with last_h: s == max(b, nseq)",
                 "with last_c: s == max(b, nseq)" },
    .flops = "8*b*t*h*d*d",
    .independent = "h",
    .sizes = CELL_SIZES,
    .cases = { "long: T=bf16 b=16 t=1024 h=12 d=64 +bias", "few heads: T=bf16 b=16 t=512 h=3 d=256 +bias",
               "training: T=f32 b=32 t=128 h=1 d=256 +bias +gates +c",
               "step: T=bf16 b=64 s=64 t=1 h=8 d=128 +h0 +c0 +last_h +last_c" },
    .reference = reference,
};
