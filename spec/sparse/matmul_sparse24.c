/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_sparse24: the table and the reference. */
#include <stdlib.h>

#include <trine/sparse.h>

#include "pairs24.h"
#include "spec/matmul/element.h"

#define ARGS trine_matmul_sparse24_args

/* Bound: that of matmul with the unpacked w (spec/matmul/element.h); its zeros add nothing to it. A kernel may multiply
 * by them or leave them out, which are different where x is Inf or NaN: all of that row's sums may then be either. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const trine_dtype in = trine_ref_type(ref, "T"), out = trine_ref_type(ref, "O");
    const trine_matmul_args as = { .alpha = 1, .activation = args->activation };
    const double *x = trine_ref_value(ref, "x"), *values = trine_ref_value(ref, "values"),
                 *indices = trine_ref_value(ref, "indices"), *bias = trine_ref_value(ref, "bias");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y"), *w = malloc(sizeof *w * (size_t)(n * k + 1));
    if (w == NULL) abort();
    for (int64_t j = 0; j < n; j++) row24(w + j * k, values + j * k / 2, indices + j * k / 8, k);
    const double least = trine_smallest_normal(in);
    const bool below = in != TRINE_I8 && (any_below(x, m * k, least) || any_below(w, n * k, least));
    const factors f = factors_of(&as, NULL, NULL);
    for (int64_t at = 0; at < m * n; at++) {
        const double *row = x + at / n * k, *column = w + at % n * k, *b = bias ? bias + at % n : NULL;
        dot s = below && in == TRINE_BF16 ? dot_careful(row, column, k, 1, 0x1p-126) : dot_of(row, column, k, 1);
        if (in == TRINE_I8) {
            y[at] = integer_element(&as, (double)s.sum, NULL, b);
            continue;
        }
        if (below) s.weight = dot_weight(row, column, k, 1, least, least);
        const result r = element(&as, s, f, k, NULL, b, in, out);
        bool finite = true;
        for (int64_t p = 0; p < k; p++) finite &= isfinite(row[p]) != 0;
        y[at] = !finite && isnan(r.value) ? 0 : r.value;
        magnitude[at] = finite ? r.magnitude : INFINITY;
        slack[at] = finite ? r.slack : 0;
    }
    free(w);
}

const trine_spec trine_spec_matmul_sparse24 = {
    SPEC(matmul_sparse24),
    .summary = "Product with a matrix of which two of four elements are 0, packed by pack24",
    .formula = "y[i,j] = act(sum_p x[i,p] w[j,p] + bias[j]), w what unpack24 makes of values and indices",
    .source = "Mishra et al. 2021",
    .tensors = { TENSOR(x, IN, "T", "m k"), TENSOR(values, IN, "T", "n h"), TENSOR(indices, IN, "u8", "n q"),
                 TENSOR(bias, IN | OPTIONAL, "B", "n"), TENSOR(y, OUT, "O", "m n", .terms = "k + 4") },
    .params = { PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu",
                      .doc = "applied last; for i8 none or relu") },
    .types = { "T=f32 O=f32 B=f32", "T=f16 O=f16|f32 B=f32", "T=f16 O=f16 B=f16", "T=bf16 O=bf16|f32 B=f32",
               "T=bf16 O=bf16 B=bf16", "T=i8 O=i32 B=i32" },
    .require = { "k == 2*h", "k == 8*q" },
    .flops = "m*n*k",
    .independent = "m",
    .integers_exact = true,
    .sizes = { "m: 1 0 2 3 8 16 17 100", "n: 1 0 2 7 16 33 64 300", "k: 8 0 16 24 64 120 264 1032",
               "h: 4 0 8 12 32 60 132 516", "q: 1 0 2 3 8 15 33 129" },
    .cases = { "llama3-8b gate: T=bf16 O=bf16 m=512 n=14336 k=4096 h=2048 q=512 activation=silu",
               "llama3-8b down: T=bf16 O=bf16 m=512 n=4096 k=14336 h=7168 q=1792",
               "llama3-8b query f16: T=f16 O=f16 m=2048 n=4096 k=4096 h=2048 q=512",
               "llama3-8b query int8: T=i8 m=2048 n=4096 k=4096 h=2048 q=512",
               "decode 1: T=bf16 O=bf16 m=1 n=4096 k=4096 h=2048 q=512" },
    .reference = reference,
};
