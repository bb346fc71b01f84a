/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled: the table and the reference. */
#include <stdlib.h>

#include "blocks.h"
#include "spec/matmul/product.h"
#include "spec/quantize/codes.h"

#define ARGS trine_matmul_scaled_args

/* Bound. The parts of k: s_t the sum of the products of part t, f_t = a_scale b_scale of its blocks, M = |alpha|
 * sum_l |f a b| + |bias|, u = 2^-24.
 *
 * A part has P <= 128 products. Those of e4m3, e5m2, e2m1 and whole numbers below 2^9 are exact in f32, and formed by a
 * unit for 16 bits too, whose cuts count 2.25 times as spec/matmul/matmul.c says, an operand counting as the smallest
 * normal f16, 2^-14, at least, below which are subnormals of e5m2 alone: s_t is off by 2.25 P u sum |a b|.
 * Whole numbers are below 256 in a and 383 in b: sums of 128 products are below 2^24, and exact in any order. Then s_t
 * is multiplied by both scales, two roundings, and added up, N and as many more as lanes of a vector are added: 5.
 * alpha, its product and the bias are 3, and 6 are for the products of errors.
 *
 * Underflow: f_t, or s_t times a scale, may be subnormal, and then be off by 2^-150 before the other factor is applied.
 * Overflow: where the sum of |alpha| (1 + |a_scale|) (1 + |b_scale|) (1 + sum |a b|) exceeds the largest f32 something
 * may be infinite, as it may where a factor is.
 *
 * The number of roundings depends on types and blocks, and so stands in the magnitude. */
typedef struct operand {
    double *value; /* rows k */
    const double *scale;
    int64_t rows, k, block, columns, row_block; /* columns: of scales */
    bool whole;
} operand;

static int64_t shape_k(const trine_ref *ref) {
    const ARGS *args = ref->args;
    return trine_ref_dim(ref, "p") * (args->format == TRINE_SCALED_E2M1_BOTH ? 2 : 1);
}

static operand operand_of(const trine_ref *ref, bool is_b) {
    const ARGS *args = ref->args;
    const trine_dtype type = trine_ref_type(ref, is_b ? "B" : "A");
    const int format = args->format;
    const int64_t bytes = trine_ref_dim(ref, is_b ? "q" : "p"), count = trine_ref_dim(ref, is_b ? "nb" : "ma");
    const bool packed = bytes < shape_k(ref), e2m1 = packed && format >= TRINE_SCALED_E2M1;
    const codes kind = { .bits = 4, .sign = type == TRINE_I8, .e2m1 = e2m1 };
    const double *from = trine_ref_value(ref, is_b ? "b" : "a");
    operand o = { .scale = trine_ref_value(ref, is_b ? "b_scale" : "a_scale"),
                  .rows = trine_ref_dim(ref, is_b ? "n" : "m"),
                  .k = shape_k(ref),
                  .columns = trine_ref_dim(ref, is_b ? "kb" : "ka"),
                  .whole = !e2m1 && (type == TRINE_I8 || type == TRINE_U8) };
    if (!o.scale) o.columns = 1;
    o.block = scaled_block(o.k, o.columns), o.row_block = scaled_block(o.rows, o.scale ? count : 1);
    o.value = malloc(sizeof *o.value * (size_t)(o.rows * o.k + 1));
    for (int64_t i = 0; i < o.rows; i++)
        for (int64_t l = 0; l < o.k; l++) {
            double x = packed ? codes_get(&kind, from + i * bytes, l) : from[i * bytes + l];
            if (is_b && o.whole) x -= args->offset;
            o.value[i * o.k + l] = x;
        }
    return o;
}

static double scale_of(const operand *o, int64_t i, int64_t l) {
    return o->scale ? o->scale[i / o->row_block * o->columns + l / o->block] : 1;
}

typedef struct total {
    long double sum;
    double size, reach, lost;
    int64_t parts;
    bool beyond, nan;
} total;

