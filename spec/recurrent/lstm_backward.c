/* SPDX-License-Identifier: Apache-2.0 */
/* lstm_backward: the table and the reference. */
#include <trine/recurrent.h>

#include "lstm.h"

#define ARGS trine_lstm_backward_args

static void reference(trine_ref *ref) { cell_backward(ref, &lstm_cell); }
static void prepare(trine_ref *ref) { cell_prepare(ref, &lstm_cell); }

const trine_spec trine_spec_lstm_backward = {
    SPEC(lstm_backward),
    .summary = "Gradient of lstm",
    .formula = "dg = dc z i (1-i), dc c[t-1] f (1-f), dc i (1-z^2), dh tanh(c) o (1-o), dh = dy[t] + r' dg[t+1], "
               "dc = dh o (1 - tanh(c)^2) + f[t+1] dc[t+1], with dlast_h and dlast_c at the last step; dwx = dg, "
               "dr = sum_t dg[t] h[t-1]', dbias = sum_t dg[t], dh0 = r' dg[0], dc0 = f[0] dc[0]; i, f and o the "
               "gates' sigmoids, z the tanh; steps as in lstm, dwx is 0 behind the last sequence",
    .source = "the derivative of lstm's formula",
    .tensors = { TENSOR(dy, IN, "T", "[b] t h d"), TENSOR(gates, IN, "T", "[b] t 4 h d"),
                 TENSOR(c, IN, "f32", "[b] t h d", .fill = "derived"),
                 TENSOR(y, IN, "T", "[b] t h d", .fill = "derived"), TENSOR(r, IN, "T", "h 4 d d", .fill = "unit"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(c0, IN | OPTIONAL, "f32", "[s] h d"), TENSOR(dlast_h, IN | OPTIONAL, "f32", "[s] h d"),
                 TENSOR(dlast_c, IN | OPTIONAL, "f32", "[s] h d"), TENSOR(dwx, OUT, "T", "[b] t 4 h d", .terms = "1"),
                 TENSOR(dr, OUT, "T", "h 4 d d", .terms = "1"),
                 TENSOR(dbias, OUT | OPTIONAL, "T", "4 h d", .terms = "1"),
                 TENSOR(dh0, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1"),
                 TENSOR(dc0, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1") },
    .types = CELL_TYPES,
    .require = { CELL_REQUIRE, "with c0: s == max(b, nseq)", "with dlast_h: s == max(b, nseq)",
                 "with dh0: s == max(b, nseq)", "dh0 -> h0", "with dlast_c: s == max(b, nseq)",
                 "with dc0: s == max(b, nseq)", "dc0 -> c0" },
    .flops = "16*b*t*h*d*d",
    .independent = "h",
    .sizes = CELL_SIZES,
    .cases = { "long: T=bf16 b=16 t=1024 h=12 d=64 +dbias", "few heads: T=bf16 b=16 t=512 h=3 d=256 +dbias",
               "training: T=f32 b=32 t=128 h=1 d=256 +dbias" },
    .reference = reference,
    .prepare = prepare,
};
