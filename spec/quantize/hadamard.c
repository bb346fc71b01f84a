/* SPDX-License-Identifier: Apache-2.0 */
/* hadamard: the table and the reference. */
#include <stdlib.h>

#include <trine/quantize.h>

#include "spec/spec.h"

#define ARGS trine_hadamard_args
#define TINY 0x1p-150 /* the error of a rounding to a subnormal f32 */

enum { ORDER = 28 };

/* Of 12: Paley's second for q = 5. */
static int paley(int row, int column) {
    static const int chi[] = { 0, 1, -1, -1, 1 }, zero[2][2] = { { 1, -1 }, { -1, -1 } },
                     one[2][2] = { { 1, 1 }, { 1, -1 } };
    const int i = row / 2, j = column / 2;
    const int c = i == 0 || j == 0 ? i != j : chi[(i - j + 5) % 5];
    return c == 0 ? zero[row % 2][column % 2] : c * one[row % 2][column % 2];
}

/* Of 4 m: Williamson's of four circulants. */
static int williamson(int m, int row, int column) {
    static const char *const first[2][4] = { { "+----", "+----", "++--+", "+-++-" },
                                             { "+------", "++----+", "+-+--+-", "+--++--" } };
    static const int which[4][4] = { { 0, 1, 2, 3 }, { 1, 0, 3, 2 }, { 2, 3, 0, 1 }, { 3, 2, 1, 0 } },
                     sign[4][4] = { { 1, 1, 1, 1 }, { -1, 1, -1, 1 }, { -1, 1, 1, -1 }, { -1, -1, 1, 1 } };
    const int i = row / m, j = column / m;
    const char *circulant = first[m == 7][which[i][j]];
    return circulant[(column % m - row % m + m) % m] == '+' ? sign[i][j] : -sign[i][j];
}

/* The order of B: four times what is odd in n. */
static int order_of(int64_t n) {
    while (n % 2 == 0) n /= 2;
    return n == 1 ? 1 : 4 * (int)n;
}

/* The transform by B of order m along the outer of two dimensions, and by Sylvester's along the inner. */
static void transform(double *x, int64_t n, int m, bool transposed) {
    const int64_t size = n / m;
    for (int64_t half = 1; half < size; half *= 2)
        for (int64_t i = 0; i < n; i++) {
            if (i % size & half) continue;
            const double a = x[i], b = x[i + half];
            x[i] = a + b;
            x[i + half] = a - b;
        }
    for (int64_t s = 0; s < size && m > 1; s++) {
        double column[ORDER];
        for (int b = 0; b < m; b++) column[b] = x[b * size + s];
        for (int b = 0; b < m; b++) {
            double sum = 0;
            for (int c = 0; c < m; c++) {
                const int i = transposed ? c : b, j = transposed ? b : c;
                sum += (m == 12 ? paley(i, j) : williamson(m / 4, i, j)) * column[c];
            }
            x[b * size + s] = sum;
        }
    }
}

/* Bound, with u = 2^-24: sums by halves are log2(n/m) deep; those of B's m terms, of which there are four each a
 * quarter of the terms, m/4 + 1, which is at most log2(m) + 3 with log2 rounded up; and a product with the scale. Each
 * rounds by u of a sum of |x| at most. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), scale = args->scale;
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    double *row = malloc(sizeof *row * (size_t)n);

    for (int64_t i = 0; i < r; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            row[j] = x[i * n + j];
            sum += trine_finite_abs(row[j]);
        }
        transform(row, n, order_of(n), args->transposed);
        for (int64_t j = 0; j < n; j++) {
            y[i * n + j] = scale * row[j];
            magnitude[i * n + j] = sum > trine_largest(TRINE_F32) ? INFINITY : fabs(scale) * sum;
            slack[i * n + j] = TINY;
        }
    }
    free(row);
}

const trine_spec trine_spec_hadamard = {
    SPEC(hadamard),
    .summary = "Hadamard transform of rows",
    .formula = "y[i,:] = scale H x[i,:], or of H transposed; H = B (x) S, S[a,b] = (-1)^popcount(a and b) of order "
               "2^p, B of order 1, 12 (Paley's second, q = 5), 20 or 28 (Williamson's)",
    .source = "Sylvester 1867; Paley 1933, lemma 3; Williamson 1944, section 4",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(y, OUT, "T", "r n", .terms = "log2(n) + 4") },
    .params = { PARAM(scale, F32, .values = "1 0.125 -2 0", .fallback = 1, .doc = "what sums are multiplied by"),
                PARAM(transposed, BOOL, .values = "0 1",
                      .doc = "1: by the transposed matrix, which undoes it but for a factor n") },
    .types = { "T=f32|bf16|f16" },
    .require = { "n <= 32768", "(32768 % n == 0) + (24576 % n + n % 12 == 0) + (20480 % n + n % 20 == 0) + "
                               "(28672 % n + n % 28 == 0) == 1" },
    .alias = { "y=x" },
    .flops = "r*n*log2(n)",
    .independent = "r",
    .integers_exact = true,
    .sizes = { "r: 1 0 2 5 33 200",
               "n: 1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 12 24 48 96 192 384 768 1536 3072 6144 "
               "12288 24576 20 40 80 160 320 640 1280 2560 5120 10240 20480 28 56 112 224 448 896 1792 3584 7168 14336 "
               "28672" },
    .cases = { "heads: T=bf16 r=262144 n=128 scale=0.088388346", "rows: T=bf16 r=8192 n=4096 scale=0.015625",
               "long rows: T=bf16 r=2048 n=32768 scale=0.0055242716",
               "12 by 512: T=bf16 r=4096 n=6144 scale=0.012757759", "28 by 512: T=bf16 r=2048 n=14336 scale=0.0083517",
               "f32: T=f32 r=4096 n=4096 scale=0.015625" },
    .reference = reference,
};
