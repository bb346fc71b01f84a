/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_backward: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_swiglu_backward_args

/* Bound, with u = 2^-24, s = sigmoid(gate), t = 1 - s.
 *
 * dup = dy gate s: as swiglu, 14u of itself.
 * dgate = dy up s w with w = 1 + gate t: t by sigmoid(-gate) or by subtraction is off by 11u, of 1; so w by 11u |gate|
 * and two roundings, and with s to 11u and three products the whole by 27u of |dy up| s (1 + |gate|), second order
 * within 28u. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *gate = trine_ref_value(ref, "gate"),
                 *up = trine_ref_value(ref, "up");
    double *dgate = trine_ref_value(ref, "dgate"), *gate_magnitude = trine_ref_magnitude(ref, "dgate"),
           *gate_slack = trine_ref_slack(ref, "dgate");
    double *dup = trine_ref_value(ref, "dup"), *up_magnitude = trine_ref_magnitude(ref, "dup"),
           *up_slack = trine_ref_slack(ref, "dup");

    for (int64_t i = 0; i < count; i++) {
        const double g = gate[i], s = sigmoid(g), w = 1 + g * sigmoid(-g), size = 1 + fabs(g);
        const double gate_factor[] = { dy[i], up[i], s, w }, up_factor[] = { dy[i], g, s };
        dgate[i] = dy[i] * up[i] * s * w;
        dup[i] = dy[i] * g * s;
        /* Inf times a flushed s is NaN, and times a w near 0 of either sign. */
        if (isinf(dgate[i]) && (s < 2 * FLUSH || fabs(w) < 28 * 0x1p-24 * size || product_vanishes(4, gate_factor)))
            gate_magnitude[i] = INFINITY;
        if (isinf(dup[i]) && (s < 2 * FLUSH || product_vanishes(3, up_factor))) up_magnitude[i] = INFINITY;
        if (isfinite(dgate[i])) {
            gate_magnitude[i] = fabs(dy[i] * up[i]) * s * size;
            gate_slack[i] = product_slack(4, gate_factor) +
                            fabs(dy[i] * up[i]) * (lost(s) * size + s * fabs(g) * lost(sigmoid(-g)));
        }
        if (isfinite(dup[i])) {
            up_magnitude[i] = fabs(dup[i]);
            up_slack[i] = product_slack(3, up_factor) + lost(s) * fabs(dy[i] * g);
        }
    }
}

const trine_spec trine_spec_swiglu_backward = {
    SPEC(swiglu_backward),
    .summary = "Gradient of swiglu",
    .formula = "dgate = dy up s (1 + gate (1 - s)); dup = dy gate s; s = sigmoid(gate)",
    .source = "Shazeer 2020, eq. 6, differentiated",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(gate, IN, "T", SHAPE), TENSOR(up, IN, "T", SHAPE),
                 TENSOR(dgate, OUT, "T", SHAPE, .terms = "28"), TENSOR(dup, OUT, "T", SHAPE, .terms = "14") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dgate=dy", "dgate=gate", "dgate=up", "dup=dy", "dup=gate", "dup=up" },
    .flops = "22*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "llama3-8b f32: T=f32 r=1024 n=14336", "llama3-8b: T=bf16 r=2048 n=14336",
               "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
