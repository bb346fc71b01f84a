/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a case: types, tensors, sizes and parameters that the table admits. */
#include "problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/number.h"

/* Random values and exact integers come more often than the rest. */
static const fill fills[] = { FILL_RANDOM,   FILL_INTEGERS, FILL_RANDOM, FILL_OFFSET, FILL_NAN,      FILL_HUGE,
                              FILL_INTEGERS, FILL_TINY,     FILL_RANDOM, FILL_CANCEL, FILL_CONSTANT, FILL_RANGE,
                              FILL_INF,      FILL_RANDOM,   FILL_ZERO,   FILL_BITS };

/* ------------------------------------------------------------------------------------------------------------ types */

static bool types_wanted(const trine_plan *plan, const trine_dtype *combo, const trine_case *asked) {
    for (int t = 0; t < plan->types && asked != NULL; t++)
        if (asked->type[t] != TRINE_NONE && asked->type[t] != combo[t]) return false;
    return true;
}

/* The dispatcher cannot know the type variables of absent tensors: they are the first admissible row's that fits. */
static void canonical_types(problem *p) {
    const trine_plan *plan = p->plan;
    bool bound[TRINE_MAX_SYMBOLS] = { false };
    for (int i = 0; i < plan->tensors; i++)
        if (problem_has(p, i) && plan->tensor[i].type >= 0) bound[plan->tensor[i].type] = true;
    for (int row = 0; row < plan->combos; row++) {
        bool fits = true;
        for (int t = 0; t < plan->types; t++) fits &= !bound[t] || plan->combo[row][t] == p->call.type[t];
        if (!fits) continue;
        memcpy(p->call.type, plan->combo[row], sizeof p->call.type);
        return;
    }
}

/* ------------------------------------------------------------------------------------------------------------ sizes */

enum { LARGE = 1000 }; /* a largest listed size that stands for all above it */

/* With its three leading bits alone: 1024, 1280, 1536, 1792, 2048 and the like, as models have them. */
static int64_t round_size(int64_t value) {
    int below = 0;
    while (value >> below >= 8) below++;
    return value >> below << below;
}

/* Any up to the largest, small ones as often as large ones; half of them of whole vectors, which begin anywhere; in
 * whole cases all, aligned, and rows four times as long. Half are round, where kernels change and their users are. */
static int64_t any_size(problem *p, int64_t largest) {
    const int64_t reach = p->whole && largest >= LARGE ? 4 * largest : largest;
    const int64_t value = (int64_t)exp2(random_between(&p->random, 0, log2((double)reach + 1)));
    const int64_t step = p->whole ? 64 : random_chance(&p->random, 2) ? 8 : 1;
    const int64_t size = value >= step ? value - value % step : value;
    return random_chance(&p->random, 2) ? round_size(size) : size;
}

/* What .sizes lists for a symbol, those above `least`; returns their number. */
static int listed_sizes(const problem *p, int symbol, int64_t least, int64_t *sizes_out, int most,
                        int64_t *largest_out) {
    const char *name = p->plan->symbol_name[symbol];
    int count = 0;
    *largest_out = 0;
    for (int i = 0; i < TRINE_MAX_STRINGS && p->plan->spec->sizes[i]; i++) {
        const char *at = p->plan->spec->sizes[i];
        const size_t length = strlen(name);
        if (strncmp(at, name, length) != 0 || at[length] != ':') continue;
        for (at += length + 1; *at;) {
            char *end;
            const int64_t value = strtoll(at, &end, 10);
            if (end == at) break;
            if (value > least && count < most) sizes_out[count++] = value;
            if (value > *largest_out) *largest_out = value;
            at = end;
        }
    }
    return count;
}

/* One of the values above `below` that .sizes lists for a symbol, or now and then any up to the largest. */
static int64_t pick_size(problem *p, int symbol, int64_t below) {
    enum { MOST = 64 };
    int64_t listed[MOST], largest;
    const int count = listed_sizes(p, symbol, below, listed, MOST, &largest);
    if (count == 0) return 1 + random_below(&p->random, 4);
    if (largest > 1 && p->kind == PROBLEM_DRAWN &&
        (p->whole ? !random_chance(&p->random, 3) : random_chance(&p->random, 4)))
        return any_size(p, largest);
    return listed[random_below(&p->random, count)];
}

