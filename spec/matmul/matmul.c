/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: the table and the reference. */
#include <trine/matmul.h>

#include "table.h"

#define ARGS trine_matmul_args

static void reference(trine_ref *ref) { product_elements(ref, ref->args, trine_ref_value(ref, "b")); }

const trine_spec trine_spec_matmul = {
    SPEC(matmul),
    .summary = "Matrix product, batched, with scales, addition, bias and activation",
    .formula = "d = act(alpha a_scale b_scale a b + beta c + bias)",
    .source = "Dongarra et al. 1990 (level 3 BLAS), with the activations of Hendrycks and Gimpel 2016",
    .tensors = { TENSOR(a, IN | TRANSPOSABLE, "T", "[ga] m k"), TENSOR(b, IN | TRANSPOSABLE, "U", "[gb] k n"),
                 TENSOR(c, IN | OPTIONAL | BROADCAST, "O", "[g] m n"), TENSOR(bias, IN | OPTIONAL, "B", "n"),
                 TENSOR(d, OUT, "O", "[g] m n", .terms = "k + 4"),
                 TENSOR(a_scale, IN | OPTIONAL | BROADCAST, "f32", "[g] m"),
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
    .cases = { "square 1024: T=f32 m=1024 n=1024 k=1024",
               "square 2048: T=f32 m=2048 n=2048 k=2048",
               "square 4096: T=f32 m=4096 n=4096 k=4096",
               "square 2048 bf16: T=bf16 O=bf16 m=2048 n=2048 k=2048",
               "square 1024 f16: T=f16 O=f16 m=1024 n=1024 k=1024",
               "square 2048 int8: T=i8 m=2048 n=2048 k=2048",
               "square 1024 f64: T=f64 m=1024 n=1024 k=1024",
               "llama3-8b query: T=bf16 O=bf16 m=512 n=4096 k=4096",
               "llama3-8b gate: T=bf16 O=bf16 m=512 n=14336 k=4096 activation=silu",
               "llama3-8b down: T=bf16 O=bf16 B=bf16 m=512 n=4096 k=14336 beta=1 +c",
               "gpt2 up: T=f32 m=1024 n=3072 k=768 activation=gelu_tanh +bias",
               "decode 1: T=bf16 O=bf16 m=1 n=4096 k=4096",
               "decode 8: T=bf16 O=bf16 m=8 n=4096 k=4096",
               "decode 1 f32: T=f32 m=1 n=4096 k=4096",
               "decode 1 int8: T=i8 m=1 n=4096 k=4096",
               "scores: T=f32 g=64 ga=64 gb=64 m=256 n=256 k=64",
               "tiny: T=f32 m=32 n=32 k=32",
               "weight gradient: T=f32 m=256 n=256 k=16384",
               "square 4096 e4m3: T=e4m3 O=bf16 m=4096 n=4096 k=4096 b=transposed a_scale=broadcast b_scale=broadcast",
               "square 4096 e5m2 by e4m3: T=e5m2 O=bf16 m=4096 n=4096 k=4096 b=transposed a_scale=broadcast "
               "b_scale=broadcast",
               "square 4096 e4m3 row-major: T=e4m3 O=bf16 m=4096 n=4096 k=4096",
               "llama3-8b gate e4m3: T=e4m3 O=bf16 m=512 n=14336 k=4096 +a_scale +b_scale b=transposed",
               "decode 1 e4m3: T=e4m3 O=bf16 m=1 n=4096 k=4096 b=transposed",
               "square 4096 tf32: T=f32 m=4096 n=4096 k=4096 precision=tf32" },
    .reference = reference,
};
