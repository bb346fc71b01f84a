/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_matmul: the table and the reference. */
#include <stdlib.h>

#include <trine/fused.h>

#include "spec/matmul/element.h"
#include "spec/norm/rms.h"

#define ARGS trine_rms_norm_matmul_args

/* Bound. With N_p = h_p rstd w_p what the norm makes, a kernel has it off by up to
 *     o_p = (D + 16)u |N_p| + m_p |w_p| + 2^-126 (1 + |w_p|),  then v (|N_p| + o_p) + o_p once it is rounded to T,
 * D, m_p and the rest being rms_norm's (spec/norm/rms.h) and v the roundoff of T, or of its smallest normal. The
 * product is matmul's, of factors up to |N_p| + o_p (spec/matmul/element.h); what its exact sum moves by is sum o_p
 * |b_p|, and 1.13 times that behind an activation, whose own 12u |t| moves by as much of it.
 *
 * Where an N_p may leave T, or its sign is not certain and b_p is infinite, the sum may be Inf or NaN. */
typedef struct factor {
    double is, off;
} factor;

typedef struct norm_row {
    factor *of; /* N and o */
    bool wild;
} norm_row;

typedef struct context {
    trine_ref *ref;
    const ARGS *args;
    trine_dtype in, out;
    norm_input input;
    const double *weight;
    int64_t k, n;
} context;

static factor factor_of(const context *c, const rms_stats *stats, int64_t at, int64_t p) {
    const double v = trine_unit_roundoff(c->in), w = norm_weight(c->weight, p, c->args->weight_offset);
    double e;
    const double h = norm_h(&c->input, at + p, &e), hat = h * stats->rstd;
    factor f = { .is = hat * w };
    if (!isfinite(f.is) || !isfinite(h)) return f;
    f.off =
        (sum_depth((double)c->k) + 16) * U * fabs(f.is) + rms_moved(stats, hat, e) * fabs(w) + FLUSH * (1 + fabs(w));
    f.off += v * fmax(fabs(f.is) + f.off, trine_smallest_normal(c->in));
    return f;
}

/* The norm of row i: its factors, and what is asked for of the rest. */
static void normalize(const context *c, int64_t i, norm_row *row) {
    const int64_t k = c->k;
    const rms_stats stats = rms_statistics(&c->input, i * k, k, c->args->eps);
    double *rstd = trine_ref_value(c->ref, "rstd"), *h_out = trine_ref_value(c->ref, "residual_out");
    const double largest = trine_largest(c->in) * (1 - trine_unit_roundoff(c->in));
    row->wild = stats.overflow;
    if (rstd) {
        rstd[i] = stats.rstd;
        trine_ref_magnitude(c->ref, "rstd")[i] = stats.overflow ? INFINITY : stats.rstd;
        trine_ref_slack(c->ref, "rstd")[i] = stats.overflow || !isfinite(stats.rstd) ? 0 : stats.rstd * stats.q;
    }
    for (int64_t p = 0; p < k; p++) {
        row->of[p] = factor_of(c, &stats, i * k, p);
        if (isfinite(row->of[p].is) && !(fabs(row->of[p].is) + row->of[p].off < largest)) row->wild = true;
        if (!h_out) continue;
        double e;
        h_out[i * k + p] = norm_h(&c->input, i * k + p, &e);
        trine_ref_magnitude(c->ref, "residual_out")[i * k + p] = e > trine_largest(TRINE_F32) ? INFINITY : e;
        trine_ref_slack(c->ref, "residual_out")[i * k + p] = FLUSH;
    }
}

/* The sum of a row's factors and a column; what the factors' errors move it by. */
static dot multiply(const context *c, const norm_row *row, const double *column, double *moved_out, bool *wild_out) {
    const double least = trine_smallest_normal(c->in), tiny = c->in == TRINE_BF16 ? 0x1p-126 : 0;
    dot s = { 0 };
    *moved_out = 0;
    *wild_out = row->wild;
    for (int64_t p = 0; p < c->k; p++) {
        const factor f = row->of[p];
        const double b = column[p * c->n], most = fabs(f.is) + f.off, size = most * fabs(b);
        s.sum += (long double)f.is * b;
        if (isinf(b) && f.is != 0 && fabs(f.is) <= f.off + 0x1p-126) *wild_out = true;
        if (!isfinite(f.is) || !isfinite(b)) continue;
        s.scale += size;
        *moved_out += f.off * fabs(b);
        if (most > 0 && b != 0) s.weight += fmax(most, least) * fmax(fabs(b), least);
        if (fabs(f.is) - f.off < tiny || fabs(b) < tiny) s.flushed += size;
    }
    return s;
}

