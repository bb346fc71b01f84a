/* SPDX-License-Identifier: Apache-2.0 */
/* Running error analysis: values more exact than kernels have them, and how far kernels' may be from them, step by
 * step. Who includes this says what type values have here, REAL, and its roundoff, OWN; and of what chains compute in
 * the unit roundoff u, with what values here are off by, ROUNDOFF; what is lost at most when a subnormal number is
 * taken for 0, FLUSHED; the error of a rounding to one, SUBNORMAL; and the largest number, MOST.
 *
 * A value is `v`, and a kernel's is within `off` of it. If `off` is infinite nothing is known of a kernel's, which may
 * be NaN or Inf; if v is NaN or Inf otherwise, a kernel's is the same.
 *
 * What operands are off by goes through a step by the ends of their intervals: all functions are monotone in each
 * operand where they are defined (but |x|, whose least value is between the ends and no further from v than they are;
 * products of gates with their operand are taken as such). So the values at the ends, or at the corners of two
 * intervals, bound those between; where one of them is NaN or Inf and v is not, nothing is known. To this is added the
 * step's own error, in units of u of the largest result. */
#ifndef TRINE_SPEC_CHAIN_ERRORS_H
#define TRINE_SPEC_CHAIN_ERRORS_H

#include <stdbool.h>
#include <tgmath.h>

#include "parse.h"
#include "spec/norm/norm.h"

typedef struct chain_real {
    REAL v, off;
} chain_real;

#define UNKNOWN ((chain_real){ 0, INFINITY })

static inline bool real_known(chain_real x) { return !isinf(x.off); }
static inline bool real_is_nan(chain_real x) { return isnan(x.v) && real_known(x); }

/* v, which lies off by `units` u of the largest result and `more` besides. Nothing is known of one that may
 * overflow. */
static chain_real real_rounded(chain_real x, REAL units, REAL more) {
    if (!real_known(x)) return UNKNOWN;
    if (!isfinite(x.v)) return x;
    const REAL largest = fabs(x.v) + x.off;
    x.off += units * ROUNDOFF * largest + more;
    return largest + x.off > MOST ? UNKNOWN : x;
}

/* The interval about v that has all `count` ends. */
static chain_real real_hull(REAL v, const REAL *end, int count) {
    chain_real x = { v, 0 };
    for (int i = 0; i < count; i++) {
        if (isnan(v) ? isnan(end[i]) : end[i] == v) continue;
        if (!isfinite(v) || !isfinite(end[i])) return UNKNOWN;
        x.off = fmax(x.off, fabs(end[i] - v));
    }
    return x;
}

/* What a result loses that is subnormal, or taken for 0. */
static REAL real_lost(chain_real x) {
    if (!isfinite(x.v) || !real_known(x)) return 0;
    return fabs(x.v) - x.off < 2 * FLUSHED ? fmin(fabs(x.v) + x.off, FLUSHED) + SUBNORMAL : 0;
}

/* ------------------------------------------------------------------------------------------------------ one operand */

