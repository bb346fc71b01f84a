/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a case's inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill_numbers.h"
#include "spec/number.h"

bool fill_is(const trine_spec_tensor *spec, const char *word) {
    const size_t length = strlen(word);
    return spec->fill != NULL && strncmp(spec->fill, word, length) == 0 &&
           (spec->fill[length] == 0 || spec->fill[length] == ' ');
}

static bool is_float(trine_dtype dtype) { return trine_unit_roundoff(dtype) > 0; }

/* As far as float64 counts them. */
static double largest_integer(trine_dtype dtype) { return fmin(trine_largest(dtype), 0x1p53); }
static double smallest_integer(trine_dtype dtype) {
    return dtype == TRINE_U8 || dtype == TRINE_U32 ? 0 : -largest_integer(dtype) - 1;
}

/* +-2^e with e uniform in [low, high], and a random significand. */
static double random_scaled(random_state *r, double low, double high) {
    const double x = exp2(random_between(r, low, high));
    return random_next(r) & 1 ? x : -x;
}

/* The parameters of one tensor's values. */
typedef struct values {
    fill fill;
    trine_dtype dtype;
    double low, high; /* exponents of the smallest normal and the largest */
    double digits;    /* of the significand */
    double centre;    /* FILL_OFFSET, FILL_CONSTANT */
    double step; /* FILL_OFFSET: of what is added to it, at least 1, at least its unit in the last place; FILL_SCALED */
    int64_t modulus; /* FILL_INTEGERS: values in (-modulus, modulus) */
    bool positive;   /* FILL_INTEGERS: 0 and 1 */
    /* the type to which an output rounds them exactly, if they are to be near its ties; TRINE_NONE: they are not */
    trine_dtype ties;
} values;

/* Often of an ordinary size, as often of any up to the largest, where only differences may count. */
static double random_centre(random_state *r, double low, double high, double largest) {
    const double x = random_scaled(r, low, high), exponent = log2(fabs(x));
    return exponent < (low + high) / 2
               ? x
               : copysign(exp2(low + (largest - low) * (2 * exponent - low - high) / (high - low)), x);
}

/* A narrower type of an output that has the very bits of one rounding. */
static trine_dtype rounded_to(const problem *p, trine_dtype dtype) {
    for (int i = 0; i < p->plan->tensors; i++) {
        const trine_dtype other = p->operand[i].full.dtype;
        if (problem_output(p, i) && problem_flags(p, i) & EXACT && is_float(other) &&
            trine_unit_roundoff(other) > trine_unit_roundoff(dtype))
            return other;
    }
    return TRINE_NONE;
}

/* Integers that are all the same are mostly the largest or the smallest, so that sums grow as far as they can: in a
 * case at an edge, which may be that of sums, as often as not. */
static void choose_extreme(problem *p, values *v) {
    random_state own = { ~p->random.state };
    const double most = largest_integer(v->dtype), least = smallest_integer(v->dtype);
    if (p->alike && p->fill != FILL_INTEGERS) v->fill = FILL_CONSTANT;
    v->centre = random_chance(&own, 4)  ? floor(random_between(&own, least, most + 1))
                : random_next(&own) & 1 ? most
                                        : least;
}

static values choose_values(problem *p, int tensor) {
    const trine_dtype dtype = p->operand[tensor].full.dtype;
    values v = { .fill = p->fill, .dtype = dtype };
    const fill kind = p->fill;
    if (kind != FILL_INTEGERS && kind != FILL_RANDOM && random_chance(&p->random, 4)) v.fill = FILL_RANDOM;
    if (kind == FILL_BITS && (dtype == TRINE_F32 || dtype == TRINE_F64) && random_chance(&p->random, 2))
        v.fill = FILL_RANGE;
    if (v.fill == FILL_RANGE && random_chance(&p->random, 2)) v.fill = FILL_SCALED;
    v.low = log2(trine_smallest_normal(dtype));
    v.high = log2(trine_largest(dtype)) - 1e-9;
    v.digits = fmax(2, -log2(trine_unit_roundoff(dtype)));
    v.centre = random_centre(&p->random, 3, fmin(v.digits + 2, 12), v.high);
    if (v.fill == FILL_CONSTANT) v.centre = random_centre(&p->random, -3, 3, v.high);
    if (!is_float(dtype)) choose_extreme(p, &v);
    v.step = fmax(1, fabs(v.centre) * exp2(1 - v.digits));
    v.modulus = 2 + random_below(&p->random, 2);
    v.positive = random_chance(&p->random, 3);
    if (is_float(dtype) && kind != FILL_INTEGERS) v.ties = rounded_to(p, dtype);
    if (v.ties != TRINE_NONE && random_chance(&p->random, 2)) v.ties = TRINE_NONE;
    if (v.fill == FILL_SCALED) v.step = exp2(floor(random_between(&p->random, v.low - v.digits, v.high)));
    return v;
}

