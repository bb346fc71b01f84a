/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward: the table, the reference, and how tests come by o and lse. */
#include <stdlib.h>

#include "attention.h"

#define ARGS trine_attention_backward_args

/* Bound. With p = exp(z - lse), dp = dout.v, D = dout.o, f = dz/ds and ds = p (dp - D) f, o and lse taken as given:
 *     dv_j = sum_i p_ij dout_i,  dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i.
 * 1. The exponent z - lse is off by e: the score's own error, and 4u(|z| + |lse|) for the difference and its product
 * with log2(e); exp to 4 ulp (8u) and a product: p is off by `p_error` <= p (expm1(e) + 9u), and by all of itself and
 *    five times the least subnormal where what is computed may be subnormal, which may be taken for zero. Where |lse|
 *    is ATTENTION_COARSE and more, p is at most 1, by the formula and in kernels: then it is between min(1, p e^-e) and
 *    min(1, p e^e), and so never off by more than e, nor than 1.
 * 2. dp and D are sums of d products: off by d u (A + B) together, A = sum |dout||v|, B = sum |dout||o|; the difference
 * and two products add 3u. With f = 1 -
 *    t^2, t = tanh off by at most the score's error over c: f is off by twice that and 4u. So ds is off by
 *    `ds_error` <= (p_error f + p f (d + 8) u + (p + p_error) f_error) (A + B).
 * 3. The outer sums pass each term through at most one addition for each of their terms, a product, and two for scale:
 * (terms + 16) u of the magnitudes
 *    sum p |dout|, |scale| sum |ds||k| and |scale| sum |ds||q|. The errors above, summed the same way, are slack.
 * 4. p and ds may be rounded to T before the outer products: u(T) of the magnitudes;
 * or absolutely, where they are subnormal in T. */
typedef struct gradient {
    double *value, *magnitude, *slack;
} gradient;

static gradient gradient_of(const trine_ref *ref, const char *name) {
    return (gradient){ trine_ref_value(ref, name), trine_ref_magnitude(ref, name), trine_ref_slack(ref, name) };
}

/* Adds weight x, where `weight` is off by `error` and may be rounded with an absolute error of `lost`. An infinite term
 * may be NaN in a kernel where the weight underflows. */
static void add(gradient *g, int64_t at, double weight, double error, double lost, double x) {
    const double term = weight * x;
    g->value[at] += term;
    if (isinf(term)) g->magnitude[at] = INFINITY;
    if (!isfinite(term)) return;
    g->magnitude[at] += fabs(term);
    g->slack[at] += 1.01 * error * fabs(x) + lost * fabs(x) + FLUSH * (fabs(weight) + 1);
}

static void mark(gradient *g, int64_t at, int64_t d) {
    for (int64_t c = 0; c < d; c++) g->magnitude[at + c] = INFINITY;
}

/* Scales a finished gradient, and turns what may have overflowed into "anything": sums, with all that they may be off
 * by. */
static void finish(gradient *g, int64_t count, double scale) {
    for (int64_t i = 0; i < count; i++) {
        const double largest = (g->magnitude[i] + g->slack[i]) * fmax(1, fabs(scale));
        const bool uncertain = largest > 0.5 * trine_largest(TRINE_F32);
        g->value[i] = uncertain ? 0 : g->value[i] * scale;
        g->magnitude[i] = uncertain ? INFINITY : g->magnitude[i] * fabs(scale);
        g->slack[i] = g->slack[i] * fabs(scale) + FLUSH;
    }
}

/* One score's p and ds. */
typedef struct weights {
    double p, p_error, ds, ds_error;
    bool uncertain;
} weights;

typedef struct query {
    const double *dout, *v;
    double lse, D, size, inputs; /* size: B; inputs: sum |dout| + |o| */
} query;

static double attention_p(double z, double lse) {
    const double p = exp(z - lse);
    return fabs(lse) >= ATTENTION_COARSE && p > 1 ? 1 : p;
}

