/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm: the table and the reference. */
#include <trine/norm.h>

#include "rms.h"

#define ARGS trine_rms_norm_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const trine_dtype type = trine_ref_type(ref, "T");
    norm_input in = {
        trine_ref_value(ref, "x"), trine_ref_value(ref, "residual"), args->dropout, args->seed, args->offset, ref->first
    };
    trine_ref_philox(ref, &in.seed, &in.offset);
    const double *weight = trine_ref_value(ref, "weight"), coefficient = (sum_depth((double)n) + 16) * U;
    double *y = trine_ref_value(ref, "y"), *y_magnitude = trine_ref_magnitude(ref, "y"),
           *y_slack = trine_ref_slack(ref, "y");
    double *h_out = trine_ref_value(ref, "residual_out"), *rstd_out = trine_ref_value(ref, "rstd");
    for (int64_t i = 0; i < r; i++) {
        const rms_stats row = rms_statistics(&in, i * n, n, args->eps);
        if (rstd_out) {
            rstd_out[i] = row.rstd;
            trine_ref_magnitude(ref, "rstd")[i] = row.overflow ? INFINITY : row.rstd;
            trine_ref_slack(ref, "rstd")[i] = row.overflow || !isfinite(row.rstd) ? 0 : row.rstd * row.q;
        }
        for (int64_t k = i * n; k < (i + 1) * n; k++) {
            double e;
            const double h = norm_h(&in, k, &e), w = norm_weight(weight, k - i * n, args->weight_offset),
                         hat = h * row.rstd;
            if (h_out) {
                h_out[k] = h;
                trine_ref_magnitude(ref, "residual_out")[k] = e > trine_largest(TRINE_F32) ? INFINITY : e;
                trine_ref_slack(ref, "residual_out")[k] = FLUSH;
            }
            const bool round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT;
            y[k] = (round ? trine_round(hat, type, false) : hat) * w;
            if (row.overflow) y_magnitude[k] = INFINITY;
            if (!isfinite(y[k]) || !isfinite(h) || !isfinite(row.rstd) || row.overflow) continue;
            const double off = rms_moved(&row, hat, e);
            const double spread = round ? round_spread(hat, fabs(hat) * coefficient + off, type) : off;
            y_magnitude[k] = isfinite(spread) ? fabs(hat * w) : INFINITY;
            y_slack[k] = isfinite(spread) ? spread * fabs(w) + FLUSH * (1 + fabs(w)) : 0;
        }
    }
}

const trine_spec trine_spec_rms_norm = {
    SPEC(rms_norm),
    .summary = "Root-mean-square normalization, with optional dropout and residual addition before it",
    .formula = "h = dropout(x) + residual; rstd[i] = 1/sqrt(mean_j h[i,j]^2 + eps); y[i,j] = h[i,j] rstd[i] (weight[j] "
               "+ weight_offset); residual_out = h",
    .source = "Zhang and Sennrich 2019, eq. 4; dropout by Philox4x32-10, Salmon et al. 2011",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(weight, IN | OPTIONAL, "W", "n"),
                 TENSOR(residual, IN | OPTIONAL, "R", "r n"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(y, OUT, "T", "r n", .terms = SUM_DEPTH(n) " + 16"),
                 TENSOR(residual_out, OUT | OPTIONAL, "R", "r n", .terms = "1"),
                 TENSOR(rstd, OUT | OPTIONAL, "f32", "r", .terms = SUM_DEPTH(n) " + 16") },
    .params = { PARAM(eps, F32, .values = "1e-6 -0", .fallback = 1e-6, .min = 0, .max = 0x1.fffffep127,
                      .doc = "added to the mean square"),
                PARAM(weight_offset, F32, .values = "0 1", .doc = "added to weight, where that is given; Gemma has 1"),
                PARAM(rounding, ENUM, .values = "once before_weight",
                      .doc = "where y is rounded to its type: at the end, or before the weight as well"),
                PARAM(dropout, F32, .values = "0 0.1 0.5", .min = 0, .max = 0x1.fffffep-1,
                      .doc = "probability of dropping an element of x"),
                PARAM(seed, U64, .values = "1 1234567890123456789", .doc = "dropout's key"),
                PARAM(offset, U64, .values = "0 12884901893", .doc = "dropout's stream") },
    .types = { "T=f32 R=f32 W=f32", "T=bf16 R=bf16|f32 W=bf16|f32", "T=f16 R=f16|f32 W=f16|f32" },
    .require = { "philox instead of seed" },
    .alias = { "y=x", "residual_out=residual" },
    .flops = "4*r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64", NORM_LENGTHS },
    .cases = { "llama3-8b prefill: T=bf16 R=bf16 W=bf16 r=4096 n=4096 +weight",
               "square f32: T=f32 r=4096 n=4096 +weight",
               "llama3-8b residual: T=bf16 R=bf16 W=bf16 r=4096 n=4096 +weight +residual +residual_out",
               "residual f32: T=f32 r=4096 n=4096 +weight +residual +residual_out",
               "training: T=bf16 R=f32 W=f32 r=4096 n=4096 dropout=0.1 seed=1 +weight +residual +residual_out +rstd",
               "decode: T=bf16 R=bf16 W=bf16 r=8 n=8192 +weight +residual +residual_out",
               "head: T=bf16 R=bf16 W=bf16 r=65536 n=128 +weight" },
    .reference = reference,
};