static double integer_value(const values *v, random_state *r) {
    if (v->fill == FILL_INTEGERS)
        return v->positive ? (double)random_below(r, 2)
                           : (double)(random_below(r, 2 * v->modulus - 1) - v->modulus + 1);
    const double most = largest_integer(v->dtype), least = smallest_integer(v->dtype);
    if (v->fill == FILL_CONSTANT) return v->centre;
    if (v->fill == FILL_HUGE) return random_next(r) & 1 ? most : least;
    return floor(random_between(r, least, most + 1));
}

/* What a code of random bits means. */
static double bits_value(const values *v, random_state *r) {
    uint64_t bits = random_next(r);
    return trine_load(&bits, v->dtype, 0);
}

/* In the middle between two values of the narrower type, of any size, subnormal ones and the largest included; or
 * beside it, by a part of it that types between the two may not hold: rounded to one of them first it would be a
 * tie. */
static double near_tie(const values *v, random_state *r) {
    const double digits = -log2(trine_unit_roundoff(v->ties)), low = log2(trine_smallest_normal(v->ties)),
                 x = fabs(random_scaled(r, low - digits, log2(trine_largest(v->ties)) + 0.01)),
                 quantum = exp2(fmax(floor(log2(x)), low) - digits + 1), tie = (floor(x / quantum) + 0.5) * quantum,
                 beside = v->digits > digits + 2 ? exp2(-floor(random_between(r, digits + 1, v->digits))) : 0;
    return (random_next(r) & 1 ? tie : -tie) * (1 + beside * (double)(random_below(r, 3) - 1));
}

static double value_of(const values *v, random_state *r) {
    const double spread = random_between(r, -2, 2);
    if (!is_float(v->dtype)) return integer_value(v, r);
    if (v->ties != TRINE_NONE) return near_tie(v, r);
    switch (v->fill) {
    case FILL_INTEGERS: return integer_value(v, r);
    case FILL_OFFSET: return v->centre + spread * v->step;
    case FILL_HUGE: return random_scaled(r, random_next(r) & 1 ? v->high - 2 : v->high / 2, v->high);
    case FILL_TINY: return random_scaled(r, v->low - v->digits, v->low + 4);
    case FILL_RANGE: return random_scaled(r, v->low - v->digits, v->high);
    case FILL_SCALED: return fmax(-trine_largest(v->dtype), fmin(trine_largest(v->dtype), spread * v->step));
    case FILL_CANCEL:
        return random_below(r, 3) == 0 ? spread
                                       : (random_next(r) & 1 ? 1 : -1) * exp2(floor(fmin(v->digits, v->high - 2)));
    case FILL_CONSTANT: return v->centre;
    case FILL_ZERO: return random_next(r) & 1 ? 0.0 : -0.0;
    case FILL_BITS: return bits_value(v, r);
    default: return spread;
    }
}

/* A few NaN or Inf among the values. */
static void sprinkle(problem *p, operand *o, fill kind) {
    if ((kind != FILL_NAN && kind != FILL_INF) || o->count == 0) return;
    for (int64_t n = 1 + random_below(&p->random, 3); n > 0; n--) {
        const double special = kind == FILL_NAN ? NAN : random_next(&p->random) & 1 ? INFINITY : -INFINITY;
        o->value[random_below(&p->random, o->count)] = special;
    }
}

/* Small ones are as likely as large ones. */
static double count_value(const values *v, random_state *r) {
    return v->fill == FILL_INTEGERS ? 1 + (double)random_below(r, 2) : floor(exp2(random_between(r, 0, 40)));
}

/* "positive often" and "unit often" are that in half of the cases. */
static bool fills_often(problem *p, const trine_spec_tensor *spec, const char *word) {
    return fill_is(spec, word) && (strstr(spec->fill, " often") == NULL || random_chance(&p->random, 2));
}

/* "positive", "unit", "flag" or anything, but what .fill orders in other words. */
static void fill_values(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    const trine_spec_tensor *spec = p->plan->tensor[tensor].spec;
    const bool positive = fills_often(p, spec, "positive"), unit = fills_often(p, spec, "unit");
    const values v = choose_values(p, tensor);
    const bool off = fill_is(spec, "flag") && random_chance(&p->random, 2), count = positive && !is_float(v.dtype);
    for (int64_t k = 0; k < o->count; k++) {
        double x = off ? 0 : count ? count_value(&v, &p->random) : value_of(&v, &p->random);
        if (positive) x = fmax(isfinite(x) ? fabs(x) : 1, v.fill == FILL_INTEGERS ? 1 : trine_smallest_normal(v.dtype));
        if (v.dtype == TRINE_E8M0) x = v.fill == FILL_INTEGERS ? fmax(1, fabs(x)) : fabs(x); /* which has no sign */
        if (unit && v.fill != FILL_INTEGERS) x = random_between(&p->random, -1, 1);
        if (unit) x = fmax(-1, fmin(1, x));
        o->value[k] = x;
    }
    if (!positive && !unit && !off && is_float(v.dtype)) sprinkle(p, o, v.fill);
    for (int64_t k = 0; k < o->count && fill_is(spec, "sparse"); k++)
        if (random_next(&p->random) & 1) o->value[k] = 0;
}

