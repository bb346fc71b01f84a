/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_quantized: the table and the reference. */
#include <stdlib.h>

#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_all_reduce_quantized_args

/* Every operation is f32's, rounded once, and none is fused to another: so results are exact. A product that the
 * compiler does not fuse to a sum: */
static float times(float a, float b) {
    const volatile float product = a * b;
    return product;
}

/* A block as codes, and what those stand for in its place. */
static void through_codes(float *block, int64_t count, trine_dtype C) {
    const float largest = C == TRINE_I8 ? 127 : (float)trine_largest(C);
    float most = 0;
    for (int64_t j = 0; j < count; j++)
        if (!(fabsf(block[j]) <= most)) most = isfinite(block[j]) && !isnan(most) ? fabsf(block[j]) : NAN;
    const float scale = most / largest;
    for (int64_t j = 0; j < count; j++) {
        const float q = scale > 0 ? block[j] / scale + 0.0f : 0; /* + 0: no code is -0 of -0 */
        const double code = C == TRINE_I8 ? (int)rintf(fminf(fmaxf(q, -128), 127)) : trine_round(q, C, true);
        block[j] = times((float)code, scale);
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n"), block = args->block;
    const trine_dtype T = trine_ref_type(ref, "T"), C = args->codes == TRINE_RANKS_I8 ? TRINE_I8 : TRINE_E4M3;
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y");
    float *sum = malloc(2 * sizeof *sum * (size_t)block), *own = sum + block;
    for (int64_t at = 0; at < n; at += block) {
        const int64_t count = n - at < block ? n - at : block;
        for (int64_t i = 0; i < ranks; i++) {
            for (int64_t j = 0; j < count; j++) own[j] = (float)x[i * n + at + j];
            through_codes(own, count, C);
            for (int64_t j = 0; j < count; j++) sum[j] = i == 0 ? own[j] : sum[j] + own[j];
        }
        through_codes(sum, count, C);
        for (int64_t r = 0; r < ranks; r++)
            for (int64_t j = 0; j < count; j++) y[r * n + at + j] = trine_round(sum[j], T, false);
    }
    free(sum);
}

const trine_spec trine_spec_all_reduce_quantized = {
    SPEC(all_reduce_quantized),
    .summary = "The sum of all ranks' elements, which travel as codes of 8 bits with a scale for each block",
    .formula =
        "s = (c(x[0]) + c(x[1])) + ...; y[r] = c(s) for every rank r; c of a block of elements: scale = max |x| / "
        "most, round(x/scale) scale, most being 127 of i8, 448 of e4m3",
    .source = "Wang et al. 2023 (ZeRO++), section 3.3",
    .tensors = { TENSOR(x, IN, "T", "ranks n"), TENSOR(y, OUT | EXACT, "T", "ranks n") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(block, I32, .values = "128 32 64 256 1024", .fallback = 128, .min = 8, .max = 1024,
                      .doc = "elements with a scale of their own, a power of two"),
                PARAM(codes, ENUM, .values = "i8 e4m3", .doc = "TRINE_RANKS_I8 or TRINE_RANKS_E4M3") },
    .types = { "T=f32|bf16|f16" },
    .require = { "ranks > 0", "ranks <= 64" },
    .alias = { "y=x" },
    .flops = "6*ranks*n",
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 8 128 130 1000 5000 70000" },
    .cases = { "gradients, 2 ranks: T=f32 ranks=2 n=16777216", "gradients: T=f32 ranks=4 n=16777216",
               "gradients, bf16: T=bf16 ranks=4 n=16777216 codes=e4m3", "activations: T=bf16 ranks=4 n=131072" },
    .reference = reference,
};
