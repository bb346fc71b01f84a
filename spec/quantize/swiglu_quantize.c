/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_quantize: the table and the reference. */
#include <stdlib.h>

#include <trine/quantize.h>

#include "rows.h"

#define ARGS trine_swiglu_quantize_args

/* e^-a for a >= 0, as the header spells it out. */
static float exp_minus(float a) {
    const float z = a < 105 ? -a : -105, n = rintf(row_times(z, 1.44269504f)),
                r = (z - row_times(n, 0x1.63p-1f)) - row_times(n, -2.12194440e-4f);
    static const float coefficient[] = { 1.38186966e-3f, 8.36871564e-3f, 4.16682921e-2f, 1.66665211e-1f,
                                         4.99999940e-1f };
    float p = coefficient[0];
    for (int i = 1; i < 5; i++) p = row_times(p, r) + coefficient[i];
    const float e = (row_times(row_times(r, r), p) + r) + 1;
    const int power = (int)n;
    return e * ldexpf(1, power >> 1) * ldexpf(1, power - (power >> 1));
}

/* x/(1 + e^-v) by the power of -|v|. */
static float gated(float x, float v) {
    const float e = isnan(v) ? NAN : exp_minus(fabsf(v));
    return row_times(x, (v < 0 ? e : 1) / (1 + e));
}

static float activated(int32_t activation, float x) {
    if (activation == TRINE_GATE_SILU) return gated(x, x);
    const float cube = row_times(row_times(x, x), 7.13548139e-2f) + 1.59576917f;
    return gated(x, row_times(x, cube));
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k");
    const double *gate = trine_ref_value(ref, "gate"), *up = trine_ref_value(ref, "up"),
                 *factor = trine_ref_value(ref, "factor");
    double *y = trine_ref_value(ref, "y");
    float *row = malloc(sizeof *row * (size_t)(k + 1));

    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < k; j++) {
            row[j] = activated(args->activation, (float)gate[i * k + j]) * (float)up[i * k + j];
            if (factor) row[j] *= (float)factor[j];
            if (y) y[i * k + j] = trine_round(row[j], trine_ref_type(ref, "T"), false);
        }
        row_codes(ref, i, row, args->powers == TRINE_POWERS_ALL, args->upward);
    }
    free(row);
}

const trine_spec trine_spec_swiglu_quantize = {
    SPEC(swiglu_quantize),
    .summary = "swiglu or geglu as codes of 8 bits, with a scale for each group",
    .formula = "y = a(gate) up factor; a(x) = x sigmoid(x), or x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)); scale = max "
               "|y| / most over a group of k/groups; codes = round(y/scale), most being 127 of i8, 448 of e4m3, 57344 "
               "of e5m2; a scale of e8m0 is 2^(floor(log2(max |y|)) - floor(log2(most))), or rounded up",
    .source = "Shazeer 2020, eq. 6; Jacob et al. 2018, section 2.1; Micikevicius et al. 2022 (float8); factor: Xiao et "
              "al. 2023 (SmoothQuant), eq. 3",
    .tensors = { TENSOR(gate, IN, "T", "r k"), TENSOR(up, IN, "T", "r k"), TENSOR(factor, IN | OPTIONAL, "f32", "k"),
                 TENSOR(codes, OUT | EXACT, "C", "r k"), TENSOR(scales, OUT | EXACT, "S", "r groups"),
                 TENSOR(y, OUT | OPTIONAL | EXACT, "T", "r k") },
    .params = { PARAM(activation, ENUM, .values = "silu gelu", .doc = "TRINE_GATE_SILU or TRINE_GATE_GELU"),
                PARAM(upward, BOOL, .values = "0 1",
                      .doc = "1: powers of two are rounded up, so that no number is clamped"),
                PARAM(powers, ENUM, .values = "e8m0 all", .doc = "which scales are powers of two") },
    .types = { "T=f32|bf16|f16 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0" },
    .require = { "k % max(groups, 1) == 0", "k <= k*groups" },
    .flops = "25*r*k",
    .independent = "r",
    .sizes = { "r: 1 0 2 5 33", "k: 1 0 2 8 24 48 120 128 136 384 512 513 1000 4096 8192 8200 20008",
               "groups: 1 2 0 3 4 8 16 32" },
    .cases = { "a token's scale: T=bf16 C=i8 S=f32 r=4096 k=14336 groups=1",
               "float8 by 128: T=bf16 C=e4m3 S=f32 r=4096 k=14336 groups=112",
               "mxfp8: T=bf16 C=e4m3 S=e8m0 r=4096 k=14336 groups=448",
               "gelu: T=bf16 C=i8 S=f32 r=4096 k=14336 groups=1 activation=gelu",
               "smoothed: T=bf16 C=i8 S=f32 r=4096 k=14336 groups=1 +factor",
               "f32: T=f32 C=i8 S=f32 r=2048 k=14336 groups=1", "decode: T=bf16 C=e4m3 S=f32 r=8 k=14336 groups=112" },
    .reference = reference,
};
