/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_axpy: the table and the reference. */
#include <trine/sparse.h>

#include "spec/spec.h"

#define ARGS trine_scatter_axpy_args

/* Bound, with u = 2^-24: an element that is named c times is a sum of c + 1 terms in f32, c additions of at most u of
 * the terms' absolute values (Higham 2002, section 4.2), and a product by u in each term, which a fused one leaves out.
 * The magnitude is c + 1 times the terms' sum, which the output's rounding and the second order leave within 2u. A
 * product that underflows is off by TINY at most. What is put has one rounding, none where d has the type of w. */
#define TINY 0x1p-150

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), p = trine_ref_dim(ref, "p");
    const double *index = trine_ref_value(ref, "index"), *d = trine_ref_value(ref, "d");
    double *w = trine_ref_value(ref, "w"), *magnitude = trine_ref_magnitude(ref, "w"),
           *slack = trine_ref_slack(ref, "w"), *saved = trine_ref_value(ref, "saved");
    const double alpha = (double)args->alpha + 0;
    double reached = -1, before = 0, size = 0, count = 0;

    for (int64_t i = 0; i < p; i++) {
        const bool inside = index[i] >= 0 && index[i] < (double)m * (double)n, kept = inside && index[i] >= reached;
        if (saved) saved[i] = 0;
        if (!kept) continue;
        const int64_t at = (int64_t)index[i];
        if (index[i] > reached) before = w[at], size = trine_finite_abs(before), count = 0;
        reached = index[i];
        if (saved) saved[i] = before;
        if (args->put) {
            w[at] = d[i];
            continue;
        }
        w[at] += alpha * d[i];
        size += trine_finite_abs(alpha * d[i]), count++;
        magnitude[at] = isfinite(w[at]) ? size * (count + 1) : 0;
        if (size > trine_largest(TRINE_F32)) magnitude[at] = INFINITY;
        if (alpha != 0 && d[i] != 0) slack[at] += TINY;
    }
}

const trine_spec trine_spec_scatter_axpy = {
    SPEC(scatter_axpy),
    .summary = "Adds to some elements of a matrix in place, and takes that back to the bit",
    .formula = "w.flat[index[i]] = w.flat[index[i]] + alpha d[i], or with put d[i], for i ascending; saved[i] = what "
               "it held before the call; an index that is not in [0, m n), or is less than one in it before, is passed "
               "over, saved[i] = 0",
    .source = "Bhardwaj et al. 2024 (SHiRA), section 3",
    .tensors = { TENSOR(w, IN | OUT, "W", "m n", .terms = "2"), TENSOR(index, IN, "I", "p", .fill = "ascending m*n"),
                 TENSOR(d, IN, "D", "p"), TENSOR(saved, OUT | OPTIONAL | EXACT, "W", "p") },
    .params = { PARAM(put, BOOL, .values = "0 1", .doc = "1: elements become d, instead of having it added"),
                PARAM(alpha, F32, .values = "1 0.5 -2 0", .fallback = 1, .doc = "factor of d") },
    .types = { "W=f32 D=f32 I=i32|i64", "W=bf16 D=bf16|f32 I=i32|i64", "W=f16 D=f16|f32 I=i32|i64" },
    .flops = "2*p",
    .sizes = { "m: 17 0 1 2 100", "n: 9 0 1 3 64 500", "p: 40 0 1 2 300 3000 20000" },
    .integers_exact = true,
    .cases = { "llama2-7b 1 % of a projection: W=bf16 D=bf16 I=i64 m=4096 n=4096 p=167772",
               "llama2-7b 2 % of up, saved: W=bf16 D=bf16 I=i32 m=11008 n=4096 p=901776 +saved",
               "llama2-7b 2 % of up, put back: W=bf16 D=bf16 I=i32 m=11008 n=4096 p=901776 put=1",
               "f32: W=f32 D=f32 I=i64 m=11008 n=4096 p=901776" },
    .reference = reference,
};
