/* SPDX-License-Identifier: Apache-2.0 */
/* How the operands of a case lie in memory: padded, permuted, transposed, broadcast, reversed, of lower rank, one upon
 * another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

/* What the layouts of a tensor, and of an output that is the same view, may be. */
typedef struct freedom {
    bool transposed, any_stride, repeated;
} freedom;

static freedom freedom_of(const problem *p, int tensor) {
    const uint32_t flags = problem_flags(p, tensor);
    freedom f = { .transposed = flags & TRANSPOSABLE, .any_stride = flags & ANY_STRIDE };
    /* Elements that share memory must be equal, and are not if computed or ordered one by one. */
    f.repeated = !(flags & OUT) && !fill_is(p->plan->tensor[tensor].spec, "derived") &&
                 !fill_is(p->plan->tensor[tensor].spec, "offsets") &&
                 !fill_is(p->plan->tensor[tensor].spec, "lengths") && !fill_is(p->plan->tensor[tensor].spec, "paged");
    for (int o = 0; o < p->plan->tensors; o++) {
        if (p->operand[o].alias != tensor) continue;
        f.transposed &= !!(problem_flags(p, o) & TRANSPOSABLE);
        f.any_stride &= !!(problem_flags(p, o) & ANY_STRIDE);
        f.repeated = false;
    }
    return f;
}

