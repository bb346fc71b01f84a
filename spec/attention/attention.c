/* SPDX-License-Identifier: Apache-2.0 */
/* attention: the table and the reference. */
#include <stdlib.h>

#include "attention.h"

#define ARGS trine_attention_args

/* Bound, for a row whose visible keys j have scores z_j, of which Z is the largest absolute value, and p_j = exp(z_j -
 * lse). A sink counts as a key whose value is 0. By dropout, v_j is what it is multiplied by times the value, and the
 * product with 1/(1 - p) rounds once more.
 *
 * A kernel computes o = sum_j P_j v_j / sum_j P_j with P_j = exp(z_j - m), m a running maximum, m <= Z.
 * 1. Each exponent is off by at most e_j: the score's own error, 4u(|z_j| + Z) for the difference and its product with
 * log2(e), and 6uZ for the rescalings
 *    that follow, whose exponents add up to at most 2Z. So P_j = P_j' (1 + eta_j), |eta_j| <= expm1(e_j), and o moves
 *      by the mean of eta_j (v_j - o): at most exp(max e) sum_j p_j expm1(e_j) (|v_j| + |o|); and never out of the hull
 *      of the v_j. Where e_j are large that says nothing of a row that has one score far above the others; but no
 *      weight is more than 1, nor than exp(e_j + e_t + z_j - z_t), t the largest score's key: at most the sum over j
 *      of that times |v_j - o|. This is slack.
 * 2. Both sums pass each term through at most sk additions and a product, exp to 4 ulp (8u), and one rescaling for 16
 * keys (9u each): together
 *    1.57 sk + 18, and the division 4u; with second-order terms (2 sk + 32) u of sum_j p_j |v_j|, the magnitude, for
 *      the numerator, and as much of |o| for the denominator (slack).
 * 3. P_j may be rounded to T before the product with v_j, though not in the denominator: u(T) of the magnitude. Where
 * P_j is subnormal in T that is an
 *    absolute error instead, as is flushing; the denominator relative to the largest term is l = sum_j exp(z_j - max z)
 *      >= 1.
 * lse = m + log(sum): sum as above, log to 4 ulp, and the conversion of m from base 2. */
typedef struct row {
    double lse, top, range, error, l; /* range: Z; error: the largest e_j */
    bool uncertain;
    sight sees;
    int64_t count;
    double *p, *spread, *most, *kept; /* p_j; p_j expm1(e_j); the largest weight; what dropout multiplies it by */
} row;

static void measure(const score *scores, row *r) {
    r->top = -INFINITY, r->range = 0, r->error = 0, r->l = 0, r->uncertain = false;
    for (int64_t j = 0; j < r->count; j++) {
        r->uncertain |= scores[j].uncertain;
        r->top = fmax(r->top, scores[j].z);
        if (isfinite(scores[j].z)) r->range = fmax(r->range, fabs(scores[j].z));
    }
    double at_top = 0; /* of the keys with the largest score the one that is off by the most */
    for (int64_t j = 0; j < r->count; j++)
        if (scores[j].z == r->top) at_top = fmax(at_top, scores[j].error + U * 14 * r->range);
    for (int64_t j = 0; j < r->count; j++) {
        const double z = scores[j].z, e = scores[j].error + U * (4 * fabs(z) + 10 * r->range);
        r->most[j] = isfinite(z) ? fmin(1, exp(z - r->top + e + at_top)) : 0;
        r->p[j] = exp(z - r->lse);
        r->spread[j] = r->p[j] > 0 ? r->p[j] * expm1(fmin(e, 1)) : 0;
        r->l += exp(z - r->top);
        if (isfinite(z)) r->error = fmax(r->error, e);
    }
}