static weights weights_of(const attention *a, const query *x, const score *s, const double *v, double largest) {
    const bool coarse = fabs(x->lse) >= ATTENTION_COARSE;
    weights w = { .p = attention_p(s->z, x->lse), .uncertain = s->uncertain };
    double dp = 0, size = x->size, inputs = x->inputs + 4 * (double)a->d;
    for (int64_t c = 0; c < a->d; c++) {
        const double term = x->dout[c] * v[c];
        dp += term;
        if (isfinite(term)) size += fabs(term);
        if (isfinite(v[c])) inputs += fabs(v[c]);
    }
    if (isfinite(s->z) && isfinite(x->lse)) {
        const double e = s->error + 4 * U * (fabs(s->z) + fabs(x->lse));
        const double low = attention_p(s->z - e, x->lse), high = attention_p(s->z + e, x->lse);
        w.p_error = coarse ? fmax(w.p - low, high - w.p) : e < 1 ? w.p * expm1(e) : exp(s->z - x->lse + e);
        w.p_error += 9 * U * w.p + ((coarse ? low : w.p * exp(-e)) * (1 - 9 * U) < FLUSH ? w.p + 5 * 0x1p-149 : 0);
    }
    const double f_error = a->softcap > 0 ? fmin(1, 2 * s->error / a->softcap + 4 * U) : 0;
    const double above = w.p + w.p_error;
    w.ds = w.p * (dp - x->D) * s->slope;
    w.ds_error = (w.p_error * s->slope + w.p * s->slope * ((double)a->d + 8) * U + above * f_error) * size +
                 above * FLUSH * inputs;
    w.uncertain |= size > 0.5 * trine_largest(TRINE_F32) || above > 0.5 * largest || !isfinite(w.p_error);
    w.uncertain |= !isnan(w.ds) && (fabs(w.ds) + w.ds_error) * fmax(1, fabs(a->scale)) > 0.5 * largest;
    return w;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const attention a = attention_of(ref, args->scale, args->softcap, args->causal, args->window);
    const double *dout = trine_ref_value(ref, "dout"), *o = trine_ref_value(ref, "o"),
                 *lse = trine_ref_value(ref, "lse");
    const double largest = trine_largest(trine_ref_type(ref, "T")), lost = a.lost / fmin(1, fabs(a.scale));
    gradient dq = gradient_of(ref, "dq"), dk = gradient_of(ref, "dk"), dv = gradient_of(ref, "dv");
    const int64_t queries = a.b * a.sq * a.h * a.d, keys = a.b * a.sk * a.hk * a.d;
    for (int64_t i = 0; i < queries; i++) dq.value[i] = 0;
    for (int64_t i = 0; i < keys; i++) dk.value[i] = dv.value[i] = 0;
    for (int64_t row = 0; row < a.b * a.sq * a.h; row++) {
        const int64_t head = row % a.h, i = row / a.h % a.sq, n = row / a.h / a.sq, at = row * a.d;
        query x = { .dout = dout + at, .lse = lse[(n * a.h + head) * a.sq + i] };
        if (x.lse == -INFINITY) continue;
        for (int64_t c = 0; c < a.d; c++) {
            const double term = dout[at + c] * o[at + c];
            x.D += term;
            if (isfinite(term)) x.size += fabs(term), x.inputs += fabs(dout[at + c]) + fabs(o[at + c]);
        }
        int64_t first, last;
        visible_keys(&a, i, &first, &last);
        for (int64_t j = first; j < last; j++) {
            const int64_t key = key_row(&a, n, j, head) * a.d;
            const score s = score_of(&a, a.q + at, a.k + key);
            const weights w = weights_of(&a, &x, &s, a.v + key, largest);
            if (w.uncertain) mark(&dq, at, a.d), mark(&dk, key, a.d), mark(&dv, key, a.d);
            for (int64_t c = 0; c < a.d && !w.uncertain; c++) {
                add(&dv, key + c, w.p, w.p_error, a.lost, dout[at + c]);
                add(&dq, at + c, w.ds, w.ds_error, lost, a.k[key + c]);
                add(&dk, key + c, w.ds, w.ds_error, lost, a.q[at + c]);
            }
        }
    }
    finish(&dq, queries, a.scale), finish(&dk, keys, a.scale), finish(&dv, keys, 1);
}

