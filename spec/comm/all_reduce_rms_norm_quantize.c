/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm_quantize: the table and the reference. */
#include <stdlib.h>

#include <trine/comm.h>
#include <trine/quantize.h>

#include "spec/quantize/rms_rows.h"

#define ARGS trine_all_reduce_rms_norm_quantize_args

/* Row i of a rank: the sum of all ranks' in f32, in their order, and of the rank's residual. */
static void add_up(const trine_ref *ref, float *h, int64_t rank, int64_t i) {
    const int64_t ranks = trine_ref_dim(ref, "ranks"), r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k");
    const double *x = trine_ref_value(ref, "x"), *residual = trine_ref_value(ref, "residual");
    for (int64_t j = 0; j < k; j++) {
        h[j] = (float)x[i * k + j];
        for (int64_t q = 1; q < ranks; q++) h[j] = h[j] + (float)x[(q * r + i) * k + j];
        if (residual) h[j] = h[j] + (float)residual[(rank * r + i) * k + j];
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k");
    const double *weight = trine_ref_value(ref, "weight");
    double *y = trine_ref_value(ref, "y"), *residual_out = trine_ref_value(ref, "residual_out");
    float *h = malloc(sizeof *h * (size_t)(k + 1));
    for (int64_t at = 0; at < ranks * r; at++) {
        const int64_t rank = at / r;
        add_up(ref, h, rank, at % r);
        for (int64_t j = 0; j < k && residual_out; j++)
            residual_out[at * k + j] = trine_round(h[j], trine_ref_type(ref, "R"), false);
        rms_row(h, k, weight ? weight + rank * k : NULL, args->weight_offset, args->eps);
        for (int64_t j = 0; j < k && y; j++) y[at * k + j] = trine_round(h[j], trine_ref_type(ref, "T"), false);
        row_codes(ref, at, h, args->powers == TRINE_POWERS_ALL, args->upward);
    }
    free(h);
}

const trine_spec trine_spec_all_reduce_rms_norm_quantize = {
    SPEC(all_reduce_rms_norm_quantize),
    .summary = "rms_norm of the sum over all ranks and a residual, as codes of 8 bits, for every rank",
    .formula =
        "h[q] = (x[0] + x[1]) + ... + residual[q]; y = h (weight + weight_offset)/sqrt(mean h^2 + eps) of a row; "
        "scale = max |y| / most over a group of k/groups; codes = round(y/scale), most being 127 of i8, 448 of "
        "e4m3, 57344 of e5m2; residual_out = h, for every rank q; a scale of e8m0 is 2^(floor(log2(max |y|)) - "
        "floor(log2(most))), or rounded up",
    .source =
        "Zhang and Sennrich 2019, eq. 4, of what MPI_Allreduce gives (MPI 4.1, section 6.9.6); Jacob et al. 2018, "
        "section 2.1; Micikevicius et al. 2022 (float8)",
    .tensors = { TENSOR(x, IN, "T", "ranks r k"), TENSOR(weight, IN | OPTIONAL, "W", "ranks k"),
                 TENSOR(residual, IN | OPTIONAL, "R", "ranks r k"), TENSOR(codes, OUT | EXACT, "C", "ranks r k"),
                 TENSOR(scales, OUT | EXACT, "S", "ranks r groups"),
                 TENSOR(y, OUT | OPTIONAL | EXACT, "T", "ranks r k"),
                 TENSOR(residual_out, OUT | OPTIONAL | EXACT, "R", "ranks r k") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(eps, F32, .values = "1e-6 -0", .fallback = 1e-6, .min = 0, .max = 0x1.fffffep127,
                      .doc = "added to the mean square"),
                PARAM(weight_offset, F32, .values = "0 1", .doc = "added to weight, where that is given; Gemma has 1"),
                PARAM(upward, BOOL, .values = "0 1",
                      .doc = "1: powers of two are rounded up, so that no number is clamped"),
                PARAM(powers, ENUM, .values = "e8m0 all", .doc = "which scales are powers of two") },
    .types = { "T=f32 R=f32 W=f32 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0",
               "T=bf16 R=bf16|f32 W=bf16|f32 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0",
               "T=f16 R=f16|f32 W=f16|f32 C=i8|e4m3|e5m2 S=f32|bf16|f16|e8m0" },
    .require = { "ranks > 0", "ranks <= 64", "k % max(groups, 1) == 0", "k <= k*groups" },
    .alias = { "residual_out=residual" },
    .flops = "ranks*r*k*(ranks+12)",
    .sizes = { "ranks: 2 1 3 4 8", "r: 1 0 2 5 33", "k: 24 1 0 2 8 120 128 136 512 1000 2056 4096 20008",
               "groups: 1 2 0 3 4 8 16" },
    .cases = { "decode: T=bf16 R=bf16 W=bf16 C=e4m3 S=f32 ranks=4 r=8 k=8192 groups=64 +weight +residual +residual_out",
               "prefill: T=bf16 R=bf16 W=bf16 C=e4m3 S=f32 ranks=4 r=2048 k=4096 groups=32 +weight +residual "
               "+residual_out",
               "a token's scale, 2 ranks: T=bf16 R=bf16 W=bf16 C=i8 S=f32 ranks=2 r=2048 k=8192 groups=1 +weight "
               "+residual +residual_out",
               "mxfp8: T=bf16 R=bf16 W=bf16 C=e4m3 S=e8m0 ranks=4 r=512 k=4096 groups=128 +weight +residual "
               "+residual_out" },
    .reference = reference,
};