static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r");
    const double *b = trine_ref_value(ref, "b"), *bias = trine_ref_value(ref, "bias");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const context c = { .ref = ref,
                        .args = ref->args,
                        .in = trine_ref_type(ref, "T"),
                        .out = trine_ref_type(ref, "O"),
                        .input = { .x = trine_ref_value(ref, "x"), .residual = trine_ref_value(ref, "residual") },
                        .weight = trine_ref_value(ref, "weight"),
                        .k = trine_ref_dim(ref, "k"),
                        .n = trine_ref_dim(ref, "n") };
    const trine_matmul_args as = { .alpha = 1, .activation = c.args->activation };
    const factors one = factors_of(&as, NULL, NULL);
    const double curved = as.activation > TRINE_ACTIVATION_RELU ? 1.13 + 12 * U : 1;
    norm_row row = { .of = malloc(sizeof *row.of * (size_t)(c.k + 1)) };
    if (row.of == NULL) abort();
    for (int64_t i = 0; i < r; i++) {
        normalize(&c, i, &row);
        for (int64_t j = 0; j < c.n; j++) {
            double moved;
            bool wild;
            const dot s = multiply(&c, &row, b + j, &moved, &wild);
            const result e = element(&as, s, one, c.k, NULL, bias ? bias + j : NULL, c.in, c.out);
            const int64_t at = i * c.n + j;
            wild |= !(moved < trine_largest(TRINE_F32)) || isinf(e.magnitude);
            y[at] = e.value;
            magnitude[at] = wild ? INFINITY : e.magnitude;
            slack[at] = wild ? 0 : e.slack + curved * moved;
        }
    }
    free(row.of);
}

const trine_spec trine_spec_rms_norm_matmul = {
    SPEC(rms_norm_matmul),
    .summary = "Root-mean-square normalization, multiplied by a matrix, with bias and activation",
    .formula = "h = x + residual; rstd[i] = 1/sqrt(mean_p h[i,p]^2 + eps); y[i,j] = act(sum_p h[i,p] rstd[i] "
               "(weight[p] + weight_offset) b[p,j] + bias[j]); residual_out = h",
    .source = "Zhang and Sennrich 2019, eq. 4; the case study of Wu et al. 2025 (Mirage)",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(weight, IN | OPTIONAL, "W", "k"),
                 TENSOR(residual, IN | OPTIONAL, "R", "r k"), TENSOR(b, IN | TRANSPOSABLE, "T", "k n"),
                 TENSOR(bias, IN | OPTIONAL, "B", "n"), TENSOR(y, OUT, "O", "r n", .terms = "k + 4"),
                 TENSOR(residual_out, OUT | OPTIONAL, "R", "r k", .terms = "1"),
                 TENSOR(rstd, OUT | OPTIONAL, "f32", "r", .terms = SUM_DEPTH(k) " + 16") },
    .params = { PARAM(eps, F32, .values = "1e-6 -0", .fallback = 1e-6, .min = 0, .max = 0x1.fffffep127,
                      .doc = "added to the mean square"),
                PARAM(weight_offset, F32, .values = "0 1", .doc = "added to weight, where that is given; Gemma has 1"),
                PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", .doc = "applied last") },
    .types = { "T=f32 R=f32 W=f32 O=f32 B=f32", "T=bf16 R=bf16|f32 W=bf16|f32 O=bf16|f32 B=f32",
               "T=bf16 R=bf16|f32 W=bf16|f32 O=bf16 B=bf16", "T=f16 R=f16|f32 W=f16|f32 O=f16|f32 B=f32",
               "T=f16 R=f16|f32 W=f16|f32 O=f16 B=f16" },
    .alias = { "residual_out=residual" },
    .flops = "2*r*n*k + 4*r*k",
    .independent = "r",
    .sizes = { "r: 1 0 2 3 7 16 33 100 300", "k: 1 0 2 3 8 17 31 64 129 257 1000 2568",
               "n: 1 0 2 3 8 17 33 64 100 257" },
    .cases = { "llama3-8b query: T=bf16 R=bf16 W=bf16 O=bf16 B=f32 r=512 k=4096 n=4096 b=transposed +weight",
               "llama3-8b up, residual: T=bf16 R=bf16 W=bf16 O=bf16 B=f32 r=512 k=4096 n=14336 b=transposed +weight "
               "+residual +residual_out",
               "llama3-8b prefill: T=bf16 R=bf16 W=bf16 O=bf16 B=f32 r=8192 k=4096 n=6144 b=transposed +weight",
               "gpt2 up: T=f32 R=f32 W=f32 O=f32 B=f32 r=1024 k=768 n=3072 activation=gelu_tanh +weight +bias",
               "decode 1: T=bf16 R=bf16 W=bf16 O=bf16 B=f32 r=1 k=4096 n=6144 b=transposed +weight +residual "
               "+residual_out",
               "decode 8: T=bf16 R=bf16 W=bf16 O=bf16 B=f32 r=8 k=4096 n=6144 b=transposed +weight +residual "
               "+residual_out",
               "training: T=bf16 R=f32 W=f32 O=bf16 B=f32 r=4096 k=2048 n=5632 +weight +residual +residual_out +rstd" },
    .reference = reference,
};
