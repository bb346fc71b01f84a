/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables and references of ssd and its gradient share. */
#ifndef TRINE_SPEC_SSD_H
#define TRINE_SPEC_SSD_H

#include "state.h"

static inline state_problem ssd_of(const trine_ref *ref, bool softplus) {
    state_problem s = { .t = trine_ref_dim(ref, "t"),
                        .h = trine_ref_dim(ref, "h"),
                        .groups = trine_ref_dim(ref, "g"),
                        .d = trine_ref_dim(ref, "n"),
                        .e = trine_ref_dim(ref, "p"),
                        .cu = trine_ref_value(ref, "cu_seqlens"),
                        .q = trine_ref_value(ref, "c"),
                        .k = trine_ref_value(ref, "b"),
                        .v = trine_ref_value(ref, "x"),
                        .s0 = trine_ref_value(ref, "s0"),
                        .dt = trine_ref_value(ref, "dt"),
                        .a = trine_ref_value(ref, "a"),
                        .dt_bias = trine_ref_value(ref, "dt_bias"),
                        .softplus = softplus,
                        .scale = 1 };
    s.row = 1, s.column = s.d;
    s.count = s.cu ? trine_ref_dim(ref, "nseq") : trine_ref_dim(ref, "b");
    return s;
}

static inline void ssd_prepare(trine_ref *ref) {
    const int64_t rows = trine_ref_dim(ref, "b") * trine_ref_dim(ref, "t");
    state_make_sign(trine_ref_value(ref, "dt"), rows * trine_ref_dim(ref, "h"), 1);
    state_make_sign(trine_ref_value(ref, "a"), trine_ref_dim(ref, "h"), -1);
}

#define SSD_INPUTS \
    TENSOR(x, IN, "T", "[b] t h p"), TENSOR(dt, IN, "f32", "[b] t h", .fill = "rate saved"), \
        TENSOR(a, IN, "f32", "h", .fill = "decay saved"), TENSOR(b, IN, "T", "[b] t g n"), \
        TENSOR(c, IN, "T", "[b] t g n"), TENSOR(d, IN | OPTIONAL, "f32", "h"), \
        TENSOR(dt_bias, IN | OPTIONAL, "f32", "h"), \
        TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"), \
        TENSOR(s0, IN | OPTIONAL, "f32", "[s] h p n")
#define SSD_PARAMS PARAM(softplus, BOOL, .values = "0 1", .doc = "steps are the softplus of dt + dt_bias")
#define SSD_REQUIRE \
    "g > 0", "h % g == 0", "n > 0", "n <= 256", "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0", \
        "with s0: s == max(b, nseq)"

#endif