/* Symbols that only absent tensors have are 0, as the dispatcher leaves them. */
static void clear_unbound(problem *p) {
    bool bound[TRINE_MAX_SYMBOLS] = { false };
    for (int i = 0; i < p->plan->tensors; i++)
        for (int d = 0; problem_has(p, i) && d < p->plan->tensor[i].rank; d++)
            if (p->plan->tensor[i].dim[d].symbol >= 0) bound[p->plan->tensor[i].dim[d].symbol] = true;
    for (int s = 0; s < p->plan->symbols; s++)
        if (!bound[s]) p->call.dim[s] = 0;
}

/* One of .values for each TEXT parameter. */
static void choose_texts(problem *p) {
    for (int i = 0; i < p->plan->params; i++) {
        const trine_spec_param *param = &p->plan->spec->params[i];
        char chosen[512] = "", error[256];
        int seen = 0;
        if (param->kind != TEXT) continue;
        for (const char *at = param->values; *at; at += strspn(at, " ")) {
            const size_t length = strcspn(at, " ");
            if (random_chance(&p->random, ++seen)) snprintf(chosen, sizeof chosen, "%.*s", (int)length, at);
            at += length;
        }
        if (!trine_case_set(&p->call, param->name, chosen, error, sizeof error)) abort();
    }
}

static bool requirements_hold(const problem *p) {
    for (int i = 0; i < p->plan->requires; i++) {
        const trine_plan_require *require = &p->plan->require[i];
        const uint32_t given = require->tensors & p->call.present;
        if (require->kind == REQUIRE_BOTH && given != 0 && given != require->tensors) return false;
        if (require->kind == REQUIRE_ANY && given == 0) return false;
        if (require->kind == REQUIRE_TENSOR && given != 0 && !(p->call.present >> require->with & 1)) return false;
        if (trine_require_applies(p->plan, require, p->call.present, p->call.args) &&
            !trine_require_holds(require, p->call.dim, p->call.type))
            return false;
    }
    return p->plan->spec->check == NULL || p->plan->spec->check(p->call.args, p->call.present, NULL, 0);
}

/* Something like the seconds a plain loop takes, in nanoseconds; infinite where a shape is impossible. */
static double cost(const problem *p) {
    double total = trine_plan_flops(p->plan, p->call.dim);
    for (int i = 0; i < p->plan->tensors; i++) {
        if (!problem_has(p, i)) continue;
        int64_t shape[TRINE_MAX_RANK];
        double count = 16;
        trine_plan_shape(p->plan, i, p->call.dim, shape);
        for (int d = 0; d < p->plan->tensor[i].rank; d++) {
            if (shape[d] < 0) return INFINITY;
            count *= (double)shape[d];
        }
        total += count;
    }
    return total;
}

/* One that .sizes lets be large; -1: none. */
static int pick_long_symbol(problem *p) {
    int chosen = -1, seen = 0;
    for (int s = 0; s < p->plan->symbols; s++) {
        int64_t largest;
        listed_sizes(p, s, 0, NULL, 0, &largest);
        if (largest >= LARGE && random_chance(&p->random, ++seen)) chosen = s;
    }
    return chosen;
}

/* From a 32nd of what the limit admits where all else is 1. */
static int64_t long_size(problem *p, int symbol, uint32_t present, double limit) {
    p->call.present = present;
    for (int s = 0; s < p->plan->symbols; s++) p->call.dim[s] = s == symbol ? LARGE : 1;
    const int64_t value = (int64_t)(LARGE * limit / cost(p) * exp2(random_between(&p->random, -5, 0)));
    return p->whole ? value - value % 64 : value;
}

/* In plain calls few dimensions are 1, and beside one that is long or asked for none is 0. */
static int64_t size_below(problem *p, bool set) {
    if (p->kind != PROBLEM_DRAWN) return !random_chance(&p->random, 8);
    return set ? 0 : -1;
}

/* What cases cost at most, but where sizes are asked for. */
static const double most_cost = 3e8;

/* What a case may cost: seldom much. */
static double choose_limit(problem *p, bool is_long) {
    if (p->kind != PROBLEM_DRAWN) return 1e6;
    if (is_long) return random_chance(&p->random, 4) ? 2e7 : 4e6;
    return random_chance(&p->random, 60) ? most_cost : random_chance(&p->random, 8) ? 4e7 : 4e6;
}

