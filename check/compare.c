/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element: |y - y64| within the bound, classes of NaN and Inf equal, integers and exact outputs the same. */
#include "compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/number.h"

/* "y[3,17]" */
static void element_name(const problem *p, int tensor, int64_t k, char *text, size_t size) {
    const trine_tensor *t = &p->operand[tensor].full;
    int64_t index[TRINE_MAX_RANK] = { 0 };
    for (int d = t->rank - 1; d >= 0; d--) {
        index[d] = k % t->shape[d];
        k /= t->shape[d];
    }
    size_t used = (size_t)snprintf(text, size, "%s[", p->plan->tensor[tensor].spec->name);
    for (int d = 0; d < t->rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, d ? "," : "", index[d]);
    if (used < size) snprintf(text + used, size - used, "]");
}

/* A kernel's error e before the output is rounded: |e| <= coefficient magnitude + slack. The reference is itself
 * computed with roundoff 2^-53: what the same formula gives for it is added, which matters for f64 outputs only. A
 * magnitude is the size of all that rounds: if the accumulator's type does not reach so far, something may have
 * overflowed on the way. */
double compare_allowed(const problem *p, int tensor, double coefficient, int64_t k) {
    const operand *o = &p->operand[tensor];
    const double terms = trine_expr_eval(&p->plan->tensor[tensor].terms, p->call.dim);
    const double magnitude = o->magnitude[k];
    if (magnitude > trine_largest(trine_plan_accumulator(p->plan, tensor, p->call.type)) || isinf(o->slack[k]))
        return INFINITY;
    if (!isfinite(o->value[k])) return 0;
    return coefficient * magnitude + o->slack[k] + 0x1p-53 * (terms * magnitude + fabs(o->value[k]));
}

/* |round(y64 + e) - y64| <= u |y64 + e| + |e|, and half the spacing of subnormals at least. */
static double bound_of(double y64, double error, trine_dtype dtype) {
    const double u = trine_unit_roundoff(dtype);
    return u * fmax(fabs(y64) + error, trine_smallest_normal(dtype)) + error;
}

static bool same_exactly(double y, double want) {
    return (isnan(y) && isnan(want)) || (y == want && signbit(y) == signbit(want));
}

/* Is `y` what rounding a value within `error` of y64 may give? */
static bool acceptable(double y, double y64, double error, trine_dtype dtype) {
    if (isnan(y64)) return isnan(y);
    if (isnan(error)) return false;
    if (isinf(error)) return true;
    if (isinf(y64)) {
        const double want = trine_round(y64, dtype, false);
        return y == want || (isnan(y) && isnan(want));
    }
    const double bound = bound_of(y64, error, dtype), largest = trine_largest(dtype);
    if (isfinite(y) && fabs(y - y64) <= bound) return true;
    /* Beyond the largest: Inf (NaN where the type has none), or the largest itself. */
    const double high = y64 + bound, low = y64 - bound;
    if (high < largest && low > -largest) return false;
    if (isnan(y)) return isnan(trine_round(INFINITY, dtype, false));
    return (y > 0 && high >= largest && y >= largest) || (y < 0 && low <= -largest && y <= -largest);
}

/* Is the table's promise of exact integers in force for this element? A magnitude is the sum of all the terms' absolute
 * values. */
static bool exact_here(const problem *p, int tensor, int64_t k) {
    const operand *o = &p->operand[tensor];
    return p->exact && isfinite(o->value[k]) && o->magnitude[k] < 0x1p24 && o->value[k] == rint(o->value[k]);
}

bool compare_reference(const problem *p, const outcome *y, char *text_out, size_t size) {
    char name[128];
    for (int i = 0; i < p->plan->tensors; i++) {
        if (!problem_output(p, i) || y->output[i] == NULL) continue;
        const operand *o = &p->operand[i];
        const trine_dtype dtype = o->full.dtype;
        const bool bits = problem_flags(p, i) & EXACT;
        const double coefficient = bits ? 0 : trine_plan_coefficient(p->plan, i, p->call.dim, p->call.type);
        for (int64_t k = 0; k < o->count; k++) {
            const double have = trine_load(y->output[i], dtype, k), y64 = o->value[k],
                         want = trine_round(y64, dtype, false);
            const double allowed = bits ? 0 : compare_allowed(p, i, coefficient, k);
            if (bits                  ? same_exactly(have, want)
                : exact_here(p, i, k) ? have == want
                                      : acceptable(have, y64, allowed, dtype))
                continue;
            element_name(p, i, k, name, sizeof name);
            if (bits || exact_here(p, i, k))
                trine_snprintf(text_out, size, "%s is %.9g, but must be exactly %.9g", name, have, want);
            else
                trine_snprintf(text_out, size,
                               "%s is %.9g, but the reference is %.9g +- %.3g (off by %.3g; coefficient %.3g, "
                               "magnitude %.3g, slack %.3g)",
                               name, have, y64, bound_of(y64, allowed, dtype), fabs(have - y64), coefficient,
                               o->magnitude[k], o->slack[k]);
            return false;
        }
    }
    return true;
}

