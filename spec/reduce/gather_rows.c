/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows: the table and the reference. */
#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_gather_rows_args

/* A copy: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t p = trine_ref_dim(ref, "p"), m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *index = trine_ref_value(ref, "index");
    double *y = trine_ref_value(ref, "y");
    const trine_dtype T = trine_ref_type(ref, "T");
    const double none = T == TRINE_I8 || T == TRINE_U8 || T == TRINE_I32 ? 0 : NAN;

    for (int64_t i = 0; i < p; i++) {
        const bool inside = index[i] >= 0 && index[i] < (double)m;
        const double other = args->pad && index[i] == -1 ? 0 : none;
        for (int64_t j = 0; j < n; j++) y[i * n + j] = inside ? x[(int64_t)index[i] * n + j] : other;
    }
}

const trine_spec trine_spec_gather_rows = {
    SPEC(gather_rows),
    .summary = "Rows of a matrix in the order of an index",
    .formula =
        "y[i,j] = x[index[i],j] where 0 <= index[i] < m, else NaN, or 0 if it is a matrix of integers; with pad 0 "
        "where index[i] = -1",
    .source = "by definition",
    .tensors = { TENSOR(x, IN, "T", "m n"), TENSOR(index, IN, "I", "p", .fill = "places m"),
                 TENSOR(y, OUT | EXACT, "T", "p n") },
    .params = { PARAM(pad, BOOL, .values = "0 1", .doc = "1: an index of -1 gives a row of zeros") },
    .types = { "T=f32|bf16|f16|f64|i32|i8|u8|e4m3 I=i32|i64" },
    .flops = "0",
    .independent = "p",
    .sizes = { "p: 1 0 2 31 500", "m: 17 0 1 2 1000", "n: 7 0 1 16 64 255 4099" },
    .cases = { "tokens to experts: T=bf16 I=i32 p=65536 m=8192 n=4096",
               "blocks of keys: T=bf16 I=i32 p=4096 m=65536 n=1024", "codes: T=e4m3 I=i32 p=65536 m=8192 n=7168",
               "narrow: T=f32 I=i64 p=1048576 m=1048576 n=4" },
    .exact = true,
    .reference = reference,
};
