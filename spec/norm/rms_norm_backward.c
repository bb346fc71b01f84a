/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward: the table; the reference and the derivation of its bound are in norm_backward.h. */
#include <trine/norm.h>

#include "norm_backward.h"

#define ARGS trine_rms_norm_backward_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    norm_gradient gradient = { NULL, args->weight_offset, args->dropout, args->seed, args->offset };
    norm_backward(&gradient, ref);
}

static void prepare(trine_ref *ref) { norm_save(ref, false); }

const trine_spec trine_spec_rms_norm_backward = {
    SPEC(rms_norm_backward),
    .summary = "Gradient of rms_norm",
    .formula = "xhat = h rstd; g = (weight + weight_offset) dy; dh = rstd (g - xhat mean_j(g xhat)) + dresidual; dx = "
               "dropout's mask and scale applied to dh; "
               "dweight[j] = sum_i dy[i,j] xhat[i,j]",
    .source = "Zhang and Sennrich 2019, section 4.1",
    .tensors = { TENSOR(dy, IN, "T", "r n"), TENSOR(h, IN, "R", "r n"), TENSOR(weight, IN | OPTIONAL, "W", "n"),
                 TENSOR(rstd, IN, "f32", "r", .fill = "positive saved"), TENSOR(dresidual, IN | OPTIONAL, "R", "r n"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2"), TENSOR(dx, OUT, "T", "r n", .terms = SUM_DEPTH(n) " + 18"),
                 TENSOR(dh, OUT | OPTIONAL, "R", "r n", .terms = SUM_DEPTH(n) " + 18"),
                 TENSOR(dweight, OUT | OPTIONAL, "W", "n", .terms = SUM_DEPTH(r) " + 3") },
    .params = { PARAM(weight_offset, F32, .values = "0 1", .doc = "the forward's"),
                PARAM(dropout, F32, .values = "0 0.1 0.5", .min = 0, .max = 0x1.fffffep-1, .doc = "the forward's"),
                PARAM(seed, U64, .values = "1 1234567890123456789", .doc = "the forward's"),
                PARAM(offset, U64, .values = "0 12884901893", .doc = "the forward's") },
    .types = { "T=f32 R=f32 W=f32", "T=bf16 R=bf16|f32 W=bf16|f32", "T=f16 R=f16|f32 W=f16|f32" },
    .require = { "philox instead of seed" },
    .alias = { "dx=dy", "dh=dresidual" },
    .gradient = { "h = residual_out with residual dropout, else x", "dresidual = d residual_out", "dh = d residual" },
    .flops = "9*r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64 1000", NORM_LENGTHS },
    .cases = { "llama3-8b: T=bf16 R=bf16 W=bf16 r=4096 n=4096 +weight +dweight",
               "square f32: T=f32 r=4096 n=4096 +weight +dweight",
               "llama3-8b residual: T=bf16 R=bf16 W=bf16 r=4096 n=4096 +weight +dweight +dresidual +dh",
               "training: T=bf16 R=f32 W=f32 r=4096 n=4096 dropout=0.1 seed=1 +weight +dweight +dresidual +dh",
               "head: T=bf16 R=bf16 W=bf16 r=65536 n=128 +weight +dweight" },
    .reference = reference,
    .prepare = prepare,
};