/* Element c of the row's output. */
static void output(const attention *a, const row *r, const double *v, int64_t stride, double *value, double *magnitude,
                   double *slack) {
    const int64_t keys = r->sees.last - r->sees.first; /* a score behind them is a sink's */
    double sum = 0, size = 0, all = 0, moved = 0, moved_by_o = 0, largest = 0;
    bool uncertain = r->uncertain;
    for (int64_t j = 0; j < r->count; j++) {
        const double x = j < keys ? r->kept[j] * v[j * stride] : 0;
        sum += r->p[j] * x;
        moved_by_o += r->spread[j];
        /* An infinite v_j gives Inf or NaN according to whether P_j underflows. */
        if (isinf(x)) uncertain |= r->p[j] > 0 && log(r->p[j] * r->l) - 2 * r->error < -13;
        if (!isfinite(x)) continue;
        size += r->p[j] * fabs(x);
        moved += r->spread[j] * fabs(x);
        all += fabs(x);
        largest = fmax(largest, fabs(x));
    }
    uncertain |= all > 0.5 * trine_largest(TRINE_F32);
    *value = uncertain ? 0 : sum;
    *magnitude = uncertain ? INFINITY : isfinite(size) ? size : 0;
    if (uncertain || !isfinite(sum)) return;
    const double o = fabs(sum), n = (double)r->count, terms = 2 * (double)a->sk + 32;
    double hull = 0;
    for (int64_t j = 0; j < r->count; j++) {
        const double x = j < keys ? r->kept[j] * v[j * stride] : 0;
        if (isfinite(x)) hull += r->most[j] * fabs(x - sum);
    }
    hull = fmin(hull, largest + o);
    *slack = r->error < 1 ? fmin(hull, exp(r->error) * (moved + moved_by_o * o)) : hull;
    if (a->dropout > 0) *slack += 1.01 * U * size;
    *slack += terms * U * o + (a->lost * all + n * FLUSH * (1 + o)) / r->l + FLUSH;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const attention a = ATTENTION_OF(ref, args);
    double *o = trine_ref_value(ref, "o"), *o_magnitude = trine_ref_magnitude(ref, "o"),
           *o_slack = trine_ref_slack(ref, "o");
    double *lse = trine_ref_value(ref, "lse"), *lse_magnitude = trine_ref_magnitude(ref, "lse"),
           *lse_slack = trine_ref_slack(ref, "lse");
    score *scores = malloc(sizeof *scores * (size_t)(a.sk + 1));
    const size_t bytes = sizeof(double) * (size_t)(a.sk + 1);
    row r = { .p = malloc(bytes), .spread = malloc(bytes), .most = malloc(bytes), .kept = malloc(bytes) };
    for (int64_t n = 0; n < a.b; n++)
        for (int64_t i = 0; i < a.sq; i++)
            for (int64_t head = 0; head < a.h; head++) {
                r.count = score_row(&a, n, i, head, scores, &r.sees, &r.lse);
                measure(scores, &r);
                for (int64_t j = r.sees.first; j < r.sees.last; j++) r.kept[j - r.sees.first] = kept(&a, n, i, head, j);
                const int64_t at = query_row(&a, n, i, head) * a.d, stride = a.hk * a.d,
                              lse_at = (n * a.h + head) * a.sq + i;
                const bool masked = r.lse == -INFINITY && !r.uncertain;
                for (int64_t c = 0; c < a.d; c++) {
                    if (masked)
                        o[at + c] = 0;
                    else
                        output(&a, &r, a.v + key_row(&a, n, r.sees.first, head) * a.d + c, stride, o + at + c,
                               o_magnitude + at + c, o_slack + at + c);
                }
                if (lse == NULL) continue;
                lse[lse_at] = r.uncertain ? 0 : r.lse;
                lse_magnitude[lse_at] = r.uncertain ? INFINITY : isfinite(r.lse);
                lse_slack[lse_at] =
                    isfinite(r.lse) ? r.error * exp(fmin(r.error, 1)) + U * (4 * r.range + 10 * log(r.l)) + FLUSH : 0;
            }
    free(scores), free(r.p), free(r.spread), free(r.most), free(r.kept);
}

