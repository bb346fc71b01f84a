/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of scans share: sequences, and a state with the error that kernels may make in it. */
#ifndef TRINE_SPEC_SCAN_H
#define TRINE_SPEC_SCAN_H

#include "spec/spec.h"

#define U 0x1p-24      /* unit roundoff of f32 */
#define FLUSH 0x1p-126 /* what is lost at most when a subnormal f32 is taken for zero */

/* Sequences of a batch, or packed ones, each of which has a row of states. */
typedef struct scan_sequences {
    int64_t t, n, count;
    const double *cu; /* NULL: the members of the batch */
    bool reverse;
} scan_sequences;

static inline scan_sequences scan_sequences_of(const trine_ref *ref, bool reverse) {
    scan_sequences s = { .t = trine_ref_dim(ref, "t"), .n = trine_ref_dim(ref, "n"), .reverse = reverse };
    s.cu = trine_ref_value(ref, "cu_seqlens");
    s.count = s.cu ? trine_ref_dim(ref, "nseq") : trine_ref_dim(ref, "b");
    return s;
}

/* The rows of all batches, one behind the other, that are sequence i's. */
static inline int64_t scan_first(const scan_sequences *s, int64_t i) { return s->cu ? (int64_t)s->cu[i] : i * s->t; }
static inline int64_t scan_steps(const scan_sequences *s, int64_t i) {
    return s->cu ? (int64_t)(s->cu[i + 1] - s->cu[i]) : s->t;
}
/* The place of element j of step k, in the order of the scan. */
static inline int64_t scan_place(const scan_sequences *s, int64_t i, int64_t k, int64_t j) {
    return (scan_first(s, i) + (s->reverse ? scan_steps(s, i) - 1 - k : k)) * s->n + j;
}
/* Where the room behind the last sequence begins. */
static inline int64_t scan_end(const scan_sequences *s) { return (s->cu ? (int64_t)s->cu[s->count] : s->count * s->t); }

/* Bound, u = 2^-24. h = g h' + x rounds the product and the sum, or both at once. Let M = |g| M' + |x| be the sum of
 * all terms' absolute values, no less than |h|, and E u what h is off by at most, E' u that of h'. Then the product is
 * off by |g| E' u, by u |g| (M' + E' u) for its rounding, and the sum's rounding adds u (|g| M' + |x|) and as much of
 * what is off already: E = (1 + 4u) (|g| E' + 2 |g| M' + |x|). That is two roundings of each step that a term passes
 * through, so that it holds of time in chunks too, whose products of gates have no more. Products that are flushed
 * lose FLUSH in a step, which later gates scale. Where M may overflow nothing is known from there on, nor where a
 * factor is infinite and the other, by its error, might be zero or of the other sign. */
typedef struct scan_state {
    double h, size, error, lost; /* size: M; error: E */
    bool uncertain;
} scan_state;

/* Is a b another Inf or NaN if a is off by as much as a state may be, or b, which is exact, is flushed? */
static inline bool scan_unsure(const scan_state *a, double b) {
    const double off = U * a->error + a->lost;
    const bool vague = a->h == 0 ? off > 0 : fabs(a->h) < off + FLUSH;
    return (isinf(b) && vague) || (isinf(a->h) && fabs(b) < FLUSH && b != 0);
}

/* After one more step; from no state at all, g NULL, the term as it is. */
static inline void scan_step(scan_state *s, const double *g, double x) {
    const double gate = g ? trine_finite_abs(*g) : 0, term = trine_finite_abs(x);
    s->uncertain |= g && scan_unsure(s, *g);
    s->error = g ? (1 + 4 * U) * (gate * (s->error + 2 * s->size) + term) : 0;
    s->lost = g ? gate * s->lost + 2 * FLUSH : 0;
    s->size = gate * s->size + term;
    s->h = (g ? *g * s->h : 0) + x;
    s->uncertain |= !(s->size + U * s->error < trine_largest(TRINE_F32));
}

/* What comes out of a state, to element `at` of output `name`, which may be absent. A type of 8 bits or more has 1/128
 * of the error for its own rounding. */
static inline void scan_put(trine_ref *ref, const char *name, int64_t at, const scan_state *s) {
    if (trine_ref_value(ref, name) == NULL) return;
    trine_ref_value(ref, name)[at] = s->uncertain ? 0 : s->h;
    trine_ref_magnitude(ref, name)[at] = s->uncertain ? INFINITY : 1.0078125 * s->error;
    trine_ref_slack(ref, name)[at] = 1.0078125 * s->lost;
}

/* The product of a state and an exact factor. */
static inline scan_state scan_product(const scan_state *s, double factor) {
    const double size = trine_finite_abs(factor);
    scan_state p = { .h = s->h * factor,
                     .size = size * s->size,
                     .error = (1 + 4 * U) * size * (s->error + s->size),
                     .lost = size * s->lost + FLUSH,
                     .uncertain = s->uncertain || scan_unsure(s, factor) };
    p.uncertain |= !(p.size + U * p.error < trine_largest(TRINE_F32));
    return p;
}

#endif
