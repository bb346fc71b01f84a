/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_quantized: the table and the reference. */
#include <stdlib.h>

#include <trine/matmul.h>

#include "quantized.h"

#define ARGS trine_grouped_matmul_quantized_args

/* Bound: that of matmul_quantized (spec/matmul/matmul_quantized.c) for each row, with the matrix of its expert, whose
 * sums are formed in any of the ways told there; then all is times |row_scale|, and the product with that rounds once
 * more. It may lose 3 lost max(1, |row_scale|) besides, as in grouped_matmul: what underflowed before it, times it, and
 * its own. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), e = trine_ref_dim(ref, "e"), p = trine_ref_dim(ref, "p"),
                  n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const double *x = trine_ref_value(ref, "x"), *offsets = trine_ref_value(ref, "offsets"),
                 *gather = trine_ref_value(ref, "gather"), *bias = trine_ref_value(ref, "bias"),
                 *row_scale = trine_ref_value(ref, "row_scale"), *counts = trine_ref_value(ref, "counts");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const codes kind = codes_of(ref, args->format);
    weight *row = malloc(sizeof *row * (size_t)(k + 1));

    for (int64_t at = 0; at < p * n; at++) y[at] = 0;
    for (int64_t gj = 0; gj < e * n; gj++) {
        const int64_t g = gj / n, j = gj % n, first = (int64_t)offsets[g];
        int64_t last = (int64_t)offsets[g + 1];
        if (counts && (double)(last - first) > counts[g]) last = first + (int64_t)counts[g];
        if (first >= last) continue;
        weights_of_row(row, ref, &kind, args->code_offset, gj);
        for (int64_t i = first; i < last; i++) {
            const double from = gather ? floor(gather[i] / (double)args->divide) : (double)i;
            if (from < 0 || from >= (double)r) continue;
            const quantized_result one = quantized_element(ref, x + (int64_t)from * k, row, bias ? bias + gj : NULL,
                                                           args->activation, row_scale ? row_scale + i : NULL);
            y[i * n + j] = one.value, magnitude[i * n + j] = one.magnitude, slack[i * n + j] = one.slack;
        }
    }
    free(row);
}

const trine_spec trine_spec_grouped_matmul_quantized = {
    SPEC(grouped_matmul_quantized),
    .summary = "Products of groups of rows, each group with a quantized matrix of its own",
    .formula =
        "y[i,j] = row_scale[i] act(sum_l x[s,l] w[g,j,l] + bias[g,j]) with offsets[g] <= i < offsets[g+1] and s = "
        "i, or gather[i]/divide rounded down; 0 where there is no such g or s, or counts[g] <= i - offsets[g]; "
        "w[g,j,l] "
        "= (code - code_offset - zeros[g,j,h]) scales[g,j,h] + mins[g,j,h], where code is that of weight l of row j of "
        "expert g, and h = floor(l groups / k)",
    .source = "Gale et al. 2023; Frantar et al. 2022 (GPTQ), with the zeros of Badri and Shaji 2023 (HQQ) and the "
              "minima of GGUF",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(codes, IN, "C", "e n groups bytes"),
                 TENSOR(scales, IN, "S", "e n groups"), TENSOR(zeros, IN | OPTIONAL, "S", "e n groups"),
                 TENSOR(mins, IN | OPTIONAL, "S", "e n groups"), TENSOR(offsets, IN, "i32", "e+1", .fill = "offsets p"),
                 TENSOR(gather, IN | OPTIONAL, "i32", "p", .fill = "places r"), TENSOR(bias, IN | OPTIONAL, "B", "e n"),
                 TENSOR(row_scale, IN | OPTIONAL, "f32", "p"),
                 TENSOR(counts, IN | OPTIONAL, "i32", "e", .fill = "lengths p offsets"),
                 TENSOR(y, OUT, "O", "p n", .terms = "2.25*k + groups + 17", .rounds = "33/32") },
    .params = { PARAM(divide, I64, .values = "1 2 3", .fallback = 1, .min = 0,
                      .doc = "gather counts rows of x so many times each"),
                PARAM(code_offset, I32, .values = "0 8 1 -3 128", .min = -255, .max = 255,
                      .doc = "the code that stands for 0"),
                CODES_FORMATS,
                PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", .doc = "before row_scale") },
    .types = { "T=f32 O=f32 B=f32 C=u8|i8 S=f32|f16|bf16", "T=bf16 O=bf16 B=bf16|f32 C=u8|i8 S=f32|f16|bf16",
               "T=bf16 O=f32 B=f32 C=u8|i8 S=f32|f16|bf16", "T=f16 O=f16 B=f16|f32 C=u8|i8 S=f32|f16|bf16",
               "T=f16 O=f32 B=f32 C=u8|i8 S=f32|f16|bf16" },
    .require = { "without gather: r == p", CODES_REQUIRE },
    .flops = "2*p*n*k",
    .sizes = { "r: 1 0 2 5 16 33 64 97 200", "e: 1 2 0 3 8 17", "p: 1 0 2 5 16 33 64 97 200",
               "n: 1 0 2 3 8 17 33 64 100 257", "k: 128 1 0 8 32 64 96 100 256 512 1024", "groups: 1 2 4 8 32",
               "bytes: 16 4 8 12 20 24 28 32 48 64 80 96 112 128" },
    .cases = { "mixtral up 16 tokens, 4 bits: T=bf16 O=bf16 r=16 e=8 p=32 n=14336 k=4096 groups=32 bytes=64 S=bf16 "
               "code_offset=8 divide=2 activation=silu +gather",
               "mixtral up, 4 bits: T=bf16 O=bf16 r=4096 e=8 p=8192 n=14336 k=4096 groups=32 bytes=64 S=bf16 "
               "code_offset=8 divide=2 activation=silu +gather",
               "qwen3 up 16 tokens, 4 bits: T=bf16 O=bf16 r=16 e=128 p=128 n=768 k=2048 groups=16 bytes=64 S=f16 "
               "divide=8 activation=silu +gather +zeros",
               "qwen3 up, 4 bits: T=bf16 O=bf16 r=4096 e=128 p=32768 n=768 k=2048 groups=16 bytes=64 S=f16 divide=8 "
               "activation=silu +gather +zeros",
               "qwen3 up, 8 bits: T=bf16 O=bf16 r=512 e=128 p=4096 n=768 k=2048 groups=1 bytes=2048 C=i8 S=f32 "
               "divide=8 activation=silu +gather",
               "gpt-oss up 16 tokens, e2m1: T=bf16 O=bf16 B=bf16 r=16 e=32 p=64 n=5760 k=2880 groups=90 bytes=16 "
               "S=bf16 format=e2m1 divide=4 +gather +bias",
               "gpt-oss down 16 tokens, e2m1: T=bf16 O=bf16 B=bf16 r=64 e=32 p=64 n=2880 k=2880 groups=90 bytes=16 "
               "S=bf16 format=e2m1 +bias +row_scale" },
    .reference = reference,
};