/* o and lse as attention gives them. */
static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    const attention a = attention_of(ref, args->scale, args->softcap, args->causal, args->window);
    double *o = trine_ref_value(ref, "o"), *lse = trine_ref_value(ref, "lse");
    score *scores = malloc(sizeof *scores * (size_t)(a.sk + 1));
    for (int64_t row = 0; row < a.b * a.sq * a.h; row++) {
        const int64_t head = row % a.h, i = row / a.h % a.sq, n = row / a.h / a.sq, at = row * a.d;
        int64_t first;
        double sum;
        const int64_t count = score_row(&a, n, i, head, scores, &first, &sum);
        for (int64_t c = 0; c < a.d; c++) o[at + c] = 0;
        for (int64_t j = 0; j < count && sum != -INFINITY; j++)
            for (int64_t c = 0; c < a.d; c++)
                o[at + c] += exp(scores[j].z - sum) * a.v[key_row(&a, n, first + j, head) * a.d + c];
        lse[(n * a.h + head) * a.sq + i] = sum;
    }
    free(scores);
}

const trine_spec trine_spec_attention_backward = {
    SPEC(attention_backward),
    .summary = "Gradient of attention",
    .formula = "with p_ij = exp(z_ij - lse_i) over the visible pairs as in attention, at most 1 where |lse_i| >= 2^17, "
               "D_i = dout_i.o_i, ds_ij = p_ij "
               "(dout_i.v_j - D_i) (1 - (z_ij/c)^2): "
               "dq_i = scale sum_j ds_ij k_j; dk_j = scale sum_i ds_ij q_i; dv_j = sum_i p_ij dout_i, sums over i over "
               "the query heads of a group too. The "
               "last factor of ds only with a softcap c; a row with lse = -Inf gives nothing",
    .source = "Dao 2023 (FlashAttention-2), algorithm 2",
    .tensors = { TENSOR(dout, IN, "T", "[b] sq h d"), TENSOR(q, IN, "T", "[b] sq h d"),
                 TENSOR(k, IN, "T", "[b] sk hk d"), TENSOR(v, IN, "T", "[b] sk hk d"),
                 TENSOR(o, IN, "T", "[b] sq h d", .fill = "derived"),
                 TENSOR(lse, IN, "f32", "[b] h sq", .fill = "derived"),
                 TENSOR(cu_seqlens_q, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sq"),
                 TENSOR(cu_seqlens_k, IN | OPTIONAL, "i32", "nseq+1", .fill = "offsets sk"),
                 TENSOR(dq, OUT, "T", "[b] sq h d", .terms = "sk + 16", .rounds = "1"),
                 TENSOR(dk, OUT, "T", "[b] sk hk d", .terms = "sq*h/hk + 16", .rounds = "1"),
                 TENSOR(dv, OUT, "T", "[b] sk hk d", .terms = "sq*h/hk + 16", .rounds = "1") },
    .params = { PARAM(scale, F32, .values = "0 0.3 -1", .unset = "1/sqrt(d)", .doc = "of the scores"),
                PARAM(softcap, F32, .values = "0 1 30", .min = 0,
                      .doc = "c: scores become c tanh(score/c); 0: they do not"),
                PARAM(causal, BOOL, .values = "0 1", .doc = "1: query i sees key j only if j <= i + sk - sq"),
                PARAM(window, I64, .values = "0 1 3 40", .min = 0,
                      .doc = "w: query i sees key j only if |i + sk - sq - j| < w; 0: unlimited") },
    .types = { "T=f32|bf16|f16" },
    .require = { "hk > 0", "h % hk == 0", "d > 0", "cu_seqlens_q <-> cu_seqlens_k", "with cu_seqlens_q: b == 1" },
    .gradient = { "dout = d o" },
    .flops = "10*b*sq*sk*h*d",
    .masked = "sq sk",
    .independent = "b",
    .sizes = { "b: 1 0 2", "sq: 1 0 2 7 64 113 203 300", "sk: 1 0 3 16 97 128 203 1100", "h: 1 2 4 8", "hk: 1 2 4",
               "d: 1 3 16 40 64 80 128 256", "nseq: 1 2 5" },
    .cases = { "llama3-8b: T=bf16 sq=1024 sk=1024 h=32 hk=8 d=128 causal=1",
               "gpt2: T=f32 b=2 sq=1024 sk=1024 h=12 hk=12 d=64 causal=1",
               "square f32: T=f32 sq=1024 sk=1024 h=8 hk=8 d=128",
               "square f32 d64: T=f32 sq=1024 sk=1024 h=8 hk=8 d=64",
               "packed: T=bf16 sq=2048 sk=2048 h=16 hk=4 d=64 nseq=8 causal=1 +cu_seqlens_q +cu_seqlens_k" },
    .reference = reference,
    .prepare = prepare,
};
