/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_packed: the table and the reference. */
#include <stdlib.h>

#include <trine/matmul.h>

#include "packed.h"
#include "table.h"

#define ARGS trine_matmul_packed_args

/* Bound: that of matmul (element.h), whose sums these are. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t g = trine_ref_dim(ref, "gb"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k"),
                  deep = packed_deep(trine_ref_type(ref, "U")), size = packed_size(k, n);
    const double *packed = trine_ref_value(ref, "packed");
    double *b = malloc(sizeof *b * (size_t)(g * k * n + 1));
    for (int64_t at = 0; at < g * k * n; at++)
        b[at] = packed[at / (k * n) * size + packed_place(at / n % k, at % n, k, deep)];
    const trine_matmul_args plain = {
        .alpha = args->alpha, .beta = args->beta, .activation = args->activation, .precision = args->precision
    };
    product_elements(ref, &plain, b);
    free(b);
}

const trine_spec trine_spec_matmul_packed = {
    SPEC(matmul_packed),
    .summary = "Matrix product whose second operand was packed before, once for many",
    .formula = "d = act(alpha a_scale b_scale a b + beta c + bias), packed being matmul_pack's of b",
    .source = "Dongarra et al. 1990 (level 3 BLAS), with the activations of Hendrycks and Gimpel 2016; Goto and van de "
              "Geijn 2008 (packing)",
    .tensors = { TENSOR(a, IN | TRANSPOSABLE, "T", "[ga] m k"), TENSOR(d, OUT, "O", "[g] m n", .terms = "k + 4"),
                 TENSOR(packed, IN, "U", "[gb] " PACKED_SHAPE), TENSOR(c, IN | OPTIONAL | BROADCAST, "O", "[g] m n"),
                 TENSOR(bias, IN | OPTIONAL, "B", "n"), TENSOR(a_scale, IN | OPTIONAL | BROADCAST, "f32", "[g] m"),
                 TENSOR(b_scale, IN | OPTIONAL | BROADCAST, "f32", "[g] n") },
    .params = { MATMUL_PARAMS },
    .types = { MATMUL_TYPES },
    .require = { "(ga - g) * (ga - 1) == 0", "(gb - g) * (gb - 1) == 0", "c -> beta" },
    .alias = { "d=c" },
    .flops = "2*g*m*n*k",
    .independent = "m",
    .integers_exact = true,
    .sizes = { "g: 1 1 1 2 3 0", "ga: 1 1 1 2 3 0", "gb: 1 1 1 2 3 0", "m: 1 0 2 3 4 5 6 7 13 16 33 64 97 200 1500",
               "n: 1 0 2 3 8 15 16 17 33 64 100 257 1500", "k: 1 0 2 3 4 5 7 8 17 31 64 129 256 257 600 1030 5000" },
    .cases = { "decode 1: T=bf16 O=bf16 m=1 n=4096 k=4096", "decode 8: T=bf16 O=bf16 m=8 n=4096 k=4096",
               "decode 1 f32: T=f32 m=1 n=4096 k=4096", "decode 1 int8: T=i8 m=1 n=4096 k=4096",
               "16 rows f32: T=f32 m=16 n=4096 k=4096", "64 rows f32: T=f32 m=64 n=4096 k=4096",
               "64 rows bf16: T=bf16 O=bf16 m=64 n=4096 k=4096", "64 rows int8: T=i8 m=64 n=4096 k=4096",
               "llama3-8b query: T=bf16 O=bf16 m=512 n=4096 k=4096",
               "llama3-8b gate: T=bf16 O=bf16 m=512 n=14336 k=4096 activation=silu",
               "gpt2 up: T=f32 m=1024 n=3072 k=768 activation=gelu_tanh +bias",
               "llama3-8b gate e4m3: T=e4m3 O=bf16 m=512 n=14336 k=4096 +a_scale +b_scale" },
    .reference = reference,
};
