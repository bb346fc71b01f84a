/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward: the table; the reference and the derivation of its bound are in norm_backward.h. */
#include <trine/norm.h>

#include "norm_backward.h"

#define ARGS trine_layer_norm_backward_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    norm_gradient gradient = { trine_ref_value(ref, "mean"), args->weight_offset, args->dropout, args->seed,
                               args->offset };
    norm_backward(&gradient, ref);
}

static void prepare(trine_ref *ref) { norm_save(ref, true); }

const trine_spec trine_spec_layer_norm_backward = {
    SPEC(layer_norm_backward),
    .summary = "Gradient of layer_norm",
    .formula = "xhat = (h - mean) rstd; g = (weight + weight_offset) dy; dh = rstd (g - mean_j(g) - xhat mean_j(g "
               "xhat)) + dresidual; dx = dropout's mask and "
               "scale applied to dh; dweight[j] = sum_i dy[i,j] xhat[i,j]; dbias[j] = sum_i dy[i,j]",
    .source = "Ba, Kiros and Hinton 2016, section 3; its derivative",
    .tensors = { TENSOR(dy, IN, "T", "r n"), TENSOR(h, IN, "R", "r n"), TENSOR(weight, IN | OPTIONAL, "W", "n"),
                 TENSOR(mean, IN, "f32", "r", .fill = "saved"), TENSOR(rstd, IN, "f32", "r", .fill = "positive saved"),
                 TENSOR(dresidual, IN | OPTIONAL, "R", "r n"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(dx, OUT, "T", "r n", .terms = SUM_DEPTH(n) " + 18"),
                 TENSOR(dh, OUT | OPTIONAL, "R", "r n", .terms = SUM_DEPTH(n) " + 18"),
                 TENSOR(dweight, OUT | OPTIONAL, "W", "n", .terms = SUM_DEPTH(r) " + 3"),
                 TENSOR(dbias, OUT | OPTIONAL, "W", "n", .terms = SUM_DEPTH(r)) },
    .params = { PARAM(weight_offset, F32, .values = "0 1", .doc = "the forward's"),
                PARAM(dropout, F32, .values = "0 0.1 0.5", .min = 0, .max = 0x1.fffffep-1, .doc = "the forward's"),
                PARAM(seed, U64, .values = "1 1234567890123456789", .doc = "the forward's"),
                PARAM(offset, U64, .values = "0 12884901893", .doc = "the forward's") },
    .types = { "T=f32 R=f32 W=f32", "T=bf16 R=bf16|f32 W=bf16|f32", "T=f16 R=f16|f32 W=f16|f32" },
    .require = { "philox instead of seed" },
    .alias = { "dx=dy", "dh=dresidual" },
    .gradient = { "h = residual_out with residual dropout, else x", "dresidual = d residual_out", "dh = d residual" },
    .flops = "13*r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64 1000", NORM_LENGTHS },
    .cases = { "gpt2-xl: T=bf16 R=bf16 W=bf16 r=8192 n=1600 +weight +dweight +dbias",
               "square f32: T=f32 r=4096 n=4096 +weight +dweight +dbias",
               "residual: T=bf16 R=bf16 W=bf16 r=4096 n=4096 +weight +dweight +dbias +dresidual +dh",
               "training: T=bf16 R=f32 W=f32 r=4096 n=4096 dropout=0.1 seed=1 +weight +dweight +dbias +dresidual +dh" },
    .reference = reference,
    .prepare = prepare,
};