static REAL real_sigmoid(REAL x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

/* The normal distribution function, small results too. */
static REAL real_cdf(REAL x) { return erfc(-x * sqrt((REAL)0.5)) / 2; }

/* (1 + tanh(w))/2 = sigmoid(2 w); this is 2 w. */
static REAL real_gelu_argument(REAL x) {
    const REAL pi = (REAL)3.14159265358979323846264338327950288L;
    return 2 * sqrt(2 / pi) * (x + (REAL)0.044715L * x * x * x);
}

static REAL real_unary(int op, REAL x) {
    switch (op) {
    case CHAIN_NEG: return -x;
    case CHAIN_ABS: return fabs(x);
    case CHAIN_SQRT: return sqrt(x);
    case CHAIN_RSQRT: return 1 / sqrt(x);
    case CHAIN_EXP: return exp(x);
    case CHAIN_LOG: return log(x);
    case CHAIN_TANH: return tanh(x);
    case CHAIN_ERF: return erf(x);
    case CHAIN_SIGMOID: return real_sigmoid(x);
    case CHAIN_GELU: return real_cdf(x);
    case CHAIN_GELU_TANH: return real_sigmoid(real_gelu_argument(x));
    case CHAIN_RELU: return x < 0 ? 0 : x;
    case CHAIN_FLOOR: return floor(x);
    case CHAIN_TO_F32: return trine_round((double)x, TRINE_F32, false);
    case CHAIN_TO_BF16: return trine_round((double)x, TRINE_BF16, false);
    default: return trine_round((double)x, TRINE_F16, false);
    }
}

static chain_real real_ends(int op, chain_real x) {
    const REAL end[2] = { real_unary(op, x.v - x.off), real_unary(op, x.v + x.off) };
    return real_hull(real_unary(op, x.v), end, isfinite(x.v) ? 2 : 0);
}

/* The hull of a b for all of their values. */
static chain_real real_product(chain_real a, chain_real b) {
    const REAL end[4] = { (a.v - a.off) * (b.v - b.off), (a.v - a.off) * (b.v + b.off), (a.v + a.off) * (b.v - b.off),
                          (a.v + a.off) * (b.v + b.off) };
    return real_known(a) && real_known(b) ? real_hull(a.v * b.v, end, 4) : UNKNOWN;
}

/* x times a distribution function of x: sigmoid for silu, to 11 u, and one for the product. What kernels of gelu may be
 * off by is 14 u of a size (spec/elementwise/gelu.h), whose slope is less than 4 everywhere; the function loses where
 * it is small. */
static REAL real_gelu_size(int op, REAL x) {
    const REAL v = real_gelu_argument(x), gate = real_unary(op, x);
    const REAL moved = op == CHAIN_GELU_TANH ? fabs(v) * real_sigmoid(-v) : x < 0 ? x * x : 0;
    return fabs(x * gate) * (1 + moved);
}
static chain_real real_gate(int op, chain_real x) {
    const int of = op == CHAIN_SILU ? CHAIN_SIGMOID : op;
    const chain_real gate = real_ends(of, x), y = real_product(x, gate);
    if (!isfinite(y.v) || !real_known(y)) return y;
    const REAL largest = fabs(x.v) + x.off,
               loss = (gate.v - gate.off < 2 * FLUSHED ? FLUSHED * largest : 0) + SUBNORMAL + real_lost(y);
    if (op == CHAIN_SILU) return real_rounded(y, 12, loss);
    return real_rounded(y, 0, 14 * ROUNDOFF * (real_gelu_size(op, x.v) + 4 * x.off) + loss);
}

static chain_real real_function(int op, chain_real x) {
    if (!real_known(x)) return UNKNOWN;
    if (op == CHAIN_SILU || op == CHAIN_GELU || op == CHAIN_GELU_TANH) return real_gate(op, x);
    const chain_real y = real_ends(op, x);
    switch (op) {
    case CHAIN_RSQRT: return x.v == 0 ? UNKNOWN : real_rounded(y, 8, 0); /* of 0 it has 0's sign */
    case CHAIN_SQRT: return real_rounded(y, 2, 0);
    case CHAIN_EXP: return real_rounded(y, 8, real_lost(y));
    case CHAIN_LOG: return real_rounded(y, 4, SUBNORMAL);
    case CHAIN_TANH:
    case CHAIN_ERF: return real_rounded(y, 8, real_lost(y));
    case CHAIN_SIGMOID: return real_rounded(y, 11, real_lost(y));
    default: return real_rounded(y, 0, 0);
    }
}

/* ----------------------------------------------------------------------------------------------------- two operands */

static REAL real_binary(int op, REAL a, REAL b) {
    switch (op) {
    case CHAIN_ADD: return a + b;
    case CHAIN_SUB: return a - b;
    case CHAIN_MUL: return a * b;
    case CHAIN_DIV: return a / b;
    case CHAIN_MIN: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    default: return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    }
}

static chain_real real_arithmetic(int op, chain_real a, chain_real b) {
    if (real_is_nan(a) || real_is_nan(b)) return (chain_real){ NAN, 0 };
    if (!real_known(a) || !real_known(b)) return UNKNOWN;
    if (op == CHAIN_DIV && fabs(b.v) <= b.off) return UNKNOWN; /* by 0, of either sign */
    REAL end[4];
    for (int i = 0; i < 4; i++)
        end[i] = real_binary(op, isfinite(a.v) ? a.v + (i & 1 ? a.off : -a.off) : a.v,
                             isfinite(b.v) ? b.v + (i & 2 ? b.off : -b.off) : b.v);
    const chain_real y = real_hull(real_binary(op, a.v, b.v), end, 4);
    switch (op) {
    case CHAIN_ADD:
    case CHAIN_SUB: return real_rounded(y, 1, 0);
    case CHAIN_MUL: return real_rounded(y, 1, SUBNORMAL);
    case CHAIN_DIV: return real_rounded(y, 2, real_lost(y));
    default: return real_rounded(y, 0, 0);
    }
}

/* 1 or 0; off by 1 where rounding decides. */
static chain_real real_compare(int op, chain_real a, chain_real b) {
    const bool less = a.v + a.off<b.v - b.off, more = a.v - a.off> b.v + b.off, same = a.off == 0 && b.off == 0;
    const bool result = op == CHAIN_LT   ? a.v < b.v
                        : op == CHAIN_LE ? a.v <= b.v
                        : op == CHAIN_EQ ? a.v == b.v
                                         : a.v != b.v;
    const bool sure = real_known(a) && real_known(b) && (same || less || more || isnan(a.v) || isnan(b.v));
    return (chain_real){ result, sure ? 0 : 1 };
}

/* --------------------------------------------------------------------------------------------------- three operands */

static chain_real real_select(chain_real c, chain_real a, chain_real b) {
    const bool yes = c.v != 0, sure = real_known(c) && (c.off == 0 || fabs(c.v) > c.off || isnan(c.v));
    const chain_real taken = yes ? a : b, other = yes ? b : a;
    if (sure) return taken;
    if (!real_known(a) || !real_known(b)) return UNKNOWN;
    const REAL end[2] = { isfinite(other.v) ? other.v - other.off : other.v,
                          isfinite(other.v) ? other.v + other.off : other.v };
    chain_real y = real_hull(taken.v, end, 2);
    y.off = fmax(y.off, taken.off);
    return y;
}

/* As if with two roundings, and of the product, which may then overflow. */
static chain_real real_fused(chain_real a, chain_real b, chain_real c) {
    return real_arithmetic(CHAIN_ADD, real_arithmetic(CHAIN_MUL, a, b), c);
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* What has been seen of a row. */
typedef struct chain_reduction {
    REAL sum, sizes, off;   /* of what is finite: with sums of |v| + off, and of off */
    REAL low, high, middle; /* the most of the ends, and of v; of -x for the least */
    bool nan, unknown, plus, minus;
} chain_reduction;

static const chain_reduction chain_nothing = { .low = -INFINITY, .high = -INFINITY, .middle = -INFINITY };

static void real_reduce(chain_reduction *r, chain_real x, bool negated) {
    if (real_is_nan(x)) {
        r->nan = true;
        return;
    }
    if (!real_known(x)) {
        r->unknown = true;
        return;
    }
    const REAL v = negated ? -x.v : x.v;
    r->middle = fmax(r->middle, v);
    r->low = fmax(r->low, isfinite(v) ? v - x.off : v);
    r->high = fmax(r->high, isfinite(v) ? v + x.off : v);
    r->plus |= v == INFINITY;
    r->minus |= v == -INFINITY;
    if (!isfinite(v)) return;
    r->sum += v;
    r->sizes += fabs(v) + x.off;
    r->off += x.off;
}

static chain_real real_sum_of(const chain_reduction *r, REAL n) {
    const REAL depth = (REAL)sum_depth((double)n);
    if (r->nan || (r->plus && r->minus && !r->unknown)) return (chain_real){ NAN, 0 };
    if (r->unknown || r->sizes * (1 + depth * ROUNDOFF) > MOST) return UNKNOWN;
    if (r->plus || r->minus) return (chain_real){ r->plus ? INFINITY : -INFINITY, 0 };
    return (chain_real){ r->sum, r->off + (depth * ROUNDOFF * (1 + depth * ROUNDOFF) + n * OWN) * r->sizes };
}

static chain_real real_most_of(const chain_reduction *r, bool negated) {
    const REAL end[2] = { r->low, r->high };
    if (r->nan) return (chain_real){ NAN, 0 };
    if (r->unknown) return UNKNOWN;
    chain_real y = real_hull(r->middle, end, 2);
    if (negated) y.v = -y.v;
    return y;
}

#endif
