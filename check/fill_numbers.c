/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that are whole numbers and say where something is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill_numbers.h"
#include "spec/number.h"

/* The extra value of "ids SIZE PARAM DEFAULT": parameter PARAM, or DEFAULT where PARAM_set is a parameter and 0. */
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
    double extra = 0;
    const int64_t limit = trine_plan_fill_size(p->plan, text, p->call.dim);
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
    if (strstr(text, " alike") == NULL) return true;
    const int64_t part = o->count / o->full.shape[0];
    for (int64_t k = part; k < o->count; k++) o->value[k] = o->value[k - part];
    return true;
}

/* Mostly in [0, SYMBOL); half of the others just outside, the rest anywhere, also where the low 32 bits are a place. */
static bool fill_places(problem *p, int tensor) {
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
        if (o->full.dtype == TRINE_U8 && (place < 0 || place > UINT8_MAX)) place = UINT8_MAX;
        o->value[k] = (double)place;
    }
    return true;
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
static bool fill_lists(problem *p, int tensor) {
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
    return true;
}

/* Blocks of a size, in [0, SIZE divided by it), some of them more than once; a few are none, if any may be. */
static bool fill_blocks(problem *p, int tensor) {
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
    return true;
}

/* Of a sequence each, often all of it. */
static bool fill_lengths(problem *p, int tensor) {
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
    return true;
}

/* In half of the cases no two are the same, as far as that goes. A few are none, if any may be. */
static bool fill_slots(problem *p, int tensor) {
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
    return true;
}

/* Slots in order, now and then in none; strays may be anywhere. */
static bool fill_ascending(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    fill_slots(p, tensor);
    if (random_chance(&p->random, 6)) return true;
    qsort(o->value, (size_t)o->count, sizeof *o->value, ascending);
    for (int64_t n = o->count < 2 ? 0 : random_below(&p->random, 4); n > 0; n--) {
        const int64_t a = random_below(&p->random, o->count), b = random_below(&p->random, o->count);
        const double x = o->value[a];
        o->value[a] = o->value[b], o->value[b] = x;
    }
    return true;
}

static const filling fillings[] = {
    { "ids", fill_ids },     { "places", fill_places },       { "offsets", fill_offsets }, { "lengths", fill_lengths },
    { "slots", fill_slots }, { "ascending", fill_ascending }, { "lists", fill_lists },     { "blocks", fill_blocks },
};

const filling *fill_numbers(const trine_spec_tensor *spec) {
    for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++)
        if (fill_is(spec, fillings[i].word)) return &fillings[i];
    return NULL;
}
