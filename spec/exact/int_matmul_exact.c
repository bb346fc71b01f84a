/* SPDX-License-Identifier: Apache-2.0 */
/* int_matmul_exact: the table and the reference. */
#include <stdlib.h>

#include <trine/exact.h>

#include "spec/plan.h"

#define SLICES_INLINE static inline
#include "slices.h"

#define ARGS trine_int_matmul_exact_args

/* The exponent of a line of k elements, and its digits, the slices one behind the other. */
static int slice_line(const double *x, int64_t k, int64_t step, int slices, signed char *digits) {
    int exponent = -2000;
    bool any = false;
    for (int64_t p = 0; p < k; p++) {
        if (x[p * step] == 0) continue;
        const int own = slices_exponent(x[p * step]);
        exponent = own > exponent ? own : exponent;
        any = true;
    }
    if (!any) exponent = 0;
    if (exponent == SLICES_STRAY) return exponent;
    for (int64_t p = 0; p < k; p++) {
        double rest = slices_begin(x[p * step], exponent);
        for (int s = 0; s < slices; s++) digits[s * k + p] = (signed char)slices_next(&rest);
    }
    return exponent;
}

static double element(const signed char *a, const signed char *b, int64_t k, int slices, int exponent) {
    double sum = 0;
    for (int w = slices - 1; w >= 0; w--) {
        long long term = 0;
        for (int s = 0; s <= w; s++)
            for (int64_t p = 0; p < k; p++) term += a[s * k + p] * b[(w - s) * k + p];
        sum = slices_add(sum, term);
    }
    return slices_scale(sum, exponent - 2 * SLICES_FIRST);
}

/* Exact: the definition, step by step. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const int slices = args->slices;
    const double *a = trine_ref_value(ref, "a"), *b = trine_ref_value(ref, "b");
    double *d = trine_ref_value(ref, "d");
    signed char *const left = malloc((size_t)(m * k * slices) + 1), *const right = malloc((size_t)(n * k * slices) + 1);
    int *const e = malloc(sizeof *e * (size_t)(m + n + 1)), *const f = e + m;
    for (int64_t g = 0; g < trine_ref_dim(ref, "g"); g++) {
        for (int64_t i = 0; i < m; i++) e[i] = slice_line(a + (g * m + i) * k, k, 1, slices, left + i * k * slices);
        for (int64_t j = 0; j < n; j++) f[j] = slice_line(b + g * k * n + j, k, n, slices, right + j * k * slices);
        for (int64_t at = 0; at < m * n; at++) {
            const int64_t i = at / n, j = at % n;
            const bool stray = e[i] == SLICES_STRAY || f[j] == SLICES_STRAY;
            d[g * m * n + at] =
                stray ? (double)NAN : element(left + i * k * slices, right + j * k * slices, k, slices, e[i] + f[j]);
        }
    }
    free(left), free(right), free(e);
}

const trine_spec trine_spec_int_matmul_exact = {
    SPEC(int_matmul_exact),
    .summary = "Matrix product of doubles by exact products of 8-bit integers",
    .formula =
        "d = 2^(E[i] + F[j] - 12) sum_w 2^(-7 w) sum_(s + t = w) sum_p A[s,i,p] B[t,p,j], A and B the digits of a "
        "2^-E and b 2^-F",
    .source = "Ozaki, Ogita, Oishi and Rump 2012; Ootomo, Ozaki and Yokota 2024",
    .tensors = { TENSOR(a, IN | TRANSPOSABLE, "T", "[g] m k"), TENSOR(b, IN | TRANSPOSABLE, "T", "[g] k n"),
                 TENSOR(d, OUT | EXACT, "T", "[g] m n") },
    .params = { PARAM(slices, I32, .values = "8 1 3 12 16", .fallback = 8, .min = 0, .max = SLICES_MOST,
                      .doc = "digits of an element") },
    .types = { "T=f64" },
    .require = { "k <= 68719476736" },
    .flops = "2*g*m*n*k",
    .independent = "g",
    .sizes = { "g: 1 0 2 3", "m: 1 0 2 7 16 33 70", "n: 1 0 3 8 31 64 65 70", "k: 1 0 2 5 8 31 64 257" },
    .exact = true,
    .cases = { "square: T=f64 m=512 n=512 k=512", "square, 6 slices: T=f64 m=512 n=512 k=512 slices=6",
               "batch: T=f64 g=16 m=128 n=128 k=128", "tall: T=f64 m=4096 n=16 k=256" },
    .reference = reference,
};
