/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm: the table and the reference. */
#include <trine/comm.h>
#include <trine/norm.h>

#include "spec/norm/rms.h"

#define ARGS trine_all_reduce_rms_norm_args

/* Bound, with c ranks and u the roundoff of f32. The sum of the ranks' elements is off by (c - 1)u sum|x| (reduced.h);
 * that of it and the residual rounds once more: h is off by u (c sum|x| + |residual|) at most, which is E of rms_norm's
 * bound (spec/norm/rms.h). */
typedef struct element {
    double h, size, e; /* size: of all that is added; h is off by e u */
} element;

static element element_of(trine_ref *ref, int64_t rank, int64_t k) {
    const int64_t ranks = trine_ref_dim(ref, "ranks"), count = trine_ref_dim(ref, "r") * trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *residual = trine_ref_value(ref, "residual");
    element a = { .h = x[k], .size = trine_finite_abs(x[k]) };
    for (int64_t i = 1; i < ranks; i++) a.h += x[i * count + k], a.size += trine_finite_abs(x[i * count + k]);
    a.e = (double)ranks * a.size;
    if (residual) {
        const double more = residual[rank * count + k];
        a.h += more, a.size += trine_finite_abs(more), a.e += trine_finite_abs(more);
    }
    return a;
}

static rms_stats statistics(trine_ref *ref, int64_t rank, int64_t i, double eps) {
    const int64_t n = trine_ref_dim(ref, "n");
    double squares = 0, moved = 0;
    bool overflow = false;
    for (int64_t j = 0; j < n; j++) {
        const element a = element_of(ref, rank, i * n + j);
        overflow |= a.size > trine_largest(TRINE_F32);
        squares += a.h * a.h;
        moved += U * a.e * (2 * fabs(a.h) + U * a.e);
    }
    return rms_settle(squares, moved, n, eps, overflow);
}

/* Row i of a rank. */
static void row(trine_ref *ref, int64_t rank, int64_t i) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n"), at = (rank * r + i) * n;
    const trine_dtype type = trine_ref_type(ref, "T");
    const bool round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT;
    const double *weights = trine_ref_value(ref, "weight"), *weight = weights ? weights + rank * n : NULL;
    const double coefficient = (sum_depth((double)n) + 16) * U;
    double *rstd = trine_ref_value(ref, "rstd"), *residual_out = trine_ref_value(ref, "residual_out");
    const rms_stats s = statistics(ref, rank, i, args->eps);
    if (rstd) {
        rstd[rank * r + i] = s.rstd;
        trine_ref_magnitude(ref, "rstd")[rank * r + i] = s.overflow ? INFINITY : s.rstd;
        trine_ref_slack(ref, "rstd")[rank * r + i] = s.overflow || !isfinite(s.rstd) ? 0 : s.rstd * s.q;
    }
    for (int64_t j = 0; j < n; j++) {
        const element a = element_of(ref, rank, i * n + j);
        const double w = norm_weight(weight, j, args->weight_offset), hat = a.h * s.rstd,
                     y = (round ? trine_round(hat, type, false) : hat) * w;
        if (residual_out) {
            residual_out[at + j] = a.h;
            trine_ref_magnitude(ref, "residual_out")[at + j] = a.size > trine_largest(TRINE_F32) ? INFINITY : a.size;
            trine_ref_slack(ref, "residual_out")[at + j] = FLUSH;
        }
        trine_ref_value(ref, "y")[at + j] = y;
        if (s.overflow) trine_ref_magnitude(ref, "y")[at + j] = INFINITY;
        if (!isfinite(y) || !isfinite(a.h) || !isfinite(s.rstd) || s.overflow) continue;
        const double off = rms_moved(&s, hat, a.e),
                     spread = round ? round_spread(hat, fabs(hat) * coefficient + off, type) : off;
        trine_ref_magnitude(ref, "y")[at + j] = isfinite(spread) ? fabs(hat * w) : INFINITY;
        trine_ref_slack(ref, "y")[at + j] = isfinite(spread) ? spread * fabs(w) + FLUSH * (1 + fabs(w)) : 0;
    }
}

static void reference(trine_ref *ref) {
    for (int64_t rank = 0; rank < trine_ref_dim(ref, "ranks"); rank++)
        for (int64_t i = 0; i < trine_ref_dim(ref, "r"); i++) row(ref, rank, i);
}

const trine_spec trine_spec_all_reduce_rms_norm = {
    SPEC(all_reduce_rms_norm),
    .summary = "Root-mean-square normalization of the sum over all ranks and a residual, for every rank",
    .formula = "h[q,i,j] = (x[0,i,j] + x[1,i,j]) + ... + residual[q,i,j]; rstd[q,i] = 1/sqrt(mean_j h[q,i,j]^2 + eps); "
               "y[q,i,j] = h[q,i,j] rstd[q,i] (weight[q,j] + weight_offset); residual_out = h, for every rank q",
    .source = "Zhang and Sennrich 2019, eq. 4, of what MPI_Allreduce gives (MPI 4.1, section 6.9.6)",
    .tensors = { TENSOR(x, IN, "T", "ranks r n"), TENSOR(weight, IN | OPTIONAL, "W", "ranks n"),
                 TENSOR(residual, IN | OPTIONAL, "R", "ranks r n"),
                 TENSOR(y, OUT, "T", "ranks r n", .terms = SUM_DEPTH(n) " + 16"),
                 TENSOR(residual_out, OUT | OPTIONAL, "R", "ranks r n", .terms = "ranks"),
                 TENSOR(rstd, OUT | OPTIONAL, "f32", "ranks r", .terms = SUM_DEPTH(n) " + 16") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(eps, F32, .values = "1e-6 -0", .fallback = 1e-6, .min = 0, .max = 0x1.fffffep127,
                      .doc = "added to the mean square"),
                PARAM(weight_offset, F32, .values = "0 1", .doc = "added to weight, where that is given; Gemma has 1"),
                PARAM(rounding, ENUM, .values = "once before_weight",
                      .doc = "where y is rounded to its type: at the end, or before the weight as well") },
    .types = { "T=f32 R=f32 W=f32", "T=bf16 R=bf16|f32 W=bf16|f32", "T=f16 R=f16|f32 W=f16|f32" },
    .require = { "ranks > 0", "ranks <= 64" },
    .alias = { "y=x", "residual_out=residual" },
    .flops = "ranks*r*n*(ranks+4)",
    .sizes = { "ranks: 2 1 3 4 8", "r: 1 0 2 7 33", "n: 31 0 1 8 264 1000 4097 20008" },
    .cases = { "decode: T=bf16 R=bf16 W=bf16 ranks=4 r=8 n=8192 +weight +residual +residual_out",
               "prefill: T=bf16 R=bf16 W=bf16 ranks=4 r=2048 n=4096 +weight +residual +residual_out",
               "prefill, 2 ranks: T=bf16 R=bf16 W=bf16 ranks=2 r=2048 n=8192 +weight +residual +residual_out",
               "f32: T=f32 ranks=4 r=512 n=4096 +weight +residual +residual_out" },
    .reference = reference,
};
