/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_blocks: the table and the reference. */
#include <trine/quantize.h>

#include "rows.h"
#include "spec/scaled/blocks.h"

#define ARGS trine_quantize_blocks_args

/* The largest |x| of a part of a matrix of k columns, NaN if there is NaN or Inf. */
static float largest_of(const double *x, int64_t rows, int64_t columns, int64_t k) {
    float most = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const float size = fabsf((float)x[i * k + j]);
            if (!isfinite(size)) return NAN;
            most = fmaxf(most, size);
        }
    return most;
}

/* Each operation is f32's, rounded once, and no product is fused to another: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k"), rows = trine_ref_dim(ref, "rows"),
                  columns = trine_ref_dim(ref, "columns"), high = scaled_block(r, rows),
                  wide = scaled_block(k, columns);
    const trine_dtype C = trine_ref_type(ref, "C"), S = trine_ref_type(ref, "S");
    const double *x = trine_ref_value(ref, "x");
    double *codes = trine_ref_value(ref, "codes"), *scales = trine_ref_value(ref, "scales");

    for (int64_t b = 0; b < rows * columns; b++) {
        const int64_t top = b / columns * high, left = b % columns * wide, height = high < r - top ? high : r - top,
                      width = wide < k - left ? wide : k - left;
        const float most = largest_of(x + top * k + left, height, width, k),
                    scale = codes_scale(S, args->powers == TRINE_POWERS_ALL, most, row_most(C), most / row_most(C),
                                        args->upward);
        scales[b] = scale;
        for (int64_t i = top; i < top + height; i++)
            for (int64_t j = left; j < left + width; j++) {
                const float q = scale > 0 ? (float)x[i * k + j] / scale + 0.0f : 0;
                codes[i * k + j] = C == TRINE_I8 ? (int)rintf(fminf(fmaxf(q, -128), 127)) : trine_round(q, C, true);
            }
    }
}

const trine_spec trine_spec_quantize_blocks = {
    SPEC(quantize_blocks),
    .summary = "A matrix as codes of 8 bits, with a scale for each block of it",
    .formula = "scale = max |x| / most over a block; codes = round(x/scale), most being 127 of i8, 448 of e4m3, 57344 "
               "of e5m2; a scale of e8m0 is 2^(floor(log2(max |x|)) - floor(log2(most))), or rounded up",
    .source = "DeepSeek-AI 2024, section 3.3; Jacob et al. 2018, section 2.1; Micikevicius et al. 2022 (float8)",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(codes, OUT | EXACT, "C", "r k"),
                 TENSOR(scales, OUT | EXACT, "S", "rows columns") },
    .params = { PARAM(upward, BOOL, .values = "0 1",
                      .doc = "1: powers of two are rounded up, so that no number is clamped"),
                PARAM(powers, ENUM, .values = "e8m0 all", .doc = "which scales are powers of two") },
    .types = { "T=f32|bf16|f16 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0" },
    .require = { "rows >= 1", "columns >= 1", "rows <= max(r, 1)", "columns <= max(k, 1)" },
    .flops = "3*r*k",
    .sizes = { "r: 1 0 2 5 33 64 130 200", "k: 1 0 2 8 24 48 120 128 136 384 513 1000 4096 20008",
               "rows: 1 2 3 5 33 64", "columns: 1 2 3 4 8 16 128" },
    .cases = { "deepseek-v3 weights: T=bf16 C=e4m3 S=f32 r=7168 k=2048 rows=56 columns=16",
               "one scale: T=bf16 C=e4m3 S=f32 r=8192 k=4096 rows=1 columns=1",
               "a row's scale: T=bf16 C=i8 S=f32 r=8192 k=4096 rows=8192 columns=1",
               "64 by 64: T=f32 C=i8 S=f32 r=4096 k=4096 rows=64 columns=64" },
    .reference = reference,
};
