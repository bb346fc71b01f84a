/* SPDX-License-Identifier: Apache-2.0 */
/* cast: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_cast_args

/* One rounding of the exact value, also from f64: the output is what it is, bit for bit, but for the sign and payload
 * of NaN. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const trine_dtype dtype = trine_ref_type(ref, "T");
    const double *x = trine_ref_value(ref, "x"), largest = trine_largest(dtype);
    double *y = trine_ref_value(ref, "y");

    for (int64_t i = 0; i < count; i++)
        y[i] = args->saturate && isinf(x[i]) ? copysign(largest, x[i]) : trine_round(x[i], dtype, args->saturate);
}

const trine_spec trine_spec_cast = {
    SPEC(cast),
    .summary = "Conversion of floating-point types",
    .formula = "y = x rounded once, to nearest even",
    .source = "IEEE 754-2019, section 5.4; OCP 8-bit floating point 1.0, section 5.2",
    .tensors = { TENSOR(x, IN, "X", SHAPE), TENSOR(y, OUT | EXACT, "T", SHAPE) },
    .params = { PARAM(saturate, BOOL, .values = "0 1",
                      .doc = "1: what is beyond the largest finite value, Inf too, becomes it; 0: Inf, or NaN") },
    .types = { "X=f64|f32|f16|bf16|e4m3|e4m3fnuz|e5m2|e5m2fnuz T=f64|f32|f16|bf16|e4m3|e4m3fnuz|e5m2|e5m2fnuz" },
    .flops = "p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "f32 to bf16: X=f32 T=bf16 r=4096 n=4096", "bf16 to f32: X=bf16 T=f32 r=4096 n=4096",
               "f32 to f16: X=f32 T=f16 r=4096 n=4096", "f32 to e4m3: X=f32 T=e4m3 r=4096 n=4096 saturate=1",
               "e4m3 to bf16: X=e4m3 T=bf16 r=4096 n=8192", "bf16 to e5m2: X=bf16 T=e5m2 r=4096 n=8192",
               "f64 to f32: X=f64 T=f32 r=4096 n=2048", "f64 to bf16: X=f64 T=bf16 r=4096 n=2048" },
    .exact = true,
    .reference = reference,
};
