/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of attention and attention_backward share: sequences, masks, dropout, and a score with the error
 * that kernels may make in it. */
#ifndef TRINE_SPEC_ATTENTION_H
#define TRINE_SPEC_ATTENTION_H

#include "spec/spec.h"

#define U 0x1p-24      /* unit roundoff of f32 */
#define FLUSH 0x1p-126 /* what is lost at most when a subnormal f32 is taken for zero */

/* An lse of this size and more is so coarse in f32 that gradients take no p beyond 1 from it. */
#define ATTENTION_COARSE 0x1p17

typedef struct attention {
    int64_t b, sq, sk, h, hk, d, nseq;
    const double *q, *k, *v, *cu_q, *cu_k; /* cu_*: NULL, or where each sequence starts */
    const double *used_q, *used_k;         /* NULL, or the tokens of each sequence that count */
    const double *bias, *slopes, *sinks;   /* each NULL if absent; of full shape */
    double scale, softcap;
    bool causal;
    int64_t before, after; /* keys before and after the one aligned with a query from which on it sees none; 0: none */
    float dropout;
    uint64_t seed, offset, batch; /* of dropout; batch: that of the call which is this one's first */
    double lost;                  /* the error of rounding to a subnormal of T, or of flushing one of f32 */
    const bool *absent;           /* NULL, or the keys that are not there: they have no weight */
} attention;

/* The parameters, which are alike in both ops. */
#define ATTENTION_PARAMS \
    PARAM(scale, F32, .values = "0 0.3 -1", .unset = "1/sqrt(d)", .doc = "of the scores"), \
        PARAM(softcap, F32, .values = "0 1 30", .min = 0, .doc = "c: scores become c tanh(score/c); 0: they do not"), \
        PARAM(causal, BOOL, .values = "0 1", .doc = "1: query i sees key j only if j <= i + sk - sq"), \
        PARAM(window, I64, .values = "0 1 3 40", .min = 0, \
              .doc = "w: query i sees key j only if |i + sk - sq - j| < w; 0: unlimited"), \
        PARAM(window_left, I64, .values = "0 1 5 33", .min = 0, \
              .doc = "w: query i sees key j only if i + sk - sq - j < w; 0: unlimited"), \
        PARAM(window_right, I64, .values = "0 1 4 17", .min = 0, \
              .doc = "w: query i sees key j only if j - (i + sk - sq) < w; 0: unlimited"), \
        PARAM(dropout, F32, .values = "0 0.1 0.5", .min = 0, .max = 0x1.fffffep-1, \
              .doc = "probability of dropping a weight"), \
        PARAM(seed, U64, .values = "1 1234567890123456789", .doc = "dropout's key"), \
        PARAM(offset, U64, .values = "0 12884901893", .doc = "dropout's stream")

/* What they say to the references. */
#define ATTENTION_OF(ref, args) \
    attention_of(ref, (args)->scale, (args)->softcap, (args)->causal, \
                 (const int64_t[]){ (args)->window, (args)->window_left, (args)->window_right }, (args)->dropout, \
                 (args)->seed, (args)->offset)

static inline int64_t narrower(int64_t a, int64_t b) { return a == 0 || (b > 0 && b < a) ? b : a; }

