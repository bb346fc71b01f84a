/* SPDX-License-Identifier: Apache-2.0 */
/* geglu_backward: the table and the reference. */
#include <trine/elementwise.h>

#include "gelu.h"

#define ARGS trine_geglu_backward_args

/* Bound, with u = 2^-24.
 *
 * dup = dy gelu(gate): as geglu, 14u.
 * dgate = dy up gelu'(gate): the derivative by 35u of gelu.h, and two products in any order, 37u; second order and the
 * output's rounding of it within 38u. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *gate = trine_ref_value(ref, "gate"),
                 *up = trine_ref_value(ref, "up");
    double *dgate = trine_ref_value(ref, "dgate"), *gate_magnitude = trine_ref_magnitude(ref, "dgate"),
           *gate_slack = trine_ref_slack(ref, "dgate");
    double *dup = trine_ref_value(ref, "dup"), *up_magnitude = trine_ref_magnitude(ref, "dup"),
           *up_slack = trine_ref_slack(ref, "dup");

    for (int64_t i = 0; i < count; i++) {
        const gelu_part g = gelu_of(args->form, gate[i]), slope = gelu_slope(args->form, gate[i]);
        const double factor[] = { dy[i], up[i], slope.value };
        dgate[i] = dy[i] * up[i] * slope.value;
        dup[i] = dy[i] * g.value;
        /* Inf times a slope near 0 may have either sign, and times what is flushed to zero is NaN. */
        if (isinf(dgate[i]) && isfinite(gate[i]) &&
            (fabs(slope.value) <= 38 * 0x1p-24 * slope.size + slope.loss || product_vanishes(3, factor)))
            gate_magnitude[i] = INFINITY;
        if (isinf(dup[i]) && isfinite(gate[i]) && fabs(g.value) <= g.loss) up_magnitude[i] = INFINITY;
        if (isfinite(dgate[i])) {
            gate_magnitude[i] = fabs(dy[i] * up[i]) * slope.size;
            gate_slack[i] = product_slack(3, factor) + fabs(dy[i] * up[i]) * slope.loss;
        }
        if (isfinite(dup[i])) {
            up_magnitude[i] = fabs(dy[i]) * g.size;
            up_slack[i] = fabs(dy[i]) * g.loss + TINY;
        }
    }
}

const trine_spec trine_spec_geglu_backward = {
    SPEC(geglu_backward),
    .summary = "Gradient of geglu",
    .formula = "dgate = dy up gelu'(gate); dup = dy gelu(gate); tanh: gelu'(x) = s + x s (1 - s) v', s = (1 + "
               "tanh(v/2))/2, v = 2 sqrt(2/pi) (x + 0.044715 x^3); erf: gelu'(x) = F + x f, F = (1 + erf(x/sqrt 2))/2, "
               "f = exp(-x^2/2)/sqrt(2 pi)",
    .source = "Shazeer 2020, eq. 6, differentiated",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(gate, IN, "T", SHAPE), TENSOR(up, IN, "T", SHAPE),
                 TENSOR(dgate, OUT, "T", SHAPE, .terms = "38"), TENSOR(dup, OUT, "T", SHAPE, .terms = "14") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dgate=dy", "dgate=gate", "dgate=up", "dup=dy", "dup=gate", "dup=up" },
    .flops = "34*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "gemma-7b f32: T=f32 r=1024 n=24576", "gemma-7b: T=bf16 r=2048 n=24576",
               "modernbert-large: T=bf16 r=8192 n=2624 form=erf", "modernbert-large f32: T=f32 r=8192 n=2624 form=erf",
               "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