/* The order of the dimensions in memory, innermost first. */
static void choose_order(problem *p, const trine_tensor *t, freedom f, int *order) {
    for (int i = 0; i < t->rank; i++) order[i] = t->rank - 1 - i;
    if (t->rank > 1 && (f.transposed || f.any_stride) && random_chance(&p->random, 2)) {
        order[0] = t->rank - 2;
        order[1] = t->rank - 1;
    }
    if (!random_chance(&p->random, 3)) return;
    for (int i = t->rank - 1; i > 1; i--) {
        const int j = 1 + (int)random_below(&p->random, i);
        const int swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

static void choose_strides(problem *p, int tensor, trine_tensor *t) {
    static const int64_t pads[] = { 1, 2, 3, 7, 8, 32, 61 };
    const freedom f = freedom_of(p, tensor);
    int order[TRINE_MAX_RANK];
    int64_t next = 1;
    if (p->kind != PROBLEM_DRAWN) {
        for (int d = t->rank - 1; d >= 0; next *= t->shape[d--]) t->stride[d] = next;
        return;
    }
    choose_order(p, t, f, order);
    const bool padded = random_chance(&p->random, p->whole ? 4 : 2),
               spread = !p->whole && f.any_stride && random_chance(&p->random, 2);
    if (spread) next = 2 + random_below(&p->random, 3);
    for (int i = 0; i < t->rank; i++) {
        const int d = order[i];
        t->stride[d] = next;
        next *= t->shape[d] > 0 ? t->shape[d] : 1;
        if (padded && (i == 0 || random_chance(&p->random, 2)))
            next += p->whole ? 64 : pads[random_below(&p->random, 7)];
        const bool free_stride = !p->whole && (i > 0 || f.any_stride);
        if (free_stride && t->shape[d] > 1 && random_chance(&p->random, 16)) t->stride[d] = -t->stride[d];
        if (free_stride && t->shape[d] > 1 && f.repeated && random_chance(&p->random, 16)) t->stride[d] = 0;
    }
}

/* The tensor as passed: dimensions of a broadcast one shortened to 1, missing ones left out, strides of length 1
 * anything. */
static void make_view(problem *p, int tensor) {
    const trine_plan_tensor *want = &p->plan->tensor[tensor];
    const trine_tensor *full = &p->operand[tensor].full;
    trine_tensor *view = &p->call.tensor[tensor];
    int first = 0;
    *view = *full;
    for (int d = 0; d < full->rank; d++)
        if (want->spec->flags & BROADCAST && full->stride[d] == 0) view->shape[d] = 1;
    while (p->kind == PROBLEM_DRAWN && first < full->rank && want->dim[first].optional && view->shape[first] == 1 &&
           random_chance(&p->random, 2))
        first++;
    view->rank -= first;
    for (int d = 0; d < view->rank; d++) {
        view->shape[d] = view->shape[d + first];
        view->stride[d] = full->stride[d + first];
        if (p->kind == PROBLEM_DRAWN && view->shape[d] == 1 && random_chance(&p->random, 3))
            view->stride[d] = random_chance(&p->random, 2) ? 12345 : -7;
    }
}

/* Elements from the first to the last along all dimensions but one. */
static int64_t span_beside(const trine_tensor *t, int but) {
    int64_t span = 1;
    for (int d = 0; d < t->rank; d++)
        if (d != but) span += (t->stride[d] < 0 ? -t->stride[d] : t->stride[d]) * (t->shape[d] - 1);
    return span;
}

/* Sets slices along the outermost dimension, if its stride is free, so far apart that the first and the last are from
 * 2^31 to 2^33 elements from each other: whole pages, in windows of whole pages that have one more than they need. */
static void spread_far(problem *p, int tensor) {
    enum { PAGE = 1 << 16, MOST = 32 };
    operand *o = &p->operand[tensor];
    trine_tensor *t = &o->full;
    const int64_t width = (int64_t)trine_dtype_size(t->dtype);
    random_state own = { ~p->random.state + (uint64_t)tensor };
    int outermost = -1;
    for (int d = 0; d < t->rank; d++) {
        const int64_t stride = t->stride[d] < 0 ? -t->stride[d] : t->stride[d];
        if (t->shape[d] > 1 && t->shape[d] <= MOST && stride >= span_beside(t, d) &&
            (stride > 1 || problem_flags(p, tensor) & ANY_STRIDE))
            outermost = d;
    }
    if (!p->far || o->count == 0 || outermost < 0 || random_chance(&own, 3)) return;
    const int64_t slices = t->shape[outermost], bytes = span_beside(t, outermost) * width,
                  frame = (bytes + 2 * PAGE - 1) / PAGE * PAGE,
                  least = (int64_t)exp2(random_between(&own, 31, 33)) * width / (slices - 1),
                  apart = (least / PAGE + 1) * PAGE + frame;
    o->far = outermost;
    o->windows = (memory_windows){ .count = slices, .apart = apart, .frame = (size_t)frame, .bytes = (size_t)bytes };
    t->stride[outermost] = t->stride[outermost] < 0 ? -(apart / width) : apart / width;
}

static void make_operand(problem *p, int tensor) {
    operand *o = &p->operand[tensor];
    trine_tensor *t = &o->full;
    const uint32_t flags = problem_flags(p, tensor);
    bool broadcast[TRINE_MAX_RANK] = { false };
    if (o->alias >= 0) {
        *t = p->operand[o->alias].full;
        o->far = p->operand[o->alias].far, o->windows = p->operand[o->alias].windows;
    } else {
        int64_t shape[TRINE_MAX_RANK];
        memcpy(shape, t->shape, sizeof shape);
        bool aliased = false;
        for (int i = 0; i < p->plan->tensors; i++) aliased |= p->operand[i].alias == tensor;
        for (int d = 0; flags & BROADCAST && !aliased && p->kind == PROBLEM_DRAWN && d < t->rank; d++)
            if ((broadcast[d] = random_chance(&p->random, 4)) && shape[d] != 1) t->shape[d] = 1;
        choose_strides(p, tensor, t);
        memcpy(t->shape, shape, sizeof shape);
        for (int d = 0; d < t->rank; d++)
            if (broadcast[d]) t->stride[d] = 0;
    }
    o->count = 1;
    for (int d = 0; d < t->rank; d++) o->count *= t->shape[d];
    if (o->alias < 0) spread_far(p, tensor);
}

void layout_place(operand *o) {
    const trine_tensor *full = &o->full;
    int64_t high = 0, index[TRINE_MAX_RANK] = { 0 };
    trine_tensor near = *full, *const t = &near;
    o->low = 0;
    o->bytes = 0;
    o->at = malloc(sizeof *o->at * (size_t)(o->count + 1));
    if (o->count == 0) return;
    if (o->windows.count > 0) {
        const int64_t window = (int64_t)(o->windows.frame / trine_dtype_size(full->dtype));
        t->stride[o->far] = full->stride[o->far] < 0 ? -window : window;
    }
    for (int d = 0; d < t->rank; d++) {
        const int64_t extent = t->stride[d] * (t->shape[d] - 1);
        *(extent < 0 ? &o->low : &high) += extent < 0 ? -extent : extent;
    }
    o->bytes = (size_t)(o->low + high + 1) * trine_dtype_size(t->dtype);
    for (int64_t k = 0, place = o->low; k < o->count; k++) {
        o->at[k] = place;
        for (int d = t->rank - 1; d >= 0; d--) {
            place += t->stride[d];
            if (++index[d] < t->shape[d]) break;
            place -= t->stride[d] * t->shape[d];
            index[d] = 0;
        }
    }
}

static bool alike(const problem *p, int a, int b) {
    const trine_tensor *x = &p->operand[a].full, *y = &p->operand[b].full;
    return x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x->shape, y->shape, sizeof x->shape[0] * (size_t)x->rank) == 0;
}

/* Lets outputs be inputs, where the table allows it; and now and then an input another input, which is always
 * allowed. */
static void choose_aliases(problem *p) {
    uint32_t taken = 0;
    for (int o = 0; o < p->plan->tensors; o++) {
        const uint32_t allowed = p->plan->alias[o] & p->call.present & ~taken;
        if (!problem_output(p, o) || allowed == 0 || !random_chance(&p->random, 3)) continue;
        int i = (int)random_below(&p->random, p->plan->tensors);
        while (!(allowed >> i & 1)) i = (i + 1) % p->plan->tensors;
        if (!alike(p, o, i)) continue;
        p->operand[o].alias = i;
        taken |= 1u << i | 1u << o;
    }
    for (int b = 1; b < p->plan->tensors; b++) {
        const int a = (int)random_below(&p->random, b);
        const bool plain_inputs = problem_has(p, a) && problem_has(p, b) &&
                                  !((problem_flags(p, a) | problem_flags(p, b)) & OUT) &&
                                  p->plan->tensor[a].spec->fill == NULL && p->plan->tensor[b].spec->fill == NULL;
        if (!plain_inputs || (taken >> a & 1) || (taken >> b & 1) || !alike(p, a, b) || !random_chance(&p->random, 8))
            continue;
        p->operand[b].alias = a;
        taken |= 1u << a | 1u << b;
    }
}

void layout_make(problem *p) {
    const int tensors = p->plan->tensors;
    for (int i = 0; i < tensors; i++) {
        trine_tensor *t = &p->operand[i].full;
        t->dtype = trine_plan_dtype(p->plan, i, p->call.type);
        t->rank = p->plan->tensor[i].rank;
        trine_plan_shape(p->plan, i, p->call.dim, t->shape);
    }
    if (p->kind == PROBLEM_DRAWN) choose_aliases(p);
    /* Inputs first: an alias takes its input's strides. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < tensors; i++) {
            if (!problem_has(p, i) || (p->operand[i].alias >= 0) != pass) continue;
            make_operand(p, i);
            layout_place(&p->operand[i]);
        }
    for (int i = 0; i < tensors; i++) {
        if (!problem_has(p, i)) continue;
        if (p->operand[i].alias < 0) make_view(p, i);
    }
    for (int i = 0; i < tensors; i++)
        if (problem_has(p, i) && p->operand[i].alias >= 0) p->call.tensor[i] = p->call.tensor[p->operand[i].alias];
    trine_case_link(&p->call);
}