static void add_part(total *t, const operand *a, const operand *b, int64_t i, int64_t j, int64_t from, int64_t to) {
    const double f = scale_of(a, i, from), g = scale_of(b, j, from), *x = a->value + i * a->k, *y = b->value + j * b->k;
    long double sum = 0;
    double size = 0;
    for (int64_t l = from; l < to; l++) {
        sum += (long double)x[l] * y[l];
        if (x[l] != 0 && y[l] != 0)
            size += fmax(trine_finite_abs(x[l]), 0x1p-14) * fmax(trine_finite_abs(y[l]), 0x1p-14);
        t->beyond |= !isfinite(x[l]) || !isfinite(y[l]);
        t->nan |= isnan(x[l]) || isnan(y[l]);
    }
    t->sum += sum * f * g;
    t->size += size * fabs(f * g);
    t->reach += (1 + size) * (1 + fabs(f)) * (1 + fabs(g));
    t->lost += 0x1p-149 * (size + fabs(f) + fabs(g) + 1);
    t->beyond |= !isfinite(f) || !isfinite(g);
    t->nan |= isnan(f) || isnan(g);
    t->parts++;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), k = shape_k(ref);
    const trine_dtype out = trine_ref_type(ref, "O");
    const double *bias = trine_ref_value(ref, "bias");
    double *d = trine_ref_value(ref, "d"), *magnitude = trine_ref_magnitude(ref, "d"),
           *slack = trine_ref_slack(ref, "d");
    const operand a = operand_of(ref, false), b = operand_of(ref, true);
    const bool curved = args->activation > TRINE_ACTIVATION_RELU;
    const double alpha = (double)args->alpha, part = a.whole && b.whole ? 0 : fmin((double)k, SCALED_PART);

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            total t = { .beyond = bias && !isfinite(bias[j]), .nan = bias && isnan(bias[j]) };
            for (int64_t at = 0, end; at < k; at = end) {
                end = scaled_end(at, k, a.block, b.block);
                add_part(&t, &a, &b, i, j, at, end);
            }
            const double added = bias ? trine_finite_abs(bias[j]) : 0;
            const long double sum = alpha * t.sum + (bias ? bias[j] : 0);
            const int64_t at = i * n + j;
            d[at] = (double)activate(args->activation, sum);
            magnitude[at] = (2.25 * part + (double)t.parts + 16) * (fabs(alpha) * t.size + added) *
                            (curved ? 1.13 : 1) * (1 + trine_unit_roundoff(out));
            slack[at] = trine_smallest_normal(out) * trine_unit_roundoff(out) +
                        2 * (fabs(alpha) * t.lost + (double)k * 0x1p-148);
            if (curved && isfinite((double)sum)) slack[at] += 12 * 0x1p-24 * fabs((double)sum);
            if (t.beyond || !((1 + fabs(alpha)) * t.reach + added < trine_largest(TRINE_F32)))
                magnitude[at] = INFINITY, slack[at] = 0;
            if (isnan(d[at]) && !t.nan) d[at] = INFINITY;
        }
    free(a.value);
    free(b.value);
}

#define OUTPUTS(types) types " O=f32 V=f32", types " O=bf16 V=f32|bf16", types " O=f16 V=f32|f16"
#define PAIR(types) \
    OUTPUTS(types " S=f32 R=f32|bf16|f16"), OUTPUTS(types " S=e8m0 R=e8m0"), OUTPUTS(types " S=e4m3 R=e4m3")

