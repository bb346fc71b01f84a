/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with the error that a kernel in f32 may make in them, which references carry along where bounds follow from
 * values: each operation rounds once, and what is subnormal may be flushed. */
#ifndef TRINE_SPEC_NEAR_H
#define TRINE_SPEC_NEAR_H

#include "spec.h"

#define U 0x1p-24      /* unit roundoff of f32 */
#define FLUSH 0x1p-126 /* what is lost at most when a subnormal f32 is taken for zero */

/* A number, and by how much a kernel's may be off; infinite: it may be anything. */
typedef struct near {
    double of, off;
} near;

static inline near near_of(double x) { return (near){ x, 0 }; }
static inline near near_any(void) { return (near){ 0, INFINITY }; }

/* Where a result may overflow nothing is known of it. */
static inline near near_bounded(near y) { return trine_finite_abs(y.of) + y.off < 0x1p126 ? y : near_any(); }

static inline near near_plus(near a, near b) {
    near y = { a.of + b.of, a.off + b.off };
    if (isinf(y.off)) return near_any();
    if (!isfinite(y.of)) return near_of(y.of);
    if (a.of != 0 && b.of != 0) y.off += U * (fabs(y.of) + y.off);
    return near_bounded(y);
}
static inline near near_minus(near a, near b) { return near_plus(a, (near){ -b.of, b.off }); }

/* Of an infinite factor the other, if it may be 0 or of either sign, says nothing; what is 0 makes NaN. */
static inline near near_times(near a, near b) {
    near y = near_of(a.of * b.of);
    if (isinf(a.off) || isinf(b.off)) return near_any();
    if (isinf(a.of) || isinf(b.of)) {
        const near *other = isinf(a.of) ? &b : &a;
        return fabs(other->of) < other->off + FLUSH && (other->of != 0 || other->off != 0) ? near_any() : y;
    }
    if (isnan(y.of) || (a.of == 0 && a.off == 0) || (b.of == 0 && b.off == 0)) return y;
    y.off = a.off * (fabs(b.of) + b.off) + fabs(a.of) * b.off;
    y.off += U * (fabs(y.of) + y.off) + FLUSH;
    return near_bounded(y);
}

/* A quotient by what is not near 0, with two roundings, since it may be a product with a reciprocal. */
static inline near near_over(near a, near b) {
    if (isinf(a.off) || isinf(b.off) || !isfinite(b.of) || !(fabs(b.of) > 2 * b.off)) return near_any();
    near y = near_of(a.of / b.of);
    if (!isfinite(y.of)) return y;
    y.off = (a.off + fabs(y.of) * b.off) / (fabs(b.of) - b.off);
    y.off += 3 * U * (fabs(y.of) + y.off) + FLUSH;
    return near_bounded(y);
}

/* e^x: a kernel's to 6u, and 8u with what follows. */
static inline near near_exp(near x) {
    if (isinf(x.off)) return near_any();
    near y = near_of(exp(x.of));
    if (x.of == 0 && x.off == 0) return near_of(1);
    if (isnan(x.of) || isinf(x.of)) return y;
    if (x.of + x.off < -105) return (near){ y.of, y.of };
    if (!(x.of + x.off < 87)) return near_any();
    y.off = y.of * expm1(x.off) + 8 * U * exp(x.of + x.off) + FLUSH;
    return y;
}

/* A sum of numbers in any order: its value, its terms' absolute values, and by how much these may be off. */
typedef struct near_sum {
    double of, size, off;
} near_sum;

static inline void near_add(near_sum *s, near term) {
    s->of += term.of, s->size += trine_finite_abs(term.of), s->off += term.off;
}

/* The sum as a number: of so many additions. */
static inline near near_total(const near_sum *s, int64_t additions) {
    const double off = s->off + (double)additions * U * (s->size + s->off);
    if (isinf(s->off) || s->size + off > 0x1p126) return near_any();
    return (near){ s->of, isfinite(s->of) ? off : 0 };
}

/* Writes an element: infinite `magnitude` or `slack`: it may be anything. */
static inline void near_put(trine_ref *ref, const char *name, int64_t at, double y, double magnitude, double slack) {
    const bool known = magnitude <= trine_largest(TRINE_F32) && !isinf(slack);
    trine_ref_value(ref, name)[at] = known ? y : 0;
    trine_ref_magnitude(ref, name)[at] = known ? magnitude : INFINITY;
    trine_ref_slack(ref, name)[at] = known ? slack : 0;
}

#endif
