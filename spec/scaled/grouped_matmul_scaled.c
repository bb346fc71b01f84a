/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_scaled: the table and the reference. */
#include "element.h"

#define ARGS trine_grouped_matmul_scaled_args

/* Bound: that of matmul_scaled (spec/scaled/element.h) for each row, with the matrix of its group and group_scale as
 * alpha; then all is times |row_scale|, and the product with that rounds once more. What underflows there, or did
 * before it, times it, is 2^-147 max(1, |row_scale|) at most. */
static operand matrix_of(const trine_ref *ref, int64_t g, int64_t k) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n"), q = trine_ref_dim(ref, "q"), nb = trine_ref_dim(ref, "nb"),
                  kb = trine_ref_dim(ref, "kb");
    const double *scale = trine_ref_value(ref, "w_scale");
    return operand_of(&(operand_place){ .data = trine_ref_value(ref, "w") + g * n * q,
                                        .scale = scale ? scale + g * nb * kb : NULL,
                                        .rows = n,
                                        .bytes = q,
                                        .scale_rows = nb,
                                        .scale_columns = kb,
                                        .type = trine_ref_type(ref, "B"),
                                        .other = trine_ref_type(ref, "A"),
                                        .offset = args->code_offset,
                                        .is_b = true },
                      k, args->format);
}

/* Rows [first, last) of y, of group g. */
static void group_rows(trine_ref *ref, const operand *x, int64_t g, int64_t first, int64_t last) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n");
    const double *gather = trine_ref_value(ref, "gather"), *bias = trine_ref_value(ref, "bias"),
                 *row_scale = trine_ref_value(ref, "row_scale"), *group_scale = trine_ref_value(ref, "group_scale");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const operand w = matrix_of(ref, g, x->k);
    for (int64_t i = first; i < last; i++) {
        const double from = gather ? floor(gather[i] / (double)args->divide) : (double)i;
        if (from < 0 || from >= (double)x->rows) continue;
        for (int64_t j = 0; j < n; j++) {
            const scaled_finish finish = { .alpha = group_scale ? group_scale[g] : 1,
                                           .bias = bias ? bias + g * n + j : NULL,
                                           .factor = row_scale ? row_scale + i : NULL,
                                           .activation = args->activation,
                                           .out = trine_ref_type(ref, "O") };
            const scaled_result one = scaled_element(x, &w, (int64_t)from, j, &finish);
            y[i * n + j] = one.value, magnitude[i * n + j] = one.magnitude, slack[i * n + j] = one.slack;
        }
    }
    free(w.value);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t e = trine_ref_dim(ref, "e"), p = trine_ref_dim(ref, "p"), n = trine_ref_dim(ref, "n"),
                  bytes = trine_ref_dim(ref, "k");
    const double *offsets = trine_ref_value(ref, "offsets"), *counts = trine_ref_value(ref, "counts");
    double *y = trine_ref_value(ref, "y");
    const operand x = operand_of(&(operand_place){ .data = trine_ref_value(ref, "x"),
                                                   .scale = trine_ref_value(ref, "x_scale"),
                                                   .rows = trine_ref_dim(ref, "r"),
                                                   .bytes = bytes,
                                                   .scale_rows = trine_ref_dim(ref, "ra"),
                                                   .scale_columns = trine_ref_dim(ref, "ka"),
                                                   .type = trine_ref_type(ref, "A"),
                                                   .other = trine_ref_type(ref, "B") },
                                 bytes * (args->format == TRINE_SCALED_E2M1_BOTH ? 2 : 1), args->format);

    for (int64_t at = 0; at < p * n; at++) y[at] = 0;
    for (int64_t g = 0; g < e; g++) {
        const int64_t first = (int64_t)offsets[g];
        int64_t last = (int64_t)offsets[g + 1];
        if (counts && (double)(last - first) > counts[g]) last = first + (int64_t)counts[g];
        if (first < last) group_rows(ref, &x, g, first, last);
    }
    free(x.value);
}