static inline attention attention_of(const trine_ref *ref, double scale, double softcap, bool causal,
                                     const int64_t windows[3], float dropout, uint64_t seed, uint64_t offset) {
    attention a = { .softcap = softcap, .causal = causal, .dropout = dropout, .seed = seed, .offset = offset };
    a.b = trine_ref_dim(ref, "b"), a.sq = trine_ref_dim(ref, "sq"), a.sk = trine_ref_dim(ref, "sk");
    a.h = trine_ref_dim(ref, "h"), a.hk = trine_ref_dim(ref, "hk"), a.d = trine_ref_dim(ref, "d"),
    a.nseq = trine_ref_dim(ref, "nseq");
    a.q = trine_ref_value(ref, "q"), a.k = trine_ref_value(ref, "k"), a.v = trine_ref_value(ref, "v");
    a.cu_q = trine_ref_value(ref, "cu_seqlens_q"), a.cu_k = trine_ref_value(ref, "cu_seqlens_k");
    a.used_q = trine_ref_value(ref, "seqused_q"), a.used_k = trine_ref_value(ref, "seqused_k");
    a.bias = trine_ref_value(ref, "bias"), a.slopes = trine_ref_value(ref, "alibi_slopes");
    a.sinks = trine_ref_value(ref, "sinks");
    a.scale = scale != 0 ? scale : 1 / sqrt((double)a.d);
    a.before = narrower(windows[0], windows[1]), a.after = narrower(windows[0], windows[2]);
    trine_ref_philox(ref, &a.seed, &a.offset);
    if (ref->first > 0) a.batch = ref->first / (uint64_t)(a.sq * a.h * a.d);
    const trine_dtype T = trine_ref_type(ref, "T");
    a.lost = fmax(FLUSH, trine_smallest_normal(T) * trine_unit_roundoff(T));
    return a;
}

/* Row i of q, o and dout, row j of k and v, among those of batch n. */
static inline int64_t query_row(const attention *a, int64_t n, int64_t i, int64_t head) {
    return (n * a->sq + i) * a->h + head;
}
static inline int64_t key_row(const attention *a, int64_t n, int64_t j, int64_t head) {
    return (n * a->sk + j) * a->hk + head / (a->h / a->hk);
}

/* What query i of batch n sees: keys [first, last), and the one that is aligned with it, or a place beyond either end.
 * */
typedef struct sight {
    int64_t first, last, aligned;
    bool counts; /* else it is beyond those that are used, or behind the last sequence */
} sight;

static inline sight sight_of(const attention *a, int64_t n, int64_t i) {
    int64_t s = n, q0 = 0, queries = a->sq, k0 = 0, keys = a->sk;
    if (a->cu_q) {
        for (s = 0; s < a->nseq; s++)
            if (i >= a->cu_q[s] && i < a->cu_q[s + 1]) break;
        if (s == a->nseq) return (sight){ 0 };
        q0 = (int64_t)a->cu_q[s], queries = (int64_t)a->cu_q[s + 1] - q0;
        k0 = (int64_t)a->cu_k[s], keys = (int64_t)a->cu_k[s + 1] - k0;
    }
    if (a->used_q) queries = (int64_t)a->used_q[s];
    if (a->used_k) keys = (int64_t)a->used_k[s];
    if (i - q0 >= queries) return (sight){ 0 };
    sight r = { k0, k0 + keys, k0 + keys - queries + (i - q0), true };
    if (a->causal && r.aligned + 1 < r.last) r.last = r.aligned + 1;
    if (a->after > 0 && a->after < a->sq + a->sk && r.aligned + a->after < r.last) r.last = r.aligned + a->after;
    if (a->before > 0 && a->before < a->sq + a->sk && r.aligned - a->before + 1 > r.first)
        r.first = r.aligned - a->before + 1;
    if (r.last < r.first) r.last = r.first;
    return r;
}

/* What a weight is multiplied by: 1, or by dropout 0 or 1/(1 - p). */
static inline double kept(const attention *a, int64_t n, int64_t i, int64_t head, int64_t j) {
    if (!(a->dropout > 0)) return 1;
    const uint64_t columns = ((uint64_t)a->sk + 7) / 8 * 8,
                   row = ((a->batch + (uint64_t)n) * (uint64_t)a->h + (uint64_t)head) * (uint64_t)a->sq + (uint64_t)i;
    return trine_dropout_keep(a->seed, a->offset, row * columns + (uint64_t)j, a->dropout)
               ? trine_dropout_scale(a->dropout)
               : 0;
}

/* A score and what a kernel may make of it.
 *
 * s = scale q.k is a sum of d products, each of which passes through at most d roundings; scale, its rounding to f32
 * (1/sqrt(d)), and log2(e) or 1/c folded into it add four: (d + 4) u scale sum |q||k|. Inputs and products below 2^-126
 * may be flushed. c tanh(s/c) does not enlarge an error, and adds tanh to 4 ulp (8u) and three products, together 11u
 * |z|. What is added to that, a bias and a slope times a distance, rounds to f32 in each of two sums and two products:
 * 4u of the sizes of all three. */