const trine_spec trine_spec_attention = {
    SPEC(attention),
    .summary = "Scaled dot-product attention",
    .formula =
        "o[b,i,h] = sum_j p_j r_j v[b,j,g], g = h/(H/Hk); p_j = exp(z_j - lse), lse = log(sum_j exp(z_j) + "
        "exp(sinks[h])) over the visible j, without a last term if there are no sinks; z_j = c tanh(s_j/c), or s_j "
        "if the softcap c is 0, + bias[b,h,i,j] - alibi_slopes[b,h] |i + sk - sq - j|; s_j = scale "
        "q[b,i,h].k[b,j,g]. j is visible iff (causal) j <= i + sk - sq and "
        "(window w) |i + sk - sq - j| < w and (window_left w) i + sk - sq - j < w and (window_right w) j - i - sk "
        "+ sq < w, within the same sequence. r_j is 1, or with dropout 1/(1-dropout) rounded to f32 where element "
        "((b H + h) sq + i) 8 ceil(sk/8) + j is kept by dropout's rule, else 0. o = 0, lse = -Inf where none is "
        "visible or every score is -Inf",
    .source =
        "Dao 2023 (FlashAttention-2), algorithm 1; softcap: Gemma 2; Press et al. 2022 (ALiBi), section 3; sinks: "
        "Xiao et al. 2024, section 3.2, as learnt by gpt-oss",
    .tensors = { TENSOR(q, IN, "T", "[b] sq h d"), TENSOR(k, IN, "T", "[b] sk hk d"), TENSOR(v, IN, "T", "[b] sk hk d"),
                 TENSOR(cu_seqlens_q, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sq"),
                 TENSOR(cu_seqlens_k, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sk"),
                 TENSOR(seqused_q, IN | OPTIONAL, "i32", "nused", .fill = "lengths sq cu_seqlens_q"),
                 TENSOR(seqused_k, IN | OPTIONAL, "i32", "nused", .fill = "lengths sk cu_seqlens_k"),
                 TENSOR(bias, IN | OPTIONAL | BROADCAST, "B", "[b] [h] [sq] sk"),
                 TENSOR(alibi_slopes, IN | OPTIONAL | BROADCAST, "f32", "[b] h"),
                 TENSOR(sinks, IN | OPTIONAL, "B", "h"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(o, OUT, "T", "[b] sq h d", .terms = "2*sk + 32", .rounds = "1"),
                 TENSOR(lse, OUT | OPTIONAL, "f32", "[b] h sq", .terms = "2*sk + 32") },
    .params = { ATTENTION_PARAMS },
    .types = { "T=f32 B=f32", "T=bf16 B=bf16|f32", "T=f16 B=f16|f32" },
    .require = { "hk > 0", "h % hk == 0", "d > 0", "cu_seqlens_q <-> cu_seqlens_k", "with cu_seqlens_q: b == 1",
                 "with seqused_q: nused == max(b, nseq)", "with seqused_k: nused == max(b, nseq)",
                 "philox instead of seed" },
    .flops = "4*b*sq*sk*h*d",
    .masked = "sq sk",
    .independent = "b",
    .sizes = { "b: 1 0 2", "sq: 1 0 2 7 64 113 203 300", "sk: 1 0 3 16 97 128 203 1100", "h: 1 2 4 8", "hk: 1 2 4",
               "d: 1 3 16 40 64 80 128 256", "nseq: 1 2 5", "nused: 1 2 5" },
    .cases = { "llama3-8b prefill: T=bf16 sq=1024 sk=1024 h=32 hk=8 d=128 causal=1",
               "gpt2: T=f32 b=2 sq=1024 sk=1024 h=12 hk=12 d=64 causal=1",
               "square f32: T=f32 sq=1024 sk=1024 h=8 hk=8 d=128",
               "square f32 d64: T=f32 sq=1024 sk=1024 h=8 hk=8 d=64",
               "square bf16: T=bf16 sq=1024 sk=1024 h=8 hk=8 d=128",
               "llama3-8b decode: T=bf16 b=4 sq=1 sk=8192 h=32 hk=8 d=128",
               "multi-head decode: T=f16 b=4 sq=1 sk=4096 h=16 hk=16 d=64",
               "gemma2 local: T=bf16 sq=2048 sk=2048 h=8 hk=4 d=256 causal=1 softcap=50 window=512",
               "packed: T=bf16 sq=2048 sk=2048 h=16 hk=4 d=64 nseq=8 causal=1 +cu_seqlens_q +cu_seqlens_k",
               "alibi: T=bf16 b=2 sq=2048 sk=2048 h=16 hk=16 d=64 causal=1 +alibi_slopes",
               "bias: T=bf16 b=2 sq=1024 sk=1024 h=16 hk=16 d=64 +bias",
               "gpt-oss local: T=bf16 sq=4096 sk=4096 h=64 hk=8 d=64 causal=1 window_left=128 +sinks",
               "dropout: T=bf16 b=4 sq=1024 sk=1024 h=16 hk=16 d=64 causal=1 dropout=0.1" },
    .reference = reference,
};