/* Where a text says which tensors are read and written: those are given that it reads, and none that it does not
 * write. A draw of both that fits would be rare, and of texts that set few tensors rarer than of others. */
static void give_what_texts_say(problem *p) {
    bool (*const fits)(const void *, uint32_t, char *, size_t) = p->plan->spec->check;
    uint32_t inputs = 0, outputs = 0;
    if (fits == NULL) return;
    for (int i = 0; i < p->plan->tensors; i++)
        if (problem_flags(p, i) & OPTIONAL) *(problem_input(p, i) ? &inputs : &outputs) |= 1u << i;
    const uint32_t enough = (p->call.present | inputs) & ~outputs;
    for (int i = 0; i < p->plan->tensors; i++) {
        const uint32_t bit = 1u << i;
        if (inputs & ~p->call.present & bit && !fits(p->call.args, enough & ~bit, NULL, 0)) p->call.present |= bit;
        if (outputs & p->call.present & bit && !fits(p->call.args, enough | bit, NULL, 0)) p->call.present &= ~bit;
    }
}

/* The smallest that .sizes lists, but 0. */
static int64_t least_size(const problem *p, int symbol) {
    enum { MOST = 64 };
    int64_t listed[MOST], largest, least = INT64_MAX;
    const int count = listed_sizes(p, symbol, 0, listed, MOST, &largest);
    for (int i = 0; i < count; i++)
        if (listed[i] < least) least = listed[i];
    return count > 0 ? least : 1;
}

/* What is asked for, or as little as may be. */
static void set_least(problem *p, const trine_case *asked) {
    for (int s = 0; s < p->plan->symbols; s++)
        p->call.dim[s] = asked != NULL && asked->dim[s] >= 0 ? asked->dim[s] : least_size(p, s);
}

static bool any_asked(const problem *p, const trine_case *asked) {
    for (int s = 0; s < p->plan->symbols && asked != NULL; s++)
        if (asked->dim[s] >= 0) return true;
    return false;
}

/* What a case of these tensors costs that is as small as may be. */
static double least_cost(problem *p, const trine_case *asked, uint32_t present) {
    p->call.present = present;
    set_least(p, asked);
    return cost(p);
}

/* In one case of 24 a dimension is long, and the others must do with what it leaves of the limit: drawn together, long
 * ones are nearly always thrown away. Half of those, and one of four else, are bare: fast paths want no optional
 * tensor, or none of several. What is asked for is drawn unless it costs too much. */
static bool choose_sizes(problem *p, const trine_case *asked) {
    const int symbol = p->kind == PROBLEM_DRAWN && random_chance(&p->random, 24) ? pick_long_symbol(p) : -1;
    const double limit = choose_limit(p, symbol >= 0);
    uint32_t optional = 0, required = 0;
    for (int i = 0; i < p->plan->tensors; i++)
        if (p->kind != PROBLEM_PART || !(problem_flags(p, i) & OPTIONAL) ||
            !(fill_is(p->plan->tensor[i].spec, "offsets") || fill_is(p->plan->tensor[i].spec, "lengths")))
            *(problem_flags(p, i) & OPTIONAL ? &optional : &required) |= 1u << i;
    const bool all = p->kind == PROBLEM_PLAIN || (p->kind == PROBLEM_PART && !random_chance(&p->random, 2));
    p->bare = p->kind == PROBLEM_DRAWN && random_chance(&p->random, symbol < 0 ? 4 : 2);
    const int64_t size = symbol >= 0 ? long_size(p, symbol, p->bare ? required : required | optional, limit) : 0;
    const bool set = any_asked(p, asked);
    const double least = set ? least_cost(p, asked, required | optional) : 0,
                 most = least > most_cost ? limit : fmax(limit, 2 * least);
    for (int attempt = 0; attempt < 4000; attempt++) {
        const bool wanted = attempt < 2000;
        const uint32_t coins = (uint32_t)random_next(&p->random);
        p->call.present = required | (optional & (wanted && all ? ~0u : wanted && p->bare ? 0 : coins));
        choose_texts(p);
        if (!(wanted && p->bare)) give_what_texts_say(p);
        for (int s = 0; s < p->plan->symbols; s++) {
            p->call.dim[s] = wanted && s == symbol ? size : pick_size(p, s, size_below(p, set || symbol >= 0));
            if (asked != NULL && asked->dim[s] >= 0) p->call.dim[s] = asked->dim[s];
        }
        clear_unbound(p);
        if (requirements_hold(p) && cost(p) <= most) return true;
    }
    return false;
}