/* Of a tensor's finite golden values the largest: the size of terms that cancel in the others. */
static double golden_scale(const operand *o) {
    double scale = 0;
    for (int64_t k = 0; k < o->count; k++) scale = fmax(scale, trine_finite_abs(o->golden[k]));
    return scale;
}

/* Reference and oracle compute in float64 by different formulas, each some hundred roundings of 2^-53 relative to the
 * largest value of the tensor: 2^-40 is 8192 of these. The nearest misreading is far beyond: a constant with 10 digits,
 * or with f32's 24 bits, is off by 2^-33 or 2^-25. */
bool compare_golden(const problem *p, char *text_out, size_t size) {
    char name[128];
    for (int i = 0; i < p->plan->tensors; i++) {
        const operand *o = &p->operand[i];
        if (!problem_output(p, i)) continue;
        const double allowed = problem_flags(p, i) & EXACT ? 0 : 0x1p-40 * golden_scale(o);
        for (int64_t k = 0; k < o->count; k++) {
            const double have = o->value[k], want = o->golden[k];
            if (same_exactly(have, want) ||
                (!(problem_flags(p, i) & EXACT) && (have == want || fabs(have - want) <= allowed)))
                continue;
            element_name(p, i, k, name, sizeof name);
            trine_snprintf(text_out, size,
                           "%s is %.17g by the reference, but %.17g +- %.3g by the oracle of the golden vectors", name,
                           have, want, allowed);
            return false;
        }
    }
    return true;
}

bool compare_pair(const problem *p, const outcome *a, const outcome *b, char *text_out, size_t size) {
    char name[128];
    for (int i = 0; i < p->plan->tensors; i++) {
        if (!problem_output(p, i)) continue;
        const operand *o = &p->operand[i];
        const trine_dtype dtype = o->full.dtype;
        const bool bits = problem_flags(p, i) & EXACT;
        const double coefficient = bits ? 0 : trine_plan_coefficient(p->plan, i, p->call.dim, p->call.type);
        for (int64_t k = 0; k < o->count; k++) {
            const double x = trine_load(a->output[i], dtype, k), y = trine_load(b->output[i], dtype, k);
            if (same_exactly(x, y) || (!bits && x == y)) continue;
            const double bound = bits || exact_here(p, i, k)
                                     ? 0
                                     : 2 * bound_of(o->value[k], compare_allowed(p, i, coefficient, k), dtype);
            /* Where one of them may overflow, each has been held against the reference. */
            if (!isfinite(bound) || fabs(o->value[k]) + bound >= trine_largest(dtype) || fabs(x - y) <= bound) continue;
            element_name(p, i, k, name, sizeof name);
            trine_snprintf(text_out, size, "%s: %.9g and %.9g differ by more than twice the bound, %.3g", name, x, y,
                           bound);
            return false;
        }
    }
    return true;
}

bool compare_bits(const problem *p, int tensor, const unsigned char *a, const unsigned char *b, char *text_out,
                  size_t size) {
    const operand *o = &p->operand[tensor];
    const size_t width = trine_dtype_size(o->full.dtype);
    if (memcmp(a, b, width * (size_t)o->count) == 0) return true;
    for (int64_t k = 0; k < o->count; k++) {
        if (memcmp(a + width * (size_t)k, b + width * (size_t)k, width) == 0) continue;
        const double x = trine_load(a, o->full.dtype, k), y = trine_load(b, o->full.dtype, k);
        char name[128];
        if (isnan(x) && isnan(y)) continue;
        element_name(p, tensor, k, name, sizeof name);
        trine_snprintf(text_out, size, "%s was %.17g in the first run and %.17g in this one", name, x, y);
        return false;
    }
    return true;
}
