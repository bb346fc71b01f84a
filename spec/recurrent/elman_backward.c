/* SPDX-License-Identifier: Apache-2.0 */
/* elman_backward: the table and the reference. */
#include <trine/recurrent.h>

#include "elman.h"

#define ARGS trine_elman_backward_args

static void reference(trine_ref *ref) { cell_backward(ref, &elman_cell); }
static void prepare(trine_ref *ref) { cell_prepare(ref, &elman_cell); }

const trine_spec trine_spec_elman_backward = {
    SPEC(elman_backward),
    .summary = "Gradient of elman",
    .formula = "dg = dh (1 - tanh(g)^2), dh = dy[t] + r' dg[t+1], with dlast_h at the last step; dwx = dg, dr = "
               "sum_t dg[t] h[t-1]', dbias = sum_t dg[t], dh0 = r' dg[0]; steps as in elman, dwx is 0 behind the "
               "last sequence",
    .source = "the derivative of elman's formula",
    .tensors = { TENSOR(dy, IN, "T", "[b] t h d"), TENSOR(gates, IN, "T", "[b] t h d"),
                 TENSOR(y, IN, "T", "[b] t h d", .fill = "derived"), TENSOR(r, IN, "T", "h d d", .fill = "unit"),
                 TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"),
                 TENSOR(h0, IN | OPTIONAL, "f32", "[s] h d", .fill = "unit"),
                 TENSOR(dlast_h, IN | OPTIONAL, "f32", "[s] h d"), TENSOR(dwx, OUT, "T", "[b] t h d", .terms = "1"),
                 TENSOR(dr, OUT, "T", "h d d", .terms = "1"), TENSOR(dbias, OUT | OPTIONAL, "T", "h d", .terms = "1"),
                 TENSOR(dh0, OUT | OPTIONAL, "f32", "[s] h d", .terms = "1") },
    .types = CELL_TYPES,
    .require = { CELL_REQUIRE, "with dlast_h: s == max(b, nseq)", "with dh0: s == max(b, nseq)", "dh0 -> h0" },
    .flops = "4*b*t*h*d*d",
    .independent = "h",
    .sizes = CELL_SIZES,
    .cases = { "long: T=bf16 b=16 t=1024 h=12 d=64 +dbias", "few heads: T=bf16 b=16 t=512 h=3 d=256 +dbias",
               "training: T=f32 b=32 t=128 h=1 d=256 +dbias" },
    .reference = reference,
    .prepare = prepare,
};
