/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize: the table and the reference. */
#include <trine/quantize.h>

#include "codes.h"

#define ARGS trine_dequantize_args

/* Bound, with u = 2^-24: code - offset is exact, zero is taken from it with u, which the scale multiplies with u more,
 * and adding min is another u of what comes out: 3u (|p| + |min|), p being the product. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k"), groups = trine_ref_dim(ref, "groups"),
                  bytes = trine_ref_dim(ref, "bytes"), n = groups > 0 ? k / groups : 0;
    const double *in = trine_ref_value(ref, "codes"), *scales = trine_ref_value(ref, "scales"),
                 *zeros = trine_ref_value(ref, "zeros"), *mins = trine_ref_value(ref, "mins");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const codes c = codes_of(ref, args->format);

    for (int64_t i = 0; i < r * groups; i++)
        for (int64_t j = 0; j < n; j++) {
            const double code = codes_get(&c, in + i * bytes, j), min = mins ? mins[i] : 0,
                         product = (code - args->offset - (zeros ? zeros[i] : 0)) * scales[i];
            y[i * n + j] = product + min;
            magnitude[i * n + j] = trine_pair_magnitude(product, min);
            slack[i * n + j] = TINY;
        }
}

const trine_spec trine_spec_dequantize = {
    SPEC(dequantize),
    .summary = "The numbers that codes of few bits stand for",
    .formula = "y = (code - offset - zero) scale + min, with the scale, zero and min of the code's group; a code has "
               "8 bytes groups/k bits, and those of a group lie one behind the other from the lowest bit of its first "
               "byte on",
    .source = "Jacob et al. 2018, section 2.1, equation 1; OCP Microscaling Formats 1.0, section 5.3.3",
    .tensors = { TENSOR(codes, IN, "C", "r groups bytes"), TENSOR(scales, IN, "S", "r groups"),
                 TENSOR(zeros, IN | OPTIONAL, "Z", "r groups"), TENSOR(mins, IN | OPTIONAL, "Z", "r groups"),
                 TENSOR(y, OUT, "T", "r k", .terms = "3") },
    .params = { PARAM(offset, I32, .values = "0 8 1 -3 128 -128 255", .min = -255, .max = 255,
                      .doc = "the code that stands for 0"),
                CODES_FORMATS },
    .types = { "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=f32 Z=f32", "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=bf16 Z=bf16",
               "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=f16 Z=f16", "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=e8m0 Z=f32" },
    .require = { CODES_REQUIRE, CODES_FLOAT8_REQUIRE },
    .flops = "3*r*k",
    .independent = "r",
    .sizes = { CODES_SIZES },
    .cases = { "weights 4 bits: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=32 bytes=64 offset=8",
               "weights 4 bits with zeros: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=32 bytes=64 +zeros",
               "weights 8 bits: T=bf16 C=i8 S=f32 r=4096 k=4096 groups=1 bytes=4096",
               "e2m1: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=128 bytes=16 format=e2m1",
               "mxfp8: T=bf16 C=e4m3 S=e8m0 r=4096 k=4096 groups=128 bytes=32",
               "Q4_1: T=f32 C=u8 S=f16 r=4096 k=4096 groups=128 bytes=16 +mins",
               "3 bits: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=32 bytes=48 +zeros" },
    .reference = reference,
};
