/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul: the table and the reference. */
#include <trine/matmul.h>

#include "product.h"

#define ARGS trine_grouped_matmul_args

/* Bound, as of matmul (spec/matmul/element.h), with S = sum_q x_q w_q, t = S + bias, M = (2.25 for f16 and bf16) sum
 * |x_q w_q| + |bias|. The sum is off by k u sum |x_q w_q|, or by (2.25 k + 4)u in matrix units; the bias and the factor
 * of the row are a rounding each, and the fourth u is for the products of errors. The slopes of activations stay below
 * 1.13, and they are evaluated to 12u |t|. Then all is times |row_scale|. */
typedef struct result {
    double value, magnitude, slack;
} result;

static result element(const ARGS *args, const dot *s, int64_t k, const double *bias, double factor, trine_dtype in,
                      trine_dtype out) {
    const bool curved = args->activation > TRINE_ACTIVATION_RELU;
    const double size = fabs(factor), lost = in == TRINE_BF16 ? 0x1p-126 : 0x1p-150, largest = trine_largest(TRINE_F32);
    const long double t = s->sum + (bias ? *bias : 0);
    const double m = (in == TRINE_F32 ? s->scale : 2.25 * s->weight) + (bias ? trine_finite_abs(*bias) : 0);
    result r = { .value = (double)(factor * activate(args->activation, t)) };
    if (!isfinite(factor)) {
        r.magnitude = isinf(factor) ? INFINITY : 0;
        return r;
    }
    r.magnitude = m * size * (curved ? 1.13 : 1) * (1 + trine_unit_roundoff(out));
    r.slack = trine_smallest_normal(out) * trine_unit_roundoff(out) +
              2 * (((double)k * lost + s->flushed) * size + 3 * lost * fmax(1, size));
    if (curved && isfinite((double)t)) r.slack += 12 * 0x1p-24 * fabs((double)t) * size;
    if (!(s->scale < largest && m < largest && r.slack < largest)) r.magnitude = INFINITY, r.slack = 0;
    return r;
}

/* The group that row i is computed for; -1: none. */
static int64_t group_of(const double *offsets, const double *counts, int64_t e, int64_t i) {
    for (int64_t g = 0; g < e; g++)
        if (offsets[g] <= (double)i && (double)i < offsets[g + 1])
            return counts && (double)i >= offsets[g] + counts[g] ? -1 : g;
    return -1;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), e = trine_ref_dim(ref, "e"), p = trine_ref_dim(ref, "p"),
                  n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const trine_dtype in = trine_ref_type(ref, "T"), out = trine_ref_type(ref, "O");
    const double *x = trine_ref_value(ref, "x"), *w = trine_ref_value(ref, "w"),
                 *gather = trine_ref_value(ref, "gather"), *bias = trine_ref_value(ref, "bias"),
                 *row_scale = trine_ref_value(ref, "row_scale"), *counts = trine_ref_value(ref, "counts");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const double least = trine_smallest_normal(in);
    const bool below = any_below(x, r * k, least) || any_below(w, e * n * k, least);
    for (int64_t i = 0; i < p; i++) {
        const int64_t g = group_of(trine_ref_value(ref, "offsets"), counts, e, i);
        const double from = gather ? floor(gather[i] / (double)args->divide) : (double)i;
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = i * n + j;
            y[at] = 0;
            if (g < 0 || from < 0 || from >= (double)r) continue;
            const double *row = x + (int64_t)from * k, *column = w + (g * n + j) * k;
            dot s = below && in == TRINE_BF16 ? dot_careful(row, column, k, 1, 0x1p-126) : dot_of(row, column, k, 1);
            if (below) s.weight = dot_weight(row, column, k, 1, least, least);
            const result one =
                element(args, &s, k, bias ? bias + g * n + j : NULL, row_scale ? row_scale[i] : 1, in, out);
            y[at] = one.value, magnitude[at] = one.magnitude, slack[at] = one.slack;
        }
    }
}

const trine_spec trine_spec_grouped_matmul = {
    SPEC(grouped_matmul),
    .summary = "Products of groups of rows, each group with a matrix of its own",
    .formula =
        "y[i,j] = row_scale[i] act(sum_q x[s,q] w[g,j,q] + bias[g,j]) with offsets[g] <= i < offsets[g+1] and s = "
        "i, or gather[i]/divide rounded down; 0 where there is no such g or s, or counts[g] <= i - offsets[g]",
    .source = "Gale et al. 2023",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(w, IN | TRANSPOSABLE, "T", "e n k"),
                 TENSOR(offsets, IN, "i32", "e+1", .fill = "offsets p"),
                 TENSOR(gather, IN | OPTIONAL, "i32", "p", .fill = "places r"), TENSOR(bias, IN | OPTIONAL, "B", "e n"),
                 TENSOR(row_scale, IN | OPTIONAL, "f32", "p"), TENSOR(y, OUT, "O", "p n", .terms = "k + 4"),
                 TENSOR(counts, IN | OPTIONAL, "i32", "e", .fill = "lengths p offsets") },
    .params = { PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", .doc = "before row_scale"),
                PARAM(divide, I64, .values = "1 2 3", .fallback = 1, .min = 0,
                      .doc = "gather counts rows of x so many times each") },
    .types = { "T=f32 O=f32 B=f32", "T=f16 O=f16|f32 B=f32", "T=f16 O=f16 B=f16", "T=bf16 O=bf16|f32 B=f32",
               "T=bf16 O=bf16 B=bf16" },
    .require = { "without gather: r == p" },
    .flops = "2*p*n*k",
    .integers_exact = true,
    .sizes = { "r: 1 0 2 5 16 33 64 97 200 600", "e: 1 2 0 3 8 17 60", "p: 1 0 2 5 16 33 64 97 200 600",
               "n: 1 0 3 8 16 17 33 64 100 257", "k: 1 0 3 8 17 31 64 129 257 600" },
    .cases = { "mixtral up 16 tokens: T=bf16 O=bf16 r=16 e=8 p=32 n=14336 k=4096 divide=2 activation=silu +gather",
               "mixtral up: T=bf16 O=bf16 r=4096 e=8 p=8192 n=14336 k=4096 divide=2 activation=silu +gather",
               "mixtral down: T=bf16 O=bf16 r=8192 e=8 p=8192 n=4096 k=14336",
               "qwen3 up: T=bf16 O=bf16 r=4096 e=128 p=32768 n=768 k=2048 divide=8 activation=silu +gather",
               "qwen3 down: T=bf16 O=bf16 r=32768 e=128 p=32768 n=2048 k=768",
               "qwen3 up f32: T=f32 r=512 e=128 p=4096 n=768 k=2048 divide=8 activation=silu +gather",
               "groups of a capacity: T=bf16 O=bf16 r=16384 e=128 p=16384 n=768 k=2048 +counts" },
    .reference = reference,
};
