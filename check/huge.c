/* SPDX-License-Identifier: Apache-2.0 */
/* A case of more than 2^31 elements for each op that separates into independent problems: the whole is run, then slices at its start, at the
 * places where 32-bit indices wrap, and at its end are held against the reference. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

enum { PERIOD = 65521 /* prime, so that no row length divides it */ };

/* The whole: tensors are dense; element i of an input holds table[i % PERIOD]. */
typedef struct whole {
    problem *slice;
    int64_t dim[TRINE_MAX_SYMBOLS];
    trine_tensor tensor[TRINE_MAX_TENSORS];
    void *memory[TRINE_MAX_TENSORS];
} whole;

static bool has_symbol(const trine_plan *plan, int tensor, int symbol) {
    for (int d = 0; d < plan->tensor[tensor].rank; d++)
        if (plan->tensor[tensor].dim[d].symbol == symbol && plan->tensor[tensor].dim[d].add == 0) return true;
    return false;
}

/* Elements of all given tensors, and their bytes, when the symbol is `n`. */
static double largest_count(const problem *p, int64_t *dim, int64_t n, double *bytes_out) {
    double most = 0;
    dim[p->plan->independent] = n;
    *bytes_out = 0;
    for (int i = 0; i < p->plan->tensors; i++) {
        int64_t shape[TRINE_MAX_RANK];
        double count = 1;
        if (!problem_has(p, i)) continue;
        trine_plan_shape(p->plan, i, dim, shape);
        for (int d = 0; d < p->plan->tensor[i].rank; d++) count *= (double)shape[d];
        most = fmax(most, count);
        *bytes_out += count * (double)trine_dtype_size(p->operand[i].full.dtype);
    }
    return most;
}

/* Values of the tensors beyond the slice's own: the slice's values over and over are what the op may see (ids stay ids). */
static bool make_tensor(whole *w, int tensor) {
    const problem *p = w->slice;
    const operand *o = &p->operand[tensor];
    trine_tensor *t = &w->tensor[tensor];
    const size_t width = trine_dtype_size(o->full.dtype);
    int64_t next = 1;
    *t = (trine_tensor){ .dtype = o->full.dtype, .rank = o->full.rank };
    trine_plan_shape(p->plan, tensor, w->dim, t->shape);
    for (int d = t->rank - 1; d >= 0; next *= t->shape[d--]) t->stride[d] = next;
    const size_t bytes = (size_t)next * width;
    t->data = w->memory[tensor] = malloc(bytes + 1);
    if (t->data == NULL) return false;
    memset(t->data, 0xff, bytes);
    if (!(problem_flags(p, tensor) & IN) || o->count == 0) return true;
    if (!has_symbol(p->plan, tensor, p->plan->independent)) {
        for (int64_t k = 0; k < o->count; k++) trine_store(t->data, t->dtype, k, o->value[k]);
        return true;
    }
    const int64_t period = next < PERIOD ? next : PERIOD;
    for (int64_t k = 0; k < period; k++) trine_store(t->data, t->dtype, k, o->value[(k * 7919 + k / o->count) % o->count]);
    for (size_t done = (size_t)period * width; done < bytes;) {
        const size_t more = bytes - done < (size_t)period * width ? bytes - done : (size_t)period * width;
        memcpy((char *)t->data + done, t->data, more);
        done += more;
    }
    return true;
}

/* The place, in the whole tensor, of element k of the slice that starts at `first` of the independent symbol. */
static int64_t whole_index(const whole *w, int tensor, int64_t first, int64_t k) {
    const problem *p = w->slice;
    const trine_tensor *part = &p->operand[tensor].full, *all = &w->tensor[tensor];
    int64_t place = 0;
    for (int d = part->rank - 1; d >= 0; d--) {
        const trine_dim *dim = &p->plan->tensor[tensor].dim[d];
        int64_t index = k % part->shape[d];
        k /= part->shape[d];
        if (dim->symbol == p->plan->independent && dim->add == 0) index += first;
        place += index * all->stride[d];
    }
    return place;
}

/* Takes a slice out of the whole, runs the reference on it and compares. IN|OUT tensors are read before the op runs: they have no huge case. */
static bool check_slice(const whole *w, int64_t first, char *text, size_t size) {
    problem *p = w->slice;
    outcome y = { { NULL } };
    for (int i = 0; i < p->plan->tensors; i++) {
        operand *o = &p->operand[i];
        if (!problem_has(p, i)) continue;
        const size_t width = trine_dtype_size(o->full.dtype);
        if (problem_output(p, i)) y.output[i] = malloc((size_t)o->count * width + 1);
        for (int64_t k = 0; k < o->count; k++) {
            const int64_t place = whole_index(w, i, first, k);
            if (problem_output(p, i))
                memcpy(y.output[i] + width * (size_t)k, (char *)w->tensor[i].data + width * (size_t)place, width);
            else
                o->value[k] = trine_load(w->tensor[i].data, o->full.dtype, place);
        }
        if (problem_output(p, i)) {
            memset(o->magnitude, 0, sizeof *o->magnitude * (size_t)o->count);
            memset(o->slack, 0, sizeof *o->slack * (size_t)o->count);
        }
    }
    problem_reference(p);
    char detail[800];
    const bool ok = compare_reference(p, &y, detail, sizeof detail);
    if (!ok) snprintf(text, size, "in the slice from %lld: %s", (long long)first, detail);
    for (int i = 0; i < p->plan->tensors; i++) free(y.output[i]);
    return ok;
}

