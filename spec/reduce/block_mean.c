/* SPDX-License-Identifier: Apache-2.0 */
/* block_mean: the table and the reference. */
#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_block_mean_args

/* Bound, with u = 2^-24: a sum of c <= size elements in any order is off by (c - 1) u of the sum of absolute values at
 * most (Higham 2002, section 4.2), and the quotient by 2u more, as a product with a rounded reciprocal. In units of the
 * mean of the absolute values that is c + 2, which the output's rounding and the second order leave within one more; c
 * is in the magnitude, since it is no symbol. Sums of f32 do not underflow; the product may. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t b = trine_ref_dim(ref, "b"), s = trine_ref_dim(ref, "s"), n = trine_ref_dim(ref, "n"),
                  blocks = trine_ref_dim(ref, "blocks");
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < b * blocks; i++) {
        const int64_t block = i % blocks, first = block <= s / args->size ? block * args->size : s,
                      end = args->size < s - first ? first + args->size : s;
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t k = first; k < end; k++) {
                sum += x[(i / blocks * s + k) * n + j];
                size += trine_finite_abs(x[(i / blocks * s + k) * n + j]);
            }
            const double count = (double)(end - first);
            const int64_t at = i * n + j;
            y[at] = end > first ? sum / count : 0;
            slack[at] = 0x1p-150;
            magnitude[at] = size > trine_largest(TRINE_F32) ? INFINITY
                            : end > first && isfinite(sum)  ? size * (1 + 3 / count)
                                                            : 0;
        }
    }
}

const trine_spec trine_spec_block_mean = {
    SPEC(block_mean),
    .summary = "The means of blocks of rows",
    .formula = "y[b,i,j] = mean of x[b,k,j] over k in [i size, min((i+1) size, s)), 0 where that is empty",
    .source = "Lu et al. 2025, section 2.2",
    .tensors = { TENSOR(x, IN, "T", "[b] s n"), TENSOR(y, OUT, "W", "[b] blocks n", .terms = "1") },
    .params = { PARAM(size, I64, .values = "64 1 3 512", .min = 1,
                      .doc = "rows of a block; the last one may have fewer") },
    .types = { "T=f32|bf16|f16 W=f32", "T=bf16 W=bf16", "T=f16 W=f16" },
    .flops = "b*s*n",
    .independent = "b",
    .sizes = { "b: 1 0 3", "s: 130 0 1 2 7 512 1000", "n: 64 1 7 128 257 1024", "blocks: 3 0 1 2 10 130" },
    .cases = { "moba: T=bf16 W=bf16 b=1 s=65536 n=1024 blocks=128 size=512",
               "moba f32: T=bf16 W=f32 b=4 s=8192 n=1024 blocks=16 size=512",
               "small blocks: T=bf16 W=bf16 b=1 s=65536 n=1024 blocks=1024 size=64",
               "f32: T=f32 W=f32 b=1 s=32768 n=512 blocks=512 size=64" },
    .reference = reference,
};