typedef struct score {
    double z;       /* after softcap */
    double error;   /* absolute */
    double bent;    /* that without what is added after softcap */
    double slope;   /* dz/ds */
    bool uncertain; /* an f32 intermediate may overflow where the exact value does not */
} score;

static inline score score_of(const attention *a, int64_t n, int64_t i, int64_t head, int64_t j, int64_t aligned) {
    const double *q = a->q + query_row(a, n, i, head) * a->d, *k = a->k + key_row(a, n, j, head) * a->d;
    double dot = 0, size = 0, inputs = 0, largest = 0;
    const double scale = fabs(a->scale);
    for (int64_t c = 0; c < a->d; c++) {
        dot += q[c] * k[c];
        if (isfinite(q[c] * k[c])) size += fabs(q[c] * k[c]);
        if (isfinite(q[c])) inputs += fabs(q[c]), largest = fmax(largest, fabs(q[c]));
        if (isfinite(k[c])) inputs += fabs(k[c]);
    }
    score r = { .z = a->scale * dot, .slope = 1 };
    r.error = ((double)a->d + 4) * U * scale * size + fmax(1, scale) * FLUSH * (inputs + 2 * (double)a->d);
    r.uncertain = size * fmax(1, 1.5 * scale) > 0.5 * trine_largest(TRINE_F32) ||
                  1.5 * scale * largest > 0.5 * trine_largest(TRINE_F32);
    if (a->softcap > 0) {
        const double t = tanh(r.z / a->softcap);
        r.z = a->softcap * t;
        r.slope = 1 - t * t;
        r.error = fmin(r.error, 2 * a->softcap) + 11 * U * fabs(r.z) + FLUSH * a->softcap;
    }
    r.bent = r.error;
    if (a->bias == NULL && a->slopes == NULL) return r;
    const double bias = a->bias ? a->bias[((n * a->h + head) * a->sq + i) * a->sk + j] : 0,
                 slope = a->slopes ? a->slopes[n * a->h + head] * -fabs((double)(aligned - j)) : 0;
    const double sizes = trine_finite_abs(r.z) + trine_finite_abs(bias) + trine_finite_abs(slope);
    r.z += bias + slope;
    r.error += 4 * (U * sizes + FLUSH);
    r.uncertain |= 1.5 * sizes > 0.5 * trine_largest(TRINE_F32);
    return r;
}

/* A sink counts as one more score, of no value. */
static inline score sink_of(const attention *a, int64_t head) {
    const double z = a->sinks[head];
    return (score){ .z = z, .slope = 1, .uncertain = 1.5 * trine_finite_abs(z) > 0.5 * trine_largest(TRINE_F32) };
}

/* The scores of query i of a head with the keys it sees, then that of its sink, if it has one; and log sum exp of them:
 * -Inf if there are none, or only scores of -Inf; NaN with a score of NaN or +Inf. Returns the number of scores. */
static inline int64_t score_row(const attention *a, int64_t n, int64_t i, int64_t head, score *scores, sight *sight_out,
                                double *lse_out) {
    const sight seen = sight_of(a, n, i);
    int64_t count = 0;
    double top = -INFINITY, sum = 0;
    bool valid = true;
    for (int64_t j = seen.first; j < seen.last; j++)
        scores[count++] = a->absent && a->absent[j] ? (score){ .z = -INFINITY, .slope = 1 }
                                                    : score_of(a, n, i, head, j, seen.aligned);
    if (a->sinks && seen.counts) scores[count++] = sink_of(a, head);
    for (int64_t j = 0; j < count; j++) {
        top = fmax(top, scores[j].z);
        valid &= scores[j].z < INFINITY;
    }
    for (int64_t j = 0; j < count; j++) sum += top > -INFINITY ? exp(scores[j].z - top) : 0;
    *sight_out = seen;
    *lse_out = valid ? top + log(sum) : NAN;
    return count;
}

#endif