/* Has every dimension that is asked for a tensor that has it? */
static bool all_bound(const problem *p, const trine_case *asked) {
    for (int s = 0; s < p->plan->symbols; s++)
        if (asked->dim[s] >= 0 && p->call.dim[s] != asked->dim[s]) return false;
    return true;
}

/* Sizes beside those asked for, by turns as small as may be and drawn. Where even the smallest cost much, that is worth
 * it in one case of eight. */
static bool choose_beside(problem *p, const trine_case *asked) {
    enum { ATTEMPTS = 2000 };
    static const double ordinary = 4e6, much = 1e7;
    uint32_t optional = 0, required = 0;
    for (int i = 0; i < p->plan->tensors; i++) *(problem_flags(p, i) & OPTIONAL ? &optional : &required) |= 1u << i;
    const double least = least_cost(p, asked, required | optional),
                 limit = least > much ? 2 * least : fmax(4 * least, ordinary);
    const bool small = random_chance(&p->random, 2);
    p->bare = random_chance(&p->random, 4);
    if (least > (random_chance(&p->random, 8) ? most_cost : much)) return false;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const uint32_t coins = (uint32_t)random_next(&p->random);
        p->call.present = required | (optional & (p->bare && attempt < ATTEMPTS / 2 ? 0 : coins));
        choose_texts(p);
        give_what_texts_say(p);
        set_least(p, asked);
        for (int s = 0; s < p->plan->symbols && (attempt % 2 == 0) != small; s++)
            if (asked->dim[s] < 0) p->call.dim[s] = pick_size(p, s, 0);
        clear_unbound(p);
        if (all_bound(p, asked) && requirements_hold(p) && cost(p) <= limit) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------------- parameters */

static void set_param(problem *p, int index, const char *value) {
    char error[256];
    /* a zero among .values is one that is left */
    if (p->plan->spec->params[index].unset != NULL && trine_strtod(value, NULL) == 0) return;
    if (!trine_case_set(&p->call, p->plan->spec->params[index].name, value, error, sizeof error)) {
        fprintf(stderr, "specification of %s: .values of %s: %s\n", p->plan->spec->name,
                p->plan->spec->params[index].name, error);
        abort();
    }
}

/* One of .values; with integers in, one that is 0 or 1. ENUM names stand for their numbers. */
static void choose_param(problem *p, int index, bool integers) {
    const trine_spec_param *param = &p->plan->spec->params[index];
    char word[64];
    if (param->kind == U64 && param->values == NULL) {
        snprintf(word, sizeof word, "%" PRIu64, random_next(&p->random) >> random_below(&p->random, 64));
        set_param(p, index, word);
        return;
    }
    int seen = 0, number = 0;
    char chosen[64] = "";
    for (const char *at = param->values ? param->values : ""; *at; number++) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, " ");
        if (length == 0 || length >= sizeof word) break;
        memcpy(word, at, length);
        word[length] = 0;
        at += length;
        const double value = param->kind == ENUM ? number : trine_strtod(word, NULL);
        if (integers && (value != 0 || signbit(value)) && value != 1) continue;
        if (p->plan->below[index] >= 0 && value >= (double)p->call.dim[p->plan->below[index]]) continue;
        if (random_chance(&p->random, ++seen)) memcpy(chosen, word, sizeof chosen);
    }
    if (seen > 0) set_param(p, index, chosen);
}

