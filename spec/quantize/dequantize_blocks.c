/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize_blocks: the table and the reference. */
#include <trine/quantize.h>

#include "spec/scaled/blocks.h"
#include "spec/spec.h"

#define ARGS trine_dequantize_blocks_args

/* A product of f32, rounded, and rounded again to the type of y: exact. */
static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k"), rows = trine_ref_dim(ref, "rows"),
                  columns = trine_ref_dim(ref, "columns"), high = scaled_block(r, rows),
                  wide = scaled_block(k, columns);
    const double *codes = trine_ref_value(ref, "codes"), *scales = trine_ref_value(ref, "scales");
    double *y = trine_ref_value(ref, "y");

    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < k; j++) {
            const float product = (float)codes[i * k + j] * (float)scales[i / high * columns + j / wide];
            y[i * k + j] = trine_round(product, trine_ref_type(ref, "T"), false);
        }
}

const trine_spec trine_spec_dequantize_blocks = {
    SPEC(dequantize_blocks),
    .summary = "The numbers that codes of 8 bits stand for, with a scale for each block",
    .formula = "y = code scale, with the scale of the code's block, rounded to f32 and to the type of y",
    .source = "DeepSeek-AI 2024, section 3.3",
    .tensors = { TENSOR(codes, IN, "C", "r k"), TENSOR(scales, IN, "S", "rows columns"),
                 TENSOR(y, OUT | EXACT, "T", "r k") },
    .types = { "T=f32|bf16|f16 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0" },
    .require = { "rows >= 1", "columns >= 1", "rows <= max(r, 1)", "columns <= max(k, 1)" },
    .flops = "1*r*k",
    .sizes = { "r: 1 0 2 5 33 64 130 200", "k: 1 0 2 8 24 48 120 128 136 384 513 1000 4096 20008",
               "rows: 1 2 3 5 33 64", "columns: 1 2 3 4 8 16 128" },
    .cases = { "deepseek-v3 weights: T=bf16 C=e4m3 S=f32 r=7168 k=2048 rows=56 columns=16",
               "one scale: T=bf16 C=e4m3 S=f32 r=8192 k=4096 rows=1 columns=1",
               "64 by 64: T=f32 C=i8 S=f32 r=4096 k=4096 rows=64 columns=64" },
    .reference = reference,
};
