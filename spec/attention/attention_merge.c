/* SPDX-License-Identifier: Apache-2.0 */
/* attention_merge: the table and the reference. */
#include <trine/attention.h>

#include "attention.h"

#define ARGS trine_attention_merge_args

/* Bound. The smaller of the two weights by the larger lse is w = exp(-x), x = |lse_a - lse_b|; the difference, its
 * product with log2(e) and that constant are 3u x, which moves w by expm1(3u x) of itself, and exp is within 4 ulp
 * (8u). The sum s = 1 + w rounds once (u), so 1/s and w/s, divisions to 2 ulp (4u), are off by 13u and 21u, to which
 * products and the last sum add 2: 24u of the magnitude, the sum of the absolute values of both terms. By what w moves,
 * out moves by p expm1(3u x) (|the smaller's| + |out|), p = w/s. lse = max + log(s): s is off by u + 8u p and what w
 * moves, log within 4 ulp of at most log 2: 24u. */
typedef struct state {
    double lse, weight;
    const double *out;
} state;

static void merge(state large, state small, int64_t d, double *out, double *magnitude, double *slack) {
    const double x = small.lse == large.lse ? 0 : large.lse - small.lse, moved = small.weight * expm1(3 * U * x);
    for (int64_t c = 0; c < d; c++) {
        const double a = large.out[c], b = small.lse > -INFINITY ? small.out[c] : 0;
        out[c] = large.weight * a + small.weight * b;
        const double size = large.weight * trine_finite_abs(a) + small.weight * trine_finite_abs(b);
        /* An infinite b gives Inf or NaN according to whether its weight underflows. */
        const bool uncertain =
            (isinf(b) && x > 80) || trine_finite_abs(a) + trine_finite_abs(b) > 0.5 * trine_largest(TRINE_F32);
        if (uncertain) out[c] = 0;
        magnitude[c] = uncertain ? INFINITY : size;
        slack[c] = isfinite(out[c]) && isfinite(moved) ? moved * (trine_finite_abs(b) + fabs(out[c])) +
                                                             FLUSH * (3 + trine_finite_abs(a) + trine_finite_abs(b))
                                                       : 0;
    }
}

static void reference(trine_ref *ref) {
    const int64_t b = trine_ref_dim(ref, "b"), sq = trine_ref_dim(ref, "sq"), h = trine_ref_dim(ref, "h"),
                  d = trine_ref_dim(ref, "d");
    const double *lse_a = trine_ref_value(ref, "lse_a"), *lse_b = trine_ref_value(ref, "lse_b"),
                 *out_a = trine_ref_value(ref, "out_a"), *out_b = trine_ref_value(ref, "out_b");
    double *out = trine_ref_value(ref, "out"), *lse = trine_ref_value(ref, "lse");

    for (int64_t row = 0; row < b * sq * h; row++) {
        const int64_t head = row % h, i = row / h % sq, n = row / h / sq, at = (n * h + head) * sq + i;
        const double x = lse_a[at], y = lse_b[at], top = fmax(x, y);
        const bool valid = x < INFINITY && y < INFINITY, none = x == -INFINITY && y == -INFINITY;
        const double sum = none ? 1 : exp(x - top) + exp(y - top);
        const state a = { x, none ? 0 : exp(x - top) / sum, out_a + row * d },
                    c = { y, none ? 0 : exp(y - top) / sum, out_b + row * d };
        for (int64_t k = 0; k < d; k++) out[row * d + k] = valid ? 0 : NAN;
        if (valid && !none)
            merge(x >= y ? a : c, x >= y ? c : a, d, out + row * d, trine_ref_magnitude(ref, "out") + row * d,
                  trine_ref_slack(ref, "out") + row * d);
        if (lse == NULL) continue;
        const double far = fabs(x - y), least = fmin(a.weight, c.weight);
        lse[at] = !valid ? NAN : none ? -INFINITY : top + log(sum);
        trine_ref_magnitude(ref, "lse")[at] = isfinite(lse[at]);
        trine_ref_slack(ref, "lse")[at] = least > 0 ? least * expm1(3 * U * far) + FLUSH : FLUSH * isfinite(lse[at]);
    }
}

/* Some states have no weight, as of queries that saw no key, and nothing that means anything. */
static void prepare(trine_ref *ref) {
    const int64_t h = trine_ref_dim(ref, "h"), sq = trine_ref_dim(ref, "sq"), d = trine_ref_dim(ref, "d");
    for (int64_t row = 0; row < trine_ref_dim(ref, "b") * sq * h; row++) {
        const int64_t at = (row / h / sq * h + row % h) * sq + row / h % sq;
        const bool none[] = { row % 5 == 0 || row % 5 == 1, row % 5 == 1 || row % 5 == 3 };
        double *const lse[] = { trine_ref_value(ref, "lse_a"), trine_ref_value(ref, "lse_b") }, *const out[] = {
            trine_ref_value(ref, "out_a"), trine_ref_value(ref, "out_b")
        };
        for (int i = 0; i < 2; i++) {
            if (none[i]) lse[i][at] = -INFINITY;
            for (int64_t c = 0; none[i] && c < d; c++) out[i][row * d + c] = row % 2 ? NAN : INFINITY;
        }
    }
}

const trine_spec trine_spec_attention_merge = {
    SPEC(attention_merge),
    .summary = "One state of attention of two, each over keys of its own",
    .formula =
        "out = (exp(lse_a) out_a + exp(lse_b) out_b) / (exp(lse_a) + exp(lse_b)), lse = log(exp(lse_a) + exp(lse_b)). "
        "A state whose lse is -Inf has no weight, whatever its out; of two such out = 0, lse = -Inf; NaN and +Inf make "
        "both NaN",
    .source = "Dao 2023 (FlashAttention-2), section 3.1.1; Juravsky et al. 2024 (Hydragen)",
    .tensors = { TENSOR(out_a, IN, "S", "[b] sq h d", .fill = "saved"),
                 TENSOR(lse_a, IN, "f32", "[b] h sq", .fill = "saved"),
                 TENSOR(out_b, IN, "S", "[b] sq h d", .fill = "saved"),
                 TENSOR(lse_b, IN, "f32", "[b] h sq", .fill = "saved"),
                 TENSOR(out, OUT, "T", "[b] sq h d", .terms = "24"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "[b] h sq", .terms = "24") },
    .types = { "S=f32 T=f32|bf16|f16", "S=bf16 T=bf16", "S=f16 T=f16" },
    .alias = { "out=out_a", "out=out_b", "lse=lse_a", "lse=lse_b" },
    .flops = "4*b*sq*h*d",
    .independent = "b",
    .sizes = { "b: 1 0 2 5", "sq: 1 0 2 33", "h: 1 0 3 8 32", "d: 1 0 8 40 64 127 128 576 1000" },
    .cases = { "decode: S=f32 T=bf16 b=64 sq=1 h=32 d=128 +lse", "prefill: S=bf16 T=bf16 b=1 sq=8192 h=32 d=128 +lse",
               "latent: S=bf16 T=bf16 b=16 sq=1 h=128 d=512 +lse" },
    .reference = reference,
    .prepare = prepare,
};
