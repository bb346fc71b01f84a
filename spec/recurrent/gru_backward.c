/* SPDX-License-Identifier: Apache-2.0 */
/* gru_backward: the table and the reference. */
#include <trine/recurrent.h>

#include "gru.h"

#define ARGS trine_gru_backward_args

static void reference(trine_ref *ref) { cell_backward(ref, &gru_cell); }
static void prepare(trine_ref *ref) { cell_prepare(ref, &gru_cell); }

const trine_spec trine_spec_gru_backward = {
    SPEC(gru_backward),
    .summary = "Gradient of gru",
    .formula = "dh = dy[t] + z[t+1] dh[t+1] + r' (dg[r], dg[z], da)[t+1], with dlast_h at the last step; dg[z] = "
               "dh (h[t-1] - n) z (1-z), dg[n] = dh (1-z) (1-n^2), da = dg[n] r, dg[r] = dg[n] a r (1-r); dwx = "
               "dg, dr = sum_t (dg[r], dg[z], da) h[t-1]', dbias = sum_t (dg, da); dh0 = what dh[-1] would be "
               "without dy; r, z and n the gates' sigmoids and tanh; steps as in gru, dwx is 0 behind the last "
               "sequence",
    .source = "the derivative of gru's formula",
    .tensors = { TENSOR(dy, IN, "T", "[b] t h d"), TENSOR(gates, IN, "T", "[b] t 4 h d"),
                 TENSOR(y, IN, "T", "[b] t h d", .fill = "derived"), TENSOR(r, IN, "T", "h 3 d d", .fill = "unit"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(dlast_h, IN | OPTIONAL, "f32", "[s] h d"), TENSOR(dwx, OUT, "T", "[b] t 3 h d", .terms = "1"),
                 TENSOR(dr, OUT, "T", "h 3 d d", .terms = "1"),
                 TENSOR(dbias, OUT | OPTIONAL, "T", "4 h d", .terms = "1"),
                 TENSOR(dh0, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1") },
    .types = CELL_TYPES,
    .require = { CELL_REQUIRE, "with dlast_h: s == max(b, nseq)", "with dh0: s == max(b, nseq)", "dh0 -> h0" },
    .flops = "12*b*t*h*d*d",
    .independent = "h",
    .sizes = CELL_SIZES,
    .cases = { "long: T=bf16 b=16 t=1024 h=12 d=64 +dbias", "few heads: T=bf16 b=16 t=512 h=3 d=256 +dbias",
               "training: T=f32 b=32 t=128 h=1 d=256 +dbias" },
    .reference = reference,
    .prepare = prepare,
};
