/* SPDX-License-Identifier: Apache-2.0 */
/* rope_backward: the table and the reference. */
#include <trine/attention.h>

#include "rope.h"

#define ARGS trine_rope_backward_args

/* A rotation is orthogonal up to the scale of (cos, sin): its transpose, which the gradient needs, turns by the
 * opposite angle. */
static void reference(trine_ref *ref) { rotate(ref, "dy", "dx", ((const ARGS *)ref->args)->interleaved, -1); }

const trine_spec trine_spec_rope_backward = {
    SPEC(rope_backward),
    .summary = "Gradient of rope",
    .formula = "dx[.., p] = dy[.., p] cos[t, i] + dy[.., q] sin[t, i]; dx[.., q] = dy[.., q] cos[t, i] - dy[.., p] "
               "sin[t, i] for i < c, with t the token's "
               "position and (p, q) = (i, i + c), or (2i, 2i + 1) if interleaved; dx = dy beyond 2c",
    .source = "the transpose of rope",
    .tensors = { TENSOR(dy, IN, "T", "[b] s h d"), TENSOR(cos, IN, "W", "p c"), TENSOR(sin, IN, "W", "p c"),
                 TENSOR(positions, IN | OPTIONAL, "I", "[b] s", .fill = "ids p"),
                 TENSOR(dx, OUT, "T", "[b] s h d", .terms = "2.5") },
    .params = { PARAM(interleaved, BOOL, .values = "0 1", .doc = "0: pairs (i, i + c); 1: pairs (2i, 2i + 1)") },
    .types = { "T=f32 W=f32 I=i32|i64", "T=bf16|f16 W=f32 I=i32|i64", "T=bf16 W=bf16 I=i32|i64",
               "T=f16 W=f16 I=i32|i64" },
    .require = { "2*c <= d", "without positions: s <= p" },
    .alias = { "dx=dy" },
    .flops = "6*b*s*h*c",
    .independent = "h",
    .integers_exact = true,
    .sizes = { "b: 1 0 3", "s: 1 0 2 7 33", "h: 1 0 3 8", "d: 1 2 6 16 63 64 80 128 129", "p: 33 64 1000",
               "c: 1 0 3 8 20 31 32 64" },
    .cases = { "llama3-8b: T=bf16 W=f32 s=4096 h=32 d=128 p=8192 c=64",
               "llama3-8b f32: T=f32 W=f32 s=2048 h=32 d=128 p=8192 c=64",
               "interleaved: T=bf16 W=f32 s=4096 h=32 d=128 p=8192 c=64 interleaved=1" },
    .reference = reference,
};
