/* SPDX-License-Identifier: Apache-2.0 */
/* slstm_backward: the table and the reference. */
#include <trine/recurrent.h>

#include "slstm.h"

#define ARGS trine_slstm_backward_args

static void reference(trine_ref *ref) { cell_backward(ref, &slstm_cell); }
static void prepare(trine_ref *ref) { cell_prepare(ref, &slstm_cell); }

const trine_spec trine_spec_slstm_backward = {
    SPEC(slstm_backward),
    .summary = "Gradient of slstm",
    .formula = "f = exp(l - m), 0 where n[t-1] is, i = exp(g[i] - m); dh = dy[t] + r' dg[t+1], with dlast_h at "
               "the last step; dc = dh o / n + f[t+1] dc[t+1], dn = -dh o c / n^2 + f[t+1] dn[t+1]; dg = (dc z + "
               "dn) i, (dc c[t-1] + dn n[t-1]) f sigmoid(-g[f]), dc i (1-z^2), dh (c/n) o (1-o); dwx = dg, dr = "
               "sum_t dg[t] h[t-1]', dbias = sum_t dg[t], dh0 = r' dg[0]; o the gate's sigmoid, z the tanh; m, "
               "c0, n0 and m0 are constants; steps as in slstm, dwx is 0 behind the last sequence",
    .source = "the derivative of slstm's formula",
    .tensors = { TENSOR(dy, IN, "T", "[b] t h d"), TENSOR(gates, IN, "T", "[b] t 4 h d"),
                 TENSOR(c, IN, "f32", "[b] t h d", .fill = "derived"),
                 TENSOR(n, IN, "f32", "[b] t h d", .fill = "derived"),
                 TENSOR(m, IN, "f32", "[b] t h d", .fill = "derived"),
                 TENSOR(y, IN, "T", "[b] t h d", .fill = "derived"), TENSOR(r, IN, "T", "h 4 d d", .fill = "unit"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(c0, IN | OPTIONAL, "f32", "[s] h d"),
                 TENSOR(n0, IN | OPTIONAL, "f32", "[s] h d", .fill = "positive"),
                 TENSOR(m0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(dlast_h, IN | OPTIONAL, "f32", "[s] h d"), TENSOR(dwx, OUT, "T", "[b] t 4 h d", .terms = "1"),
                 TENSOR(dr, OUT, "T", "h 4 d d", .terms = "1"),
                 TENSOR(dbias, OUT | OPTIONAL, "T", "4 h d", .terms = "1"),
                 TENSOR(dh0, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1") },
    .types = CELL_TYPES,
    .require = { CELL_REQUIRE, "with c0: s == max(b, nseq)", "with n0: s == max(b, nseq)", "with m0: s == max(b, nseq)",
                 "with dlast_h: s == max(b, nseq)", "with dh0: s == max(b, nseq)", "dh0 -> h0", "c0 <-> n0",
                 "n0 <-> m0" },
    .flops = "16*b*t*h*d*d",
    .independent = "h",
    .sizes = CELL_SIZES,
    .cases = { "long: T=bf16 b=16 t=1024 h=12 d=64 +dbias", "few heads: T=bf16 b=16 t=512 h=3 d=256 +dbias",
               "training: T=f32 b=32 t=128 h=1 d=256 +dbias" },
    .reference = reference,
    .prepare = prepare,
};
