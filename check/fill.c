/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a case's inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"
#include "spec/number.h"

bool fill_is(const trine_spec_tensor *spec, const char *word) {
    const size_t length = strlen(word);
    return spec->fill != NULL && strncmp(spec->fill, word, length) == 0 &&
           (spec->fill[length] == 0 || spec->fill[length] == ' ');
}

/* Is it whole numbers that say where something is? */
static bool fill_counts(const trine_spec_tensor *spec) {
    return fill_is(spec, "ids") || fill_is(spec, "offsets") || fill_is(spec, "lengths") || fill_is(spec, "places") ||
           fill_is(spec, "slots") || fill_is(spec, "ascending") || fill_is(spec, "lists") || fill_is(spec, "blocks");
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

/* "positive", "unit", "flag" or anything, but what .fill orders in other words. */
static void fill_values(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    const trine_spec_tensor *spec = p->plan->tensor[tensor].spec;
    const bool positive = fill_is(spec, "positive"), unit = fill_is(spec, "unit");
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

/* The extra value of "ids SYMBOL PARAM DEFAULT": parameter PARAM, or DEFAULT where PARAM_set is a parameter and 0. */
static bool extra_id(const problem *p, const char *text, double *extra_out) {
    char name[64], flag[80];
    int length = 0;
    if (sscanf(text, "ids %*63s %63s%n", name, &length) < 1) return false;
    const double fallback = trine_strtod(text + length, NULL);
    snprintf(flag, sizeof flag, "%s_set", name);
    const int param = trine_plan_find_param(p->plan, name), set = trine_plan_find_param(p->plan, flag);
    if (param < 0) return false;
    *extra_out = set >= 0 && trine_param_get(p->plan, set, p->resolved) == 0
                     ? fallback
                     : trine_param_get(p->plan, param, p->resolved);
    return true;
}

static bool fill_ids(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    const char *text = p->plan->tensor[tensor].spec->fill;
    char symbol[64] = "";
    double extra = 0;
    sscanf(text, "ids %63s", symbol);
    const int index = trine_plan_find_symbol(p->plan, symbol);
    const int64_t limit = index >= 0 ? p->call.dim[index] : 0;
    const bool has_extra = extra_id(p, text, &extra), same = random_chance(&p->random, 6);
    if (limit <= 0) return o->count == 0;
    random_state own = { p->random.state };
    const int64_t first = random_below(&p->random, limit);
    for (int64_t k = 0; k < o->count; k++) {
        o->value[k] = (double)(same ? first : random_below(&p->random, limit));
        if (p->kind == PROBLEM_DRAWN && has_extra && random_chance(&p->random, 4)) o->value[k] = extra;
    }
    /* The last one of many is seldom drawn. */
    if (p->kind == PROBLEM_DRAWN && o->count > 0 && random_chance(&own, 2))
        o->value[random_below(&own, o->count)] = (double)(limit - 1);
    return true;
}

/* Mostly in [0, SYMBOL); half of the others just outside, the rest anywhere, also where the low 32 bits are a place. */
static void fill_places(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    char symbol[64] = "";
    sscanf(p->plan->tensor[tensor].spec->fill, "places %63s", symbol);
    const int index = trine_plan_find_symbol(p->plan, symbol);
    const int64_t limit = index >= 0 ? p->call.dim[index] : 0;
    const bool same = random_chance(&p->random, 6), inside = random_chance(&p->random, 4) && limit > 0;
    const int64_t first = random_below(&p->random, limit + 1);
    for (int64_t k = 0; k < o->count; k++) {
        const int64_t beyond[] = { -1, limit, -1, limit, INT32_MIN, INT32_MAX, 0x100000000, -0x100000000 };
        int64_t place = same ? first : random_below(&p->random, limit + 1);
        if (place == limit || random_chance(&p->random, 8)) place = beyond[random_below(&p->random, 8)];
        if (inside && (place < 0 || place >= limit)) place = random_below(&p->random, limit);
        if (o->full.dtype == TRINE_I32 && (place < INT32_MIN || place > INT32_MAX)) place = -1;
        o->value[k] = (double)place;
    }
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool fill_offsets(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    char symbol[64] = "";
    sscanf(p->plan->tensor[tensor].spec->fill, "offsets %63s", symbol);
    const int index = trine_plan_find_symbol(p->plan, symbol);
    const int64_t total = index >= 0 ? p->call.dim[index] : 0;
    if (o->count == 0) return true;
    for (int64_t k = 0; k < o->count; k++) o->value[k] = (double)random_below(&p->random, total + 1);
    qsort(o->value, (size_t)o->count, sizeof *o->value, ascending);
    o->value[0] = 0;
    if (random_chance(&p->random, 2)) o->value[o->count - 1] = (double)total;
    return true;
}

/* Each row ascends: in half of the drawn cases, and in all others, by the same for each list as far as that goes. */
static void fill_lists(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    char symbol[64] = "";
    sscanf(p->plan->tensor[tensor].spec->fill, "lists %63s", symbol);
    const int index = trine_plan_find_symbol(p->plan, symbol);
    const int64_t total = index >= 0 ? p->call.dim[index] : 0, n = o->full.shape[o->full.rank - 1],
                  first = p->kind == PROBLEM_DRAWN && random_chance(&p->random, 3) ? random_below(&p->random, total + 1)
                                                                                   : 0;
    const bool alike = p->kind != PROBLEM_DRAWN || random_chance(&p->random, 2);
    for (int64_t row = 0; n > 0 && row < o->count / n; row++) {
        double *at = o->value + row * n;
        for (int64_t k = 0; k < n; k++)
            at[k] = (double)(alike ? first + (n > 1 ? k * ((total - first) / (n - 1)) : 0)
                                   : first + random_below(&p->random, total - first + 1));
        qsort(at, (size_t)n, sizeof *at, ascending);
    }
}

/* Blocks of a size, in [0, SIZE divided by it), some of them more than once; a few are none, if any may be. */
static void fill_blocks(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    const char *fill = p->plan->tensor[tensor].spec->fill;
    char param[64] = "";
    sscanf(fill, "blocks %*63s %63s", param);
    const int64_t all = trine_plan_fill_size(p->plan, fill, p->call.dim),
                  size = (int64_t)trine_param_get(p->plan, trine_plan_find_param(p->plan, param), p->resolved),
                  limit = all > 0 ? (all - 1) / size + 1 : 0;
    const double beyond[] = { -1, (double)limit, 0x1p31 - 1, -0x1p31 };
    const bool strays = p->kind == PROBLEM_DRAWN && random_chance(&p->random, 2);
    for (int64_t k = 0; k < o->count; k++) {
        const bool stray = limit <= 0 || (strays && random_chance(&p->random, 6));
        o->value[k] = stray ? beyond[random_below(&p->random, 4)] : (double)random_below(&p->random, limit);
    }
}

/* Of a sequence each, often all of it. */
static void fill_lengths(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    const char *fill = p->plan->tensor[tensor].spec->fill;
    char offsets[64] = "";
    sscanf(fill, "lengths %*63s %63s", offsets);
    const int64_t all = trine_plan_fill_size(p->plan, fill, p->call.dim);
    const int other = trine_plan_find_tensor(p->plan, offsets);
    const double *const at = other >= 0 && problem_has(p, other) ? p->operand[other].value : NULL;
    for (int64_t k = 0; k < o->count; k++) {
        const int64_t most = at == NULL ? all : k + 1 < p->operand[other].count ? (int64_t)(at[k + 1] - at[k]) : 0;
        o->value[k] = (double)(random_chance(&p->random, 3) ? most : random_below(&p->random, most + 1));
    }
}

/* In half of the cases no two are the same, as far as that goes. A few are none, if any may be. */
static void fill_slots(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    const int64_t limit = trine_plan_fill_size(p->plan, p->plan->tensor[tensor].spec->fill, p->call.dim);
    const double beyond[] = { -1, (double)limit, 0x1p31 - 1, -0x1p31, 0x1p32, -0x1p32 + (double)limit - 1 };
    const bool apart = random_chance(&p->random, 2), strays = p->kind == PROBLEM_DRAWN && random_chance(&p->random, 2);
    const int64_t first = random_below(&p->random, limit > 0 ? limit : 1);
    for (int64_t k = 0; k < o->count; k++) {
        const bool stray = limit <= 0 || (strays && random_chance(&p->random, 6));
        o->value[k] = stray   ? beyond[random_below(&p->random, o->full.dtype == TRINE_I64 ? 6 : 4)]
                      : apart ? (double)((first + k) % limit)
                              : (double)random_below(&p->random, limit);
    }
}

/* Slots in order, now and then in none; strays may be anywhere. */
static void fill_ascending(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    fill_slots(p, tensor);
    if (random_chance(&p->random, 6)) return;
    qsort(o->value, (size_t)o->count, sizeof *o->value, ascending);
    for (int64_t n = o->count < 2 ? 0 : random_below(&p->random, 4); n > 0; n--) {
        const int64_t a = random_below(&p->random, o->count), b = random_below(&p->random, o->count);
        const double x = o->value[a];
        o->value[a] = o->value[b], o->value[b] = x;
    }
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
    return fill_is(spec, "saved") || fill_is(spec, "positive saved");
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
        if (fill_is(spec, "ids") && !fill_ids(p, i)) return false;
        if (fill_is(spec, "offsets") && !fill_offsets(p, i)) return false;
        if (fill_is(spec, "lengths")) fill_lengths(p, i);
        if (fill_is(spec, "places")) fill_places(p, i);
        if (fill_is(spec, "slots")) fill_slots(p, i);
        if (fill_is(spec, "ascending")) fill_ascending(p, i);
        if (fill_is(spec, "lists")) fill_lists(p, i);
        if (fill_is(spec, "blocks")) fill_blocks(p, i);
        if (!fill_counts(spec)) fill_values(p, i);
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