static void choose_params(problem *p) {
    const bool defaults = p->bare || random_chance(&p->random, 4), integers = p->fill == FILL_INTEGERS;
    p->exact = integers && p->plan->spec->integers_exact;
    for (int i = 0; i < p->plan->params; i++) {
        const trine_spec_param *param = &p->plan->spec->params[i];
        if (param->kind == TEXT || param->kind == COMM) continue;
        if (!defaults && p->kind != PROBLEM_PLAIN) choose_param(p, i, integers);
        /* A choice that asks for other sizes or types than there are. */
        if (param->kind == ENUM && !requirements_hold(p)) {
            trine_param_set(p->plan, i, p->call.args, 0);
            p->call.set &= ~(1u << i);
        }
        /* A parameter that must be set, as a step number from 1. */
        const double value = trine_param_get(p->plan, i, p->call.args);
        if (param->fallback == 0 && (value < param->min || value > param->max)) choose_param(p, i, false);
    }
}

/* What must be set beside a tensor that is given: to what it is otherwise. And what one stands for is left. */
static void set_required(problem *p) {
    for (int i = 0; i < p->plan->requires; i++) {
        const trine_plan_require *require = &p->plan->require[i];
        if (require->kind == REQUIRE_INSTEAD && require->tensors & p->call.present) {
            trine_param_set(p->plan, require->param, p->call.args, 0);
            p->call.set &= ~(1u << require->param);
        }
        if (require->kind != REQUIRE_PARAM || !(require->tensors & p->call.present) ||
            !trine_param_unset(p->plan, require->param, p->call.args))
            continue;
        trine_param_set(p->plan, require->param, p->call.args, p->plan->spec->params[require->param].fallback);
        p->call.set |= 1u << require->param;
    }
}

/* The reference's copy of the arguments: fallbacks in the place of zeros, zeros for -0.0 where it stands for one, and
 * the full tensors. */
static void resolve(problem *p) {
    const trine_plan *plan = p->plan;
    memcpy(p->resolved, p->call.args, sizeof p->resolved);
    for (int i = 0; i < plan->params; i++) {
        const trine_spec_param *param = &plan->spec->params[i];
        if (param->fallback != 0 && trine_param_unset(plan, i, p->resolved))
            trine_param_set(plan, i, p->resolved, param->fallback);
        else if (param->fallback != 0 && trine_param_get(plan, i, p->resolved) == 0)
            trine_param_set(plan, i, p->resolved, 0);
        const double value = trine_param_get(plan, i, p->resolved);
        if (param->kind != U64 && value != 0 && value != 1) p->exact = false;
    }
    for (int i = 0; i < plan->tensors; i++)
        *(const trine_tensor **)(void *)(p->resolved + plan->tensor[i].spec->offset) =
            problem_has(p, i) ? &p->operand[i].full : NULL;
}

void problem_complete(problem *p) {
    clear_unbound(p);
    canonical_types(p);
    resolve(p);
}

/* ------------------------------------------------------------------------------------------------------------ cases */

static bool begin(problem *p, const trine_plan *plan, const trine_case *asked, int64_t row) {
    trine_case_init(&p->call, plan->op);
    if (!types_wanted(plan, plan->combo[row], asked)) return false;
    memcpy(p->call.type, plan->combo[row], sizeof p->call.type);
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) p->operand[i].alias = -1;
    return true;
}

/* Operands and values, where types, sizes and parameters have been chosen. */
static bool complete(problem *p) {
    layout_make(p);
    resolve(p);
    p->empty = true;
    for (int i = 0; i < p->plan->tensors; i++)
        if (problem_output(p, i) && p->operand[i].count > 0) p->empty = false;
    if (fill_make(p)) return true;
    problem_free(p);
    return false;
}

bool problem_given(problem *p, const trine_case *given, uint64_t seed, int64_t index) {
    memset(p, 0, sizeof *p);
    p->plan = given->plan;
    p->kind = PROBLEM_PLAIN;
    p->fill = FILL_RANDOM;
    p->random = random_of(seed, p->plan->spec->name, -1 - index);
    p->call = *given;
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) p->operand[i].alias = -1;
    clear_unbound(p);
    canonical_types(p);
    return complete(p);
}