const trine_spec trine_spec_matmul_scaled = {
    SPEC(matmul_scaled),
    .summary = "Product of matrices of few bits, with scales of their blocks, bias and activation",
    .formula = "d[i,j] = act(alpha sum_l a_scale[i/x,l/y] b_scale[j/z,l/w] a[i,l] b[j,l] + bias[j]), quotients rounded "
               "down, for blocks of x by y and z by w elements",
    .source = "Rouhani et al. 2023 (OCP Microscaling Formats 1.0); DeepSeek-AI 2024, section 3.3; Lin et al. 2024",
    .tensors = { TENSOR(a, IN, "A", "m p"), TENSOR(b, IN, "B", "n q"), TENSOR(a_scale, IN | OPTIONAL, "S", "ma ka"),
                 TENSOR(b_scale, IN | OPTIONAL, "R", "nb kb"), TENSOR(bias, IN | OPTIONAL, "V", "n"),
                 TENSOR(d, OUT, "O", "m n", .terms = "1") },
    .params = { PARAM(alpha, F32, .values = "1 0.5 -0.0 -2", .fallback = 1, .doc = "factor of all products"),
                PARAM(format, ENUM, .values = "plain e2m1 e2m1_both", .doc = "what the bytes of a and b are"),
                PARAM(offset, I32, .values = "0 8 1 128", .min = -128, .max = 255,
                      .doc = "the code of b that stands for 0, where codes are whole numbers"),
                PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", .doc = "applied last") },
    .types = { PAIR("A=e4m3|e5m2 B=e4m3|e5m2"), PAIR("A=i8 B=i8|u8"), PAIR("A=e4m3 B=i8|u8"), PAIR("A=u8 B=u8") },
    .require = { "(p - q)*(p - 2*q) == 0", "with format=e2m1: p == 2*q", "with format=e2m1: B is u8",
                 "with format=e2m1_both: p == q", "with format=e2m1_both: A is u8", "with format=e2m1_both: B is u8",
                 "with a_scale: ma >= 1", "with a_scale: ka >= 1", "with b_scale: nb >= 1", "with b_scale: kb >= 1",
                 "ma <= max(m, 1)", "ka <= max(p, 1)", "nb <= max(n, 1)", "kb <= max(q, 1)" },
    .flops = "2*m*n*max(p, q)",
    .integers_exact = true,
    .sizes = { "m: 1 0 2 3 4 5 8 16 17 33 64 150", "n: 1 0 2 3 8 17 64 100 257",
               "p: 128 0 2 30 32 64 96 100 256 384 1024", "q: 128 0 2 16 30 32 50 96 100 256 384 1024",
               "ma: 1 2 3 5 16 17 33 64 150", "ka: 1 2 3 4 8 16 32", "nb: 1 2 3 8 17 64 100 257",
               "kb: 1 2 3 4 8 16 32" },
    .cases = { "W8A8, a token: A=i8 B=i8 O=bf16 m=1 n=4096 p=4096 q=4096 ma=1 ka=1 nb=4096 kb=1 +a_scale +b_scale",
               "deepseek-v3 expert down, 1x128 by 128x128: A=e4m3 B=e4m3 O=bf16 m=4096 n=7168 p=2048 q=2048 ma=4096 "
               "ka=16 "
               "nb=56 kb=16 +a_scale +b_scale",
               "4096 7168 16384, 1x128 by 128x128: A=e4m3 B=e4m3 O=bf16 m=4096 n=7168 p=16384 q=16384 ma=4096 ka=128 "
               "nb=56 kb=128 +a_scale +b_scale",
               "MXFP8: A=e4m3 B=e4m3 O=bf16 S=e8m0 R=e8m0 m=4096 n=8192 p=8192 q=8192 ma=4096 ka=256 nb=8192 kb=256 "
               "+a_scale +b_scale",
               "MXFP4: A=u8 B=u8 O=bf16 S=e8m0 R=e8m0 m=4096 n=8192 p=4096 q=4096 ma=4096 ka=256 nb=8192 kb=256 "
               "format=e2m1_both +a_scale +b_scale",
               "NVFP4, a token: A=u8 B=u8 O=bf16 S=e4m3 R=e4m3 m=1 n=8192 p=4096 q=4096 ma=1 ka=512 nb=8192 kb=512 "
               "format=e2m1_both alpha=0.5 +a_scale +b_scale",
               "W8A8, 256 tokens: A=i8 B=i8 O=bf16 m=256 n=8192 p=8192 q=8192 ma=256 ka=1 nb=8192 kb=1 +a_scale "
               "+b_scale",
               "W4A8, a token: A=i8 B=u8 O=bf16 R=bf16 m=1 n=8192 p=8192 q=4096 ma=1 ka=1 nb=8192 kb=64 "
               "offset=8 +a_scale +b_scale",
               "W4A8, 16 tokens: A=i8 B=u8 O=bf16 R=bf16 m=16 n=8192 p=8192 q=4096 ma=16 ka=1 nb=8192 kb=64 "
               "offset=8 +a_scale +b_scale",
               "W4A8, 256 tokens: A=i8 B=u8 O=bf16 R=bf16 m=256 n=8192 p=8192 q=4096 ma=256 ka=1 nb=8192 kb=64 "
               "offset=8 +a_scale +b_scale" },
    .reference = reference,
};