/* NaN where no sequence is: in none of the pages that the table names for it, or behind its length. */
static void fill_unused(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    char table_name[64] = "", lengths_name[64] = "";
    sscanf(p->plan->tensor[tensor].spec->fill, "paged %63s %63s", table_name, lengths_name);
    const operand *table = &p->operand[trine_plan_find_tensor(p->plan, table_name)],
                  *lengths = &p->operand[trine_plan_find_tensor(p->plan, lengths_name)];
    const int64_t pages = o->full.shape[0], page = o->full.shape[1], columns = table->full.shape[1],
                  slot = o->count > 0 ? o->count / (pages * page) : 0;
    if (!is_float(o->full.dtype) || slot == 0) return;
    bool *used = calloc((size_t)(pages * page), sizeof *used);
    for (int64_t n = 0; n < lengths->count; n++)
        for (int64_t j = 0; j < (int64_t)lengths->value[n] && j < columns * page; j++) {
            const double at = table->value[n * columns + j / page];
            if (at >= 0 && at < (double)pages) used[(int64_t)at * page + j % page] = true;
        }
    for (int64_t k = 0; k < o->count; k++)
        if (!used[k / slot]) o->value[k] = NAN;
    free(used);
}

/* Writes the values into the image, rounded to the type, and reads them back as the reference shall see them. */
static void store_values(operand *o) {
    for (int64_t k = 0; k < o->count; k++) trine_store(o->image, o->full.dtype, o->at[k], o->value[k]);
    for (int64_t k = 0; k < o->count; k++) o->value[k] = trine_load(o->image, o->full.dtype, o->at[k]);
}

/* Inputs that a forward saved: may they be any, and in half of the cases what it saves? */
static bool fill_saved(const trine_spec_tensor *spec) {
    return fill_is(spec, "saved") || fill_is(spec, "positive saved") || fill_is(spec, "decay saved") ||
           fill_is(spec, "rate saved") || fill_is(spec, "key saved");
}
static bool chooses_saved(problem *p) {
    bool any = false;
    for (int i = 0; i < p->plan->tensors; i++) any |= fill_saved(p->plan->tensor[i].spec);
    return any && p->kind == PROBLEM_DRAWN && random_chance(&p->random, 2);
}

static void derive(problem *p) {
    const bool saved = chooses_saved(p);
    trine_ref ref = { .plan = p->plan, .args = p->resolved, .dim = p->call.dim, .type = p->call.type };
    for (int i = 0; i < p->plan->tensors; i++) {
        ref.value[i] = p->operand[i].value;
        ref.magnitude[i] = p->operand[i].magnitude;
        ref.slack[i] = p->operand[i].slack;
    }
    bool derived = saved;
    for (int i = 0; i < p->plan->tensors; i++) derived |= fill_is(p->plan->tensor[i].spec, "derived");
    if (derived) p->plan->spec->prepare(&ref);
    for (int i = 0; i < p->plan->tensors; i++) {
        operand *o = &p->operand[i];
        const trine_spec_tensor *spec = p->plan->tensor[i].spec;
        if (problem_input(p, i) && (fill_is(spec, "derived") || (saved && fill_saved(spec)))) store_values(o);
        if (problem_output(p, i)) {
            memset(o->magnitude, 0, sizeof *o->magnitude * (size_t)o->count);
            memset(o->slack, 0, sizeof *o->slack * (size_t)o->count);
        }
    }
}

bool fill_make(problem *p) {
    for (int i = 0; i < p->plan->tensors; i++) {
        const trine_spec_tensor *spec = p->plan->tensor[i].spec;
        operand *o = &p->operand[i];
        if (!problem_has(p, i)) continue;
        o->value = calloc((size_t)o->count + 1, sizeof *o->value);
        o->image = calloc(o->bytes + 1, 1);
        if (problem_output(p, i)) {
            o->magnitude = calloc((size_t)o->count + 1, sizeof *o->magnitude);
            o->slack = calloc((size_t)o->count + 1, sizeof *o->slack);
        }
        if (!problem_input(p, i) || fill_is(spec, "derived")) continue;
        const filling *const numbers = fill_numbers(spec);
        if (numbers == NULL)
            fill_values(p, i);
        else if (!numbers->make(p, i))
            return false;
        store_values(o);
    }
    for (int i = 0; i < p->plan->tensors; i++)
        if (problem_input(p, i) && fill_is(p->plan->tensor[i].spec, "paged") && p->kind == PROBLEM_DRAWN &&
            random_chance(&p->random, 2)) {
            fill_unused(p, i);
            store_values(&p->operand[i]);
        }
    for (int i = 0; i < p->plan->tensors; i++) {
        operand *o = &p->operand[i];
        if (!problem_input(p, i) || problem_output(p, i) || o->alias < 0) continue;
        memcpy(o->image, p->operand[o->alias].image, o->bytes);
        memcpy(o->value, p->operand[o->alias].value, sizeof *o->value * (size_t)o->count);
    }
    derive(p);
    return true;
}