bool problem_make(problem *p, const trine_plan *plan, const trine_case *asked, uint64_t seed, int64_t index,
                  problem_kind kind) {
    const bool edge = kind == PROBLEM_EDGE;
    const int64_t row = index % plan->combos;
    memset(p, 0, sizeof *p);
    p->plan = plan;
    p->kind = edge ? PROBLEM_DRAWN : kind;
    p->random = random_of(edge ? ~seed : seed, plan->spec->name, p->kind != PROBLEM_DRAWN ? -1 - index : index);
    p->whole = p->kind == PROBLEM_DRAWN && random_chance(&p->random, 2);
    p->alike = edge && random_chance(&p->random, 2);
    random_state own = random_of(seed, "far", index); /* so that nothing else depends on it */
    p->far = p->kind == PROBLEM_DRAWN && random_chance(&own, 16);
    p->small = p->kind == PROBLEM_DRAWN && random_chance(&own, 3);
    if (!begin(p, plan, asked, row)) return false;
    p->fill = p->kind != PROBLEM_DRAWN ? FILL_RANDOM
                                       : fills[(size_t)(index / plan->combos + row) % (sizeof fills / sizeof fills[0])];
    if (edge ? asked == NULL || !choose_beside(p, asked) : !choose_sizes(p, asked)) return false;
    canonical_types(p);
    choose_params(p);
    set_required(p);
    return complete(p);
}

bool problem_outline(problem *p, const trine_plan *plan, const trine_case *asked, int row) {
    enum { ATTEMPTS = 200 };
    memset(p, 0, sizeof *p);
    p->plan = plan;
    p->kind = PROBLEM_PLAIN;
    p->random = random_of(0, plan->spec->name, row);
    if (!begin(p, plan, asked, row)) return false;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        set_least(p, asked);
        for (int s = 0; s < plan->symbols && attempt > 0; s++)
            if (asked == NULL || asked->dim[s] < 0) p->call.dim[s] = pick_size(p, s, 0);
        p->call.present = 0;
        for (int i = 0; i < plan->tensors; i++)
            if (!(problem_flags(p, i) & OPTIONAL) || random_chance(&p->random, 2)) p->call.present |= 1u << i;
        clear_unbound(p);
        choose_texts(p);
        if (!requirements_hold(p)) continue;
        canonical_types(p);
        choose_params(p);
        set_required(p);
        layout_make(p);
        return true;
    }
    return false;
}

void problem_free(problem *p) {
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) {
        operand *o = &p->operand[i];
        free(o->at), free(o->image), free(o->value), free(o->magnitude), free(o->slack), free(o->golden);
    }
    memset(p->operand, 0, sizeof p->operand);
}

void problem_reference(problem *p) {
    trine_ref ref = {
        .plan = p->plan, .args = p->resolved, .dim = p->call.dim, .type = p->call.type, .first = p->first
    };
    for (int i = 0; i < p->plan->tensors; i++) {
        operand *o = &p->operand[i];
        ref.value[i] = o->value;
        if (!problem_output(p, i)) continue;
        ref.magnitude[i] = o->magnitude;
        ref.slack[i] = o->slack;
        if (!problem_input(p, i))
            for (int64_t k = 0; k < o->count; k++) o->value[k] = NAN;
    }
    p->plan->spec->reference(&ref);
}

/* ------------------------------------------------------------------------------------------------------------- text */

void problem_text(const problem *p, char *text_out, size_t size) {
    static const char *const name[FILLS] = { "random", "integers", "offset",   "huge", "tiny", "range",  "cancel",
                                             "NaN",    "Inf",      "constant", "zero", "bits", "golden", "scaled" };
    trine_case_text(&p->call, text_out, size);
    size_t used = strlen(text_out);
#define PUT(...) (used += used < size ? (size_t)snprintf(text_out + used, size - used, __VA_ARGS__) : 0)
    PUT(" fill=%s", name[p->fill]);
    for (int i = 0; i < p->plan->tensors; i++) {
        if (!problem_has(p, i)) continue;
        const trine_tensor *t = &p->operand[i].full;
        if (p->operand[i].alias >= 0) {
            PUT(" %s=%s", p->plan->tensor[i].spec->name, p->plan->tensor[p->operand[i].alias].spec->name);
            continue;
        }
        int64_t contiguous = 1;
        bool strided = false;
        for (int d = t->rank - 1; d >= 0; contiguous *= t->shape[d--])
            strided |= t->shape[d] != 1 && t->stride[d] != contiguous;
        if (!strided || p->operand[i].count == 0) continue;
        PUT(" %s.stride=", p->plan->tensor[i].spec->name);
        for (int d = 0; d < t->rank; d++) PUT("%s%" PRId64, d ? "," : "", t->stride[d]);
    }
#undef PUT
}
