/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled: the table and the reference. */
#include "element.h"

#define ARGS trine_matmul_scaled_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), p = trine_ref_dim(ref, "p"),
                  k = p * (args->format == TRINE_SCALED_E2M1_BOTH ? 2 : 1);
    const trine_dtype type_a = trine_ref_type(ref, "A"), type_b = trine_ref_type(ref, "B");
    const double *bias = trine_ref_value(ref, "bias");
    double *d = trine_ref_value(ref, "d"), *magnitude = trine_ref_magnitude(ref, "d"),
           *slack = trine_ref_slack(ref, "d");
    const operand a = operand_of(&(operand_place){ .data = trine_ref_value(ref, "a"),
                                                   .scale = trine_ref_value(ref, "a_scale"),
                                                   .rows = m,
                                                   .bytes = p,
                                                   .scale_rows = trine_ref_dim(ref, "ma"),
                                                   .scale_columns = trine_ref_dim(ref, "ka"),
                                                   .type = type_a,
                                                   .other = type_b },
                                 k, args->format),
                  b = operand_of(&(operand_place){ .data = trine_ref_value(ref, "b"),
                                                   .scale = trine_ref_value(ref, "b_scale"),
                                                   .rows = n,
                                                   .bytes = trine_ref_dim(ref, "q"),
                                                   .scale_rows = trine_ref_dim(ref, "nb"),
                                                   .scale_columns = trine_ref_dim(ref, "kb"),
                                                   .type = type_b,
                                                   .other = type_a,
                                                   .offset = args->offset,
                                                   .is_b = true },
                                 k, args->format);

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const scaled_finish finish = { .alpha = (double)args->alpha,
                                           .bias = bias ? bias + j : NULL,
                                           .activation = args->activation,
                                           .out = trine_ref_type(ref, "O") };
            const scaled_result one = scaled_element(&a, &b, i, j, &finish);
            d[i * n + j] = one.value, magnitude[i * n + j] = one.magnitude, slack[i * n + j] = one.slack;
        }
    free(a.value);
    free(b.value);
}

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
    .types = { SCALED_TYPES },
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
