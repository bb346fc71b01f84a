/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized: the table and the reference. */
#include <stdlib.h>

#include <trine/matmul.h>

#include "quantized.h"

#define ARGS trine_matmul_quantized_args

/* Bound. w = (code - offset - zero) scale + min, W = (|code - offset| + |zero|) |scale| + |min|, M = sum_l |x_l| W_l +
 * |bias|, u = 2^-24.
 *
 * A kernel forms w in f32: code - offset is exact, and its difference to zero, the product and min's addition round.
 * Then it adds up the products. Or it adds up x (code - offset), and x, over a group, and multiplies those sums by
 * scale and min - scale zero, whose sums over the groups follow. Each term goes through at most k + groups + 8
 * roundings either way. Where w is rounded to x's type in between, for units that multiply by it, that is u(T) W more:
 * `rounds`, with 1/32 for the rounding of what is already off. Those units cut where others round, as
 * spec/matmul/element.h says: 2.25 k of k, an operand counting as its type's smallest normal at least. An activation
 * and the last rounding are as there.
 *
 * Underflow: what forms w may lose 3 2^-150, or 2^-25 where w is rounded to f16, and the units for bf16 take operands
 * below 2^-126, and sums, for zero: so much of each |x|, and of each W, is lost. Overflow: where sum |x| (1 + W) with
 * each factor of W taken as 1 at least exceeds the largest f32, or W the largest of x's type, something may be
 * infinite. And an Inf may come to be taken from itself: it gives Inf or NaN. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const double *x = trine_ref_value(ref, "x"), *bias = trine_ref_value(ref, "bias");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const codes kind = codes_of(ref, args->format);
    weight *row = malloc(sizeof *row * (size_t)(k + 1));

    for (int64_t j = 0; j < n; j++) {
        weights_of_row(row, ref, &kind, args->offset, j);
        for (int64_t i = 0; i < m; i++) {
            const int64_t at = i * n + j;
            const quantized_result r =
                quantized_element(ref, x + i * k, row, bias ? bias + j : NULL, args->activation, NULL);
            y[at] = r.value, magnitude[at] = r.magnitude, slack[at] = r.slack;
        }
    }
    free(row);
}

const trine_spec trine_spec_matmul_quantized = {
    SPEC(matmul_quantized),
    .summary = "Product with a quantized matrix of weights, with bias and activation",
    .formula = "y[i,j] = act(sum_l x[i,l] w[j,l] + bias[j]), w[j,l] = (code - offset - zeros[j,g]) scales[j,g] + "
               "mins[j,g], where code is that of weight l of row j, and g = floor(l groups / k) its group",
    .source = "Frantar et al. 2022 (GPTQ), with the zeros of Badri and Shaji 2023 (HQQ) and the minima of GGUF",
    .tensors = { TENSOR(x, IN, "T", "m k"), TENSOR(codes, IN, "C", "n groups bytes"),
                 TENSOR(scales, IN, "S", "n groups"), TENSOR(zeros, IN | OPTIONAL, "S", "n groups"),
                 TENSOR(mins, IN | OPTIONAL, "S", "n groups"), TENSOR(bias, IN | OPTIONAL, "B", "n"),
                 TENSOR(y, OUT, "O", "m n", .terms = "2.25*k + groups + 16", .rounds = "33/32") },
    .params = { PARAM(offset, I32, .values = "0 8 1 -3 128", .min = -255, .max = 255,
                      .doc = "the code that stands for 0"),
                CODES_FORMATS,
                PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", .doc = "applied last") },
    .types = { "T=f32 O=f32 B=f32 C=u8|i8 S=f32|f16|bf16", "T=bf16 O=bf16 B=bf16|f32 C=u8|i8 S=f32|f16|bf16",
               "T=bf16 O=f32 B=f32 C=u8|i8 S=f32|f16|bf16", "T=f16 O=f16 B=f16|f32 C=u8|i8 S=f32|f16|bf16",
               "T=f16 O=f32 B=f32 C=u8|i8 S=f32|f16|bf16" },
    .require = { CODES_REQUIRE },
    .flops = "2*m*n*k",
    .independent = "m",
    .sizes = { "m: 1 0 2 3 4 5 8 16 17 33 64 200", "n: 1 0 2 3 8 17 64 100 257 1500",
               "k: 128 1 0 8 32 64 96 100 256 512 1024 4096", "groups: 1 2 4 8 32",
               "bytes: 16 4 8 12 20 24 28 32 48 64 80 96 112 128" },
    .cases = { "llama3-8b query, 4 bits: T=bf16 m=1 n=4096 k=4096 groups=32 bytes=64 S=bf16 offset=8",
               "llama3-8b gate, 4 bits: T=bf16 m=1 n=14336 k=4096 groups=32 bytes=64 S=bf16 offset=8",
               "llama3-8b gate, 4 bits, 16 rows: T=bf16 m=16 n=14336 k=4096 groups=32 bytes=64 S=bf16 offset=8",
               "llama3-8b gate, 4 bits, 64 rows: T=bf16 m=64 n=14336 k=4096 groups=32 bytes=64 S=bf16 offset=8",
               "llama3-8b gate, 4 bits, prompt: T=bf16 m=2048 n=14336 k=4096 groups=32 bytes=64 S=bf16 offset=8",
               "square 8192, 4 bits: T=f16 m=1 n=8192 k=8192 groups=64 bytes=64 S=f16 +zeros",
               "square 8192, 8 bits: T=bf16 m=1 n=8192 k=8192 groups=1 bytes=8192 C=i8",
               "square 8192, 3 bits: T=f16 m=1 n=8192 k=8192 groups=64 bytes=48 S=f16 +zeros",
               "square 8192, 2 bits: T=bf16 m=1 n=8192 k=8192 groups=1 bytes=2048 offset=1",
               "square 8192, e2m1: T=bf16 m=1 n=8192 k=8192 groups=256 bytes=16 S=f32 format=e2m1",
               "GGUF's Q4_1: T=f32 m=1 n=1536 k=576 groups=18 bytes=16 S=f16 +mins",
               "GGUF's Q8_0: T=f32 m=1 n=1536 k=576 groups=18 bytes=32 C=i8 S=f16" },
    .reference = reference,
};