/* Can the op have a huge case: all given outputs have the symbol, and nothing is derived or updated in place? */
static bool separates(problem *p) {
    const trine_plan *plan = p->plan;
    for (int i = 0; i < plan->tensors; i++) {
        const uint32_t flags = problem_flags(p, i);
        if (!problem_has(p, i)) continue;
        if ((flags & IN && flags & OUT) || fill_is(plan->tensor[i].spec, "offsets")) return false;
        if (fill_is(plan->tensor[i].spec, "derived")) return false;
        if (flags & OUT && !has_symbol(plan, i, plan->independent)) return false;
    }
    return true;
}

/* Where the op sees a tensor: on the host where it is, on a device a copy. */
static bool lend_tensor(const context *c, whole *w, int tensor, trine_queue *queue, void **device_out) {
    trine_tensor *t = &w->slice->call.tensor[tensor];
    const size_t bytes = (size_t)trine_tensor_count(&w->tensor[tensor]) * trine_dtype_size(w->tensor[tensor].dtype);
    *t = w->tensor[tensor];
    if (c->memory->host) return true;
    if (trine_memory_alloc(queue, bytes, device_out) != TRINE_OK) return false;
    t->data = *device_out;
    return trine_memory_write(queue, t->data, w->memory[tensor], bytes) == TRINE_OK;
}

static bool return_tensor(const whole *w, int tensor, trine_queue *queue, void *device) {
    const size_t bytes = (size_t)trine_tensor_count(&w->tensor[tensor]) * trine_dtype_size(w->tensor[tensor].dtype);
    if (device == NULL || !problem_output(w->slice, tensor)) return true;
    return trine_memory_read(queue, w->memory[tensor], device, bytes) == TRINE_OK;
}

static bool run_op(const context *c, whole *w, char *text, size_t size) {
    trine_queue_options options = { .struct_size = sizeof options };
    trine_queue *queue;
    problem *p = w->slice;
    void *device[TRINE_MAX_TENSORS] = { NULL };
    bool ok = trine_queue_open(c->lib, c->device, &options, &queue) == TRINE_OK;
    if (!ok) queue = NULL;
    for (int i = 0; ok && i < p->plan->tensors; i++) ok = !problem_has(p, i) || lend_tensor(c, w, i, queue, &device[i]);
    ok = ok && trine_run(queue, p->plan->op, p->call.args) == TRINE_OK && trine_queue_wait(queue) == TRINE_OK;
    for (int i = 0; ok && i < p->plan->tensors; i++) ok = !problem_has(p, i) || return_tensor(w, i, queue, device[i]);
    if (!ok) snprintf(text, size, "%s", trine_error_message());
    for (int i = 0; queue != NULL && i < p->plan->tensors; i++) trine_memory_free(queue, device[i]);
    trine_queue_close(queue);
    return ok;
}

static bool run_whole(const context *c, whole *w, char *text, size_t size) {
    const problem *p = w->slice;
    if (!run_op(c, w, text, size)) return false;
    const int64_t slice = p->call.dim[p->plan->independent], n = w->dim[p->plan->independent];
    for (int i = 0; i < p->plan->tensors; i++) {
        /* Element 2^31 of this tensor, and half of it, where offsets in bytes wrap. */
        const int64_t wrap = problem_has(p, i) ? (int64_t)((double)n * 0x1p31 / (double)trine_tensor_count(&w->tensor[i])) : n;
        const int64_t firsts[] = { 0, wrap / 2, wrap - slice / 2, n - slice };
        for (size_t k = 0; k < sizeof firsts / sizeof firsts[0]; k++)
            if (firsts[k] >= 0 && firsts[k] + slice <= n && !check_slice(w, firsts[k], text, size)) return false;
    }
    return true;
}

bool run_huge(runner *r, const trine_plan *plan, int64_t index) {
    problem p;
    whole w = { .slice = &p };
    char text[1024] = "out of memory";
    const context *c = &r->context[0];
    if (index > 0 || plan->independent < 0) return false;
    /* The smallest types, and rows of a few thousand elements. */
    bool found = false;
    int64_t n = 0;
    double bytes = INFINITY;
    double available = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) * 0.9;
    if (!c->memory->host) available = fmin(available, 0.9 * (double)c->info.memory);
    for (int64_t attempt = 0; attempt < 200 && !found; attempt++) {
        if (!problem_make(&p, plan, r->options->types, r->options->seed, attempt, true)) continue;
        memcpy(w.dim, p.call.dim, sizeof w.dim);
        const double one = largest_count(&p, w.dim, 1, &bytes);
        n = (int64_t)(0x1.08p31 / fmax(one, 1)) + p.call.dim[plan->independent];
        largest_count(&p, w.dim, n, &bytes);
        found = one >= 64 && separates(&p) && bytes < available;
        if (!found) problem_free(&p);
    }
    if (!found) {
        runner_skip(r);
        return true;
    }
    w.dim[plan->independent] = n;
    runner_enter(r, c, NULL, &p);
    bool ok = true;
    for (int i = 0; ok && i < plan->tensors; i++) ok = !problem_has(&p, i) || make_tensor(&w, i);
    ok = ok && run_whole(c, &w, text, sizeof text);
    if (ok)
        runner_pass(r);
    else
        runner_fail(r, c, NULL, &p, text);
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) free(w.memory[i]);
    problem_free(&p);
    return true;
}
