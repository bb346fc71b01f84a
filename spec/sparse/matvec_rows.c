/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_rows: the table and the reference. */
#include <trine/sparse.h>

#include "spec/matmul/product.h"

#define ARGS trine_matvec_rows_args

/* Bound, with u = 2^-24: a sum of k products in any order, fused or not, is off by at most k u sum |x w| (Jeannerod and
 * Rump 2013), and adding the bias by u of all, which the output's rounding multiplies by 1 + u(O). Products below
 * 2^-126 lose up to 2^-150 each. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t t = trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"), m = trine_ref_dim(ref, "m"),
                  r = trine_ref_dim(ref, "r");
    const double *x = trine_ref_value(ref, "x"), *w = trine_ref_value(ref, "w"), *rows = trine_ref_value(ref, "rows"),
                 *bias = trine_ref_value(ref, "bias");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const double growth = 1 + trine_unit_roundoff(trine_ref_type(ref, "O"));

    for (int64_t at = 0; at < t * r; at++) {
        const double place = rows[at];
        if (!(place >= 0 && place < (double)m)) {
            y[at] = args->pad && place == -1 ? 0 : NAN;
            continue;
        }
        const int64_t row = (int64_t)place;
        const dot s = dot_of(x + at / r * k, w + row * k, k, 1);
        y[at] = (double)(s.sum + (bias ? bias[row] : 0));
        magnitude[at] = (s.scale + (bias ? trine_finite_abs(bias[row]) : 0)) * growth;
        slack[at] = (double)k * 0x1p-150;
        if (!(magnitude[at] < trine_largest(TRINE_F32))) magnitude[at] = INFINITY, slack[at] = 0;
    }
}

const trine_spec trine_spec_matvec_rows = {
    SPEC(matvec_rows),
    .summary = "Products with the rows of a matrix that a list names",
    .formula = "y[i,a] = sum_l x[i,l] w[rows[i,a],l] + bias[rows[i,a]] where 0 <= rows[i,a] < m, else NaN; with pad 0 "
               "where rows[i,a] = -1",
    .source = "by definition",
    .tensors = { TENSOR(x, IN, "T", "t k"), TENSOR(w, IN, "T", "m k"),
                 TENSOR(rows, IN | BROADCAST, "I", "[t] r", .fill = "places m"), TENSOR(bias, IN | OPTIONAL, "T", "m"),
                 TENSOR(y, OUT, "O", "t r", .terms = "k + 2") },
    .params = { PARAM(pad, BOOL, .values = "0 1", .doc = "1: a place of -1 gives 0") },
    .types = { "T=f32 O=f32 I=i32|i64", "T=bf16 O=bf16|f32 I=i32|i64", "T=f16 O=f16|f32 I=i32|i64" },
    .flops = "2*t*r*k",
    .sizes = { "t: 1 0 2 3 4 5 9 40", "k: 64 0 1 7 8 33 256 300 1024 2056", "m: 17 0 1 2 64 700",
               "r: 4 0 1 2 8 33 255" },
    .integers_exact = true,
    .cases = { "specee 4 candidates: T=bf16 O=f32 I=i32 t=1 k=4096 m=32000 r=4",
               "specee tree, 16 tokens: T=bf16 O=f32 I=i32 t=16 k=4096 m=32000 r=4",
               "coreinfer 40 %: T=f16 O=f16 I=i32 t=1 k=4096 m=11008 r=4403",
               "coreinfer 40 %, 4 tokens: T=f16 O=f16 I=i32 t=4 k=4096 m=11008 r=4403",
               "coreinfer 40 % f32: T=f32 I=i64 t=1 k=4096 m=11008 r=4403" },
    .reference = reference,
};
