/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of attention and attention_backward share: sequences, masks, and a score with the error that
 * kernels may make in it. */
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
    double scale, softcap;
    bool causal;
    int64_t window;
    double lost; /* the error of rounding to a subnormal of T, or of flushing one of f32 */
} attention;

static inline attention attention_of(const trine_ref *ref, double scale, double softcap, bool causal, int64_t window) {
    attention a = { .softcap = softcap, .causal = causal, .window = window };
    a.b = trine_ref_dim(ref, "b"), a.sq = trine_ref_dim(ref, "sq"), a.sk = trine_ref_dim(ref, "sk");
    a.h = trine_ref_dim(ref, "h"), a.hk = trine_ref_dim(ref, "hk"), a.d = trine_ref_dim(ref, "d"),
    a.nseq = trine_ref_dim(ref, "nseq");
    a.q = trine_ref_value(ref, "q"), a.k = trine_ref_value(ref, "k"), a.v = trine_ref_value(ref, "v");
    a.cu_q = trine_ref_value(ref, "cu_seqlens_q"), a.cu_k = trine_ref_value(ref, "cu_seqlens_k");
    a.scale = scale != 0 ? scale : 1 / sqrt((double)a.d);
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

/* The keys [first, last) that query i sees. */
static inline void visible_keys(const attention *a, int64_t i, int64_t *first, int64_t *last) {
    int64_t q1 = a->sq, k0 = 0, k1 = a->sk;
    for (int64_t s = 0; a->cu_q && s < a->nseq; s++) {
        if (i < a->cu_q[s] || i >= a->cu_q[s + 1]) continue;
        q1 = (int64_t)a->cu_q[s + 1], k0 = (int64_t)a->cu_k[s], k1 = (int64_t)a->cu_k[s + 1];
    }
    const int64_t same = k1 - (q1 - i); /* the key aligned with query i, or beyond either end */
    *first = k0, *last = k1;
    if (a->causal && same + 1 < *last) *last = same + 1;
    if (a->window > 0 && a->window < a->sq + a->sk) {
        if (same + a->window < *last) *last = same + a->window;
        if (same - a->window + 1 > *first) *first = same - a->window + 1;
    }
    if (*last < *first) *last = *first;
}

/* A score and what a kernel may make of it.
 *
 * s = scale q.k is a sum of d products, each of which passes through at most d roundings; scale, its rounding to f32
 * (1/sqrt(d)), and log2(e) or 1/c folded into it add four: (d + 4) u scale sum |q||k|. Inputs and products below 2^-126
 * may be flushed. c tanh(s/c) does not enlarge an error, and adds tanh to 4 ulp (8u) and three products, together 11u
 * |z|. */
typedef struct score {
    double z;       /* after softcap */
    double error;   /* absolute */
    double slope;   /* dz/ds */
    bool uncertain; /* an f32 intermediate may overflow where the exact value does not */
} score;

static inline score score_of(const attention *a, const double *q, const double *k) {
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
    return r;
}

/* The scores of query i of a head with the keys it sees, and log sum exp of them: -Inf if it sees none, or only scores
 * of -Inf; NaN with a score of NaN or +Inf. Returns the number of scores. */
static inline int64_t score_row(const attention *a, int64_t n, int64_t i, int64_t head, score *scores,
                                int64_t *first_out, double *lse_out) {
    int64_t first, last;
    visible_keys(a, i, &first, &last);
    double top = -INFINITY, sum = 0;
    bool valid = true;
    for (int64_t j = first; j < last; j++) {
        const score s = scores[j - first] =
            score_of(a, a->q + query_row(a, n, i, head) * a->d, a->k + key_row(a, n, j, head) * a->d);
        top = fmax(top, s.z);
        valid &= s.z < INFINITY;
    }
    for (int64_t j = first; j < last; j++) sum += top > -INFINITY ? exp(scores[j - first].z - top) : 0;
    *first_out = first;
    *lse_out = valid ? top + log(sum) : NAN;
    return last - first;
}

#endif
