/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of matmul and of its packed weights say alike. */
#ifndef TRINE_SPEC_MATMUL_TABLE_H
#define TRINE_SPEC_MATMUL_TABLE_H

#include "element.h"

#define MATMUL_PARAMS \
    PARAM(alpha, F32, .values = "1 0.5 -2 0", .fallback = 1, \
          .doc = "factor of the product; for i8 an integer up to 2^24"), \
        PARAM(beta, F32, .values = "1 0 -0.5 3", .fallback = 1, .doc = "factor of c; for i8 an integer up to 2^24"), \
        PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", \
              .doc = "applied last; for i8 none or relu"), \
        PARAM(precision, ENUM, .values = "full tf32", .doc = "tf32: f32 operands may be cut to 10 bits of fraction")

#define MATMUL_TYPES \
    "T=f32 U=f32 O=f32 B=f32", "T=f16 U=f16 O=f16|f32 B=f32", "T=f16 U=f16 O=f16 B=f16", \
        "T=bf16 U=bf16 O=bf16|f32 B=f32", "T=bf16 U=bf16 O=bf16 B=bf16", "T=i8 U=i8 O=i32 B=i32", \
        "T=f64 U=f64 O=f64 B=f64", "T=e4m3 U=e4m3|e5m2 O=bf16|f16|f32 B=f32", "T=e5m2 U=e4m3 O=bf16|f16|f32 B=f32"

#endif
