/* SPDX-License-Identifier: Apache-2.0 */
/* rope: the table and the reference. */
#include <trine/attention.h>

#include "rope.h"

#define ARGS trine_rope_args

static void reference(trine_ref *ref) { rotate(ref, "x", "y", ((const ARGS *)ref->args)->interleaved, 1); }

const trine_spec trine_spec_rope = {
    SPEC(rope),
    .summary = "Rotary position embedding",
    .formula = "y[.., p] = x[.., p] cos[t, i] - x[.., q] sin[t, i]; y[.., q] = x[.., q] cos[t, i] + x[.., p] sin[t, i] "
               "for i < c, with t the token's "
               "position and (p, q) = (i, i + c), or (2i, 2i + 1) if interleaved; y = x beyond 2c",
    .source = "Su et al. 2021, eq. 34",
    .tensors = { TENSOR(x, IN, "T", "[b] s h d"), TENSOR(cos, IN, "W", "p c"), TENSOR(sin, IN, "W", "p c"),
                 TENSOR(positions, IN | OPTIONAL, "I", "[b] s", .fill = "ids p"),
                 TENSOR(y, OUT, "T", "[b] s h d", .terms = "2.5") },
    .params = { PARAM(interleaved, BOOL, .values = "0 1", .doc = "0: pairs (i, i + c); 1: pairs (2i, 2i + 1)") },
    .types = { "T=f32 W=f32 I=i32|i64", "T=bf16|f16 W=f32 I=i32|i64", "T=bf16 W=bf16 I=i32|i64",
               "T=f16 W=f16 I=i32|i64" },
    .require = { "2*c <= d", "without positions: s <= p" },
    .alias = { "y=x" },
    .flops = "6*b*s*h*c",
    .independent = "h",
    .integers_exact = true,
    .sizes = { "b: 1 0 3", "s: 1 0 2 7 33", "h: 1 0 3 8", "d: 1 2 6 16 63 64 68 80 128 129", "p: 33 64 1000",
               "c: 1 0 3 8 20 31 32 64" },
    .cases = { "llama3-8b: T=bf16 W=f32 s=4096 h=32 d=128 p=8192 c=64",
               "llama3-8b f32: T=f32 W=f32 s=2048 h=32 d=128 p=8192 c=64",
               "interleaved: T=bf16 W=f32 s=4096 h=32 d=128 p=8192 c=64 interleaved=1",
               "partial: T=bf16 W=bf16 s=4096 h=32 d=80 p=4096 c=16",
               "decode: T=bf16 W=f32 b=64 s=1 h=32 d=128 p=8192 c=64 +positions" },
    .reference = reference,
};
