/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables and references of gated_delta and its gradient share. */
#ifndef TRINE_SPEC_GATED_DELTA_H
#define TRINE_SPEC_GATED_DELTA_H

#include "state.h"

static inline state_problem gated_delta_of(const trine_ref *ref, double scale) {
    state_problem s = { .t = trine_ref_dim(ref, "t"),
                        .h = trine_ref_dim(ref, "h"),
                        .groups = trine_ref_dim(ref, "hk"),
                        .d = trine_ref_dim(ref, "d"),
                        .e = trine_ref_dim(ref, "e"),
                        .cu = trine_ref_value(ref, "cu_seqlens"),
                        .q = trine_ref_value(ref, "q"),
                        .k = trine_ref_value(ref, "k"),
                        .v = trine_ref_value(ref, "v"),
                        .g = trine_ref_value(ref, "g"),
                        .beta = trine_ref_value(ref, "beta"),
                        .s0 = trine_ref_value(ref, "s0") };
    s.scale = scale == 0 ? (double)(float)(1 / sqrt((double)s.d)) : scale;
    s.row = s.e, s.column = 1;
    s.count = s.cu ? trine_ref_dim(ref, "nseq") : trine_ref_dim(ref, "b");
    return s;
}

static inline void gated_delta_prepare(trine_ref *ref) {
    const int64_t rows = trine_ref_dim(ref, "b") * trine_ref_dim(ref, "t");
    double *beta = trine_ref_value(ref, "beta");
    state_make_unit(trine_ref_value(ref, "k"), rows * trine_ref_dim(ref, "hk"), trine_ref_dim(ref, "d"));
    state_make_sign(trine_ref_value(ref, "g"), rows * trine_ref_dim(ref, "h"), -1);
    for (int64_t i = 0; beta && i < rows * trine_ref_dim(ref, "h"); i++)
        beta[i] = isnan(beta[i]) ? NAN : fmin(fabs(beta[i]), 1);
}

#define GATED_DELTA_INPUTS \
    TENSOR(q, IN, "T", "[b] t hk d"), TENSOR(k, IN, "T", "[b] t hk d", .fill = "key saved"), \
        TENSOR(v, IN, "T", "[b] t h e"), TENSOR(g, IN | OPTIONAL, "f32", "[b] t h", .fill = "decay saved"), \
        TENSOR(beta, IN | OPTIONAL, "f32", "[b] t h", .fill = "rate saved"), \
        TENSOR(cu_seqlens, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets t"), \
        TENSOR(s0, IN | OPTIONAL, "f32", "[s] h d e")
#define GATED_DELTA_PARAMS PARAM(scale, F32, .values = "0 1 -0.3", .unset = "1/sqrt(d)", .doc = "of o")
#define GATED_DELTA_REQUIRE \
    "hk > 0", "h % hk == 0", "d > 0", "d <= 256", "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0", \
        "with s0: s == max(b, nseq)"

#endif