const trine_spec trine_spec_grouped_matmul_scaled = {
    SPEC(grouped_matmul_scaled),
    .summary = "Products of groups of rows, each with a matrix of its own, of few bits with scales of their blocks",
    .formula =
        "y[i,j] = row_scale[i] act(group_scale[g] sum_l x_scale[s/a,l/b] w_scale[g,j/c,l/d] x[s,l] w[g,j,l] + "
        "bias[g,j]) with offsets[g] <= i < offsets[g+1] and s = i, or gather[i]/divide, quotients rounded down, for "
        "blocks of a by b and c by d elements; 0 where there is no such g or s, or counts[g] <= i - offsets[g]",
    .source = "Gale et al. 2023; DeepSeek-AI 2024, section 3.3; Rouhani et al. 2023 (OCP Microscaling Formats 1.0)",
    .tensors = { TENSOR(x, IN, "A", "r k"), TENSOR(w, IN, "B", "e n q"),
                 TENSOR(offsets, IN, "i32", "e+1", .fill = "offsets p"), TENSOR(x_scale, IN | OPTIONAL, "S", "ra ka"),
                 TENSOR(w_scale, IN | OPTIONAL, "R", "e nb kb"), TENSOR(group_scale, IN | OPTIONAL, "f32", "e"),
                 TENSOR(gather, IN | OPTIONAL, "i32", "p", .fill = "places r"), TENSOR(bias, IN | OPTIONAL, "V", "e n"),
                 TENSOR(row_scale, IN | OPTIONAL, "f32", "p"),
                 TENSOR(counts, IN | OPTIONAL, "i32", "e", .fill = "lengths p offsets"),
                 TENSOR(y, OUT, "O", "p n", .terms = "1") },
    .params = { PARAM(divide, I64, .values = "1 2 3", .fallback = 1, .min = 0,
                      .doc = "gather counts rows of x so many times each"),
                PARAM(format, ENUM, .values = "plain e2m1 e2m1_both", .doc = "what the bytes of x and w are"),
                PARAM(code_offset, I32, .values = "0 8 1 128", .min = -128, .max = 255,
                      .doc = "the code of w that stands for 0, where codes are whole numbers"),
                PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", .doc = "before row_scale") },
    .types = { SCALED_TYPES },
    .require = { "without gather: r == p", "(k - q)*(k - 2*q) == 0", "with format=e2m1: k == 2*q",
                 "with format=e2m1: B is u8", "with format=e2m1_both: k == q", "with format=e2m1_both: A is u8",
                 "with format=e2m1_both: B is u8", "with x_scale: ra >= 1", "with x_scale: ka >= 1",
                 "with w_scale: nb >= 1", "with w_scale: kb >= 1", "ra <= max(r, 1)", "ka <= max(k, 1)",
                 "nb <= max(n, 1)", "kb <= max(q, 1)" },
    .flops = "2*p*n*max(k, q)",
    .integers_exact = true,
    .sizes = { "r: 1 0 2 5 16 33 64 97 200", "e: 1 2 0 3 8 17", "p: 1 0 2 5 16 33 64 97 200",
               "n: 1 0 2 3 8 17 64 100 257", "k: 128 0 2 30 32 64 96 100 256 384",
               "q: 128 0 2 16 30 32 50 96 100 256 384", "ra: 1 2 3 5 16 33 64 97 200", "ka: 1 2 3 4 8 16",
               "nb: 1 2 3 8 17 64 100 257", "kb: 1 2 3 4 8 16" },
    .cases = { "deepseek-v3 up 16 tokens, 1x128 by 128x128: A=e4m3 B=e4m3 O=bf16 r=16 e=32 p=128 n=2048 k=7168 q=7168 "
               "ra=16 ka=56 nb=16 kb=56 divide=8 activation=silu +x_scale +w_scale +gather",
               "deepseek-v3 up, 1x128 by 128x128: A=e4m3 B=e4m3 O=bf16 r=512 e=32 p=4096 n=2048 k=7168 q=7168 ra=512 "
               "ka=56 nb=16 kb=56 divide=8 activation=silu +x_scale +w_scale +gather",
               "deepseek-v3 down, 1x128 by 128x128: A=e4m3 B=e4m3 O=bf16 r=4096 e=32 p=4096 n=7168 k=2048 q=2048 "
               "ra=4096 ka=16 nb=56 kb=16 +x_scale +w_scale",
               "qwen3 up 16 tokens, MXFP8: A=e4m3 B=e4m3 O=bf16 S=e8m0 R=e8m0 r=16 e=128 p=128 n=768 k=2048 q=2048 "
               "ra=16 ka=64 nb=768 kb=64 divide=8 activation=silu +x_scale +w_scale +gather",
               "gpt-oss up 16 tokens, MXFP4: A=u8 B=u8 O=bf16 S=e8m0 R=e8m0 V=f32 r=16 e=32 p=64 n=5760 k=1440 q=1440 "
               "ra=16 ka=90 nb=5760 kb=90 format=e2m1_both divide=4 +x_scale +w_scale +gather +bias",
               "qwen3 down, groups of a capacity, NVFP4: A=u8 B=u8 O=bf16 S=e4m3 R=e4m3 r=4096 e=128 p=4096 n=2048 "
               "k=384 q=384 ra=4096 ka=48 nb=2048 kb=48 format=e2m1_both +x_scale +w_scale +group_scale +row_scale "
               "+counts",
               "mixtral up 16 tokens, W4A8: A=i8 B=u8 O=bf16 R=bf16 r=16 e=8 p=32 n=14336 k=4096 q=2048 ra=16 ka=1 "
               "nb=14336 kb=32 code_offset=8 divide=2 activation=silu +x_scale +w_scale +gather" },
    .reference = reference,
};
