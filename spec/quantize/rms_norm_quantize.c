/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_quantize: the table and the reference. */
#include <stdlib.h>

#include <trine/quantize.h>

#include "rms_rows.h"

#define ARGS trine_rms_norm_quantize_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k");
    const double *x = trine_ref_value(ref, "x"), *residual = trine_ref_value(ref, "residual"),
                 *weight = trine_ref_value(ref, "weight");
    double *y = trine_ref_value(ref, "y"), *residual_out = trine_ref_value(ref, "residual_out");
    float *h = malloc(sizeof *h * (size_t)(k + 1));

    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < k; j++) h[j] = (float)x[i * k + j];
        for (int64_t j = 0; j < k && residual; j++) h[j] += (float)residual[i * k + j];
        for (int64_t j = 0; j < k && residual_out; j++)
            residual_out[i * k + j] = trine_round(h[j], trine_ref_type(ref, "R"), false);
        rms_row(h, k, weight, args->weight_offset, args->eps);
        for (int64_t j = 0; j < k && y; j++) y[i * k + j] = trine_round(h[j], trine_ref_type(ref, "T"), false);
        row_codes(ref, i, h, args->powers == TRINE_POWERS_ALL, args->upward);
    }
    free(h);
}

const trine_spec trine_spec_rms_norm_quantize = {
    SPEC(rms_norm_quantize),
    .summary = "rms_norm of x + residual as codes of 8 bits, with a scale for each group",
    .formula = "h = x + residual; y = h (weight + weight_offset)/sqrt(mean h^2 + eps) of a row; scale = max |y| / most "
               "over a group of k/groups; codes = round(y/scale), most being 127 of i8, 448 of e4m3, 57344 of e5m2; "
               "residual_out = h; a scale of e8m0 is 2^(floor(log2(max |y|)) - floor(log2(most))), or rounded up",
    .source = "Zhang and Sennrich 2019, eq. 4; Jacob et al. 2018, section 2.1; Micikevicius et al. 2022 (float8)",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(weight, IN | OPTIONAL, "W", "k"),
                 TENSOR(residual, IN | OPTIONAL, "R", "r k"), TENSOR(codes, OUT | EXACT, "C", "r k"),
                 TENSOR(scales, OUT | EXACT, "S", "r groups"), TENSOR(y, OUT | OPTIONAL | EXACT, "T", "r k"),
                 TENSOR(residual_out, OUT | OPTIONAL | EXACT, "R", "r k") },
    .params = { PARAM(eps, F32, .values = "1e-6 -0", .fallback = 1e-6, .min = 0, .max = 0x1.fffffep127,
                      .doc = "added to the mean square"),
                PARAM(weight_offset, F32, .values = "0 1", .doc = "added to weight, where that is given; Gemma has 1"),
                PARAM(upward, BOOL, .values = "0 1",
                      .doc = "1: powers of two are rounded up, so that no number is clamped"),
                PARAM(powers, ENUM, .values = "e8m0 all", .doc = "which scales are powers of two") },
    .types = { "T=f32 R=f32 W=f32 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0",
               "T=bf16 R=bf16|f32 W=bf16|f32 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0",
               "T=f16 R=f16|f32 W=f16|f32 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0" },
    .require = { "k % max(groups, 1) == 0", "k <= k*groups" },
    .alias = { "residual_out=residual" },
    .flops = "12*r*k",
    .independent = "r",
    .sizes = { "r: 1 0 2 5 33", "k: 1 0 2 8 24 48 120 128 136 384 512 513 1000 2048 2056 4096 6144 20008",
               "groups: 1 2 0 3 4 8 16 32" },
    .cases = { "a token's scale: T=bf16 R=bf16 W=bf16 C=i8 S=f32 r=8192 k=4096 groups=1 +weight +residual "
               "+residual_out",
               "float8 by 128: T=bf16 R=bf16 W=bf16 C=e4m3 S=f32 r=8192 k=4096 groups=32 +weight +residual "
               "+residual_out",
               "mxfp8: T=bf16 R=bf16 W=bf16 C=e4m3 S=e8m0 r=8192 k=4096 groups=128 +weight +residual +residual_out",
               "alone: T=bf16 R=bf16 W=bf16 C=e4m3 S=f32 r=8192 k=4096 groups=1 +weight",
               "f32: T=f32 R=f32 W=f32 C=i8 S=f32 r=4096 k=4096 groups=1 +weight +residual +residual_out",
               "decode: T=bf16 R=bf16 W=bf16 C=e4m3 S=f32 r=8 k=8192 groups=64 +weight +residual +residual_out" },
    .reference = reference,
};
