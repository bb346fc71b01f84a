/* SPDX-License-Identifier: Apache-2.0 */
/* A case of more than 2^31 elements for each op that separates into parts: the whole is run, then slices at its start,
 * at the places where 32-bit indices wrap, and at its end are held against the reference.
 * So are sums over all slices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

enum { PERIOD = 4093 /* prime, so that no row length divides it */, LEAST_ROW = 64, LEAST_SLICE = 4096 };
static const double most_flops = 2e12;

/* The whole: the tensors of its call are the slice's `call.tensor`, dense, in the device's memory; element i of an
 * input holds table[i % period]. */
typedef struct whole {
    problem *slice;
    trine_queue *queue;
    int64_t dim[TRINE_MAX_SYMBOLS];
    unsigned char *table[TRINE_MAX_TENSORS];
    int64_t period[TRINE_MAX_TENSORS];
} whole;

/* Is this dimension the symbol along which the op separates? And does a tensor have such a one? */
static bool dim_grows(const problem *p, int tensor, int d) {
    const trine_dim *dim = &p->plan->tensor[tensor].dim[d];
    return dim->symbol == p->plan->independent && dim->add == 0;
}

static bool grows(const problem *p, int tensor) {
    for (int d = 0; d < p->plan->tensor[tensor].rank; d++)
        if (dim_grows(p, tensor, d)) return true;
    return false;
}

/* Sets the symbol to n. Elements of the largest given tensor that has it, and the bytes of all. */
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
        if (grows(p, i)) most = fmax(most, count);
        *bytes_out += count * (double)trine_dtype_size(p->operand[i].full.dtype);
    }
    return most;
}

/* The values of an input: the slice's over and over are what the op may see (ids stay ids), or the slice's own if it is
 * not larger in the whole. Outputs are poisoned. */
static bool make_table(whole *w, int tensor, int64_t count) {
    const problem *p = w->slice;
    const operand *o = &p->operand[tensor];
    const size_t width = trine_dtype_size(o->full.dtype);
    const bool input = problem_flags(p, tensor) & IN && o->count > 0, mixed = grows(p, tensor);
    const int64_t period = w->period[tensor] = input && !mixed ? o->count : count < PERIOD ? count : PERIOD;
    unsigned char *table = w->table[tensor] = malloc((size_t)period * width + 1);
    if (table == NULL) return false;
    memset(table, 0xff, (size_t)period * width);
    for (int64_t k = 0; input && k < period; k++)
        trine_store(table, o->full.dtype, k, o->value[mixed ? (k * 7919 + k / o->count) % o->count : k]);
    return true;
}

/* The tensor as the call is to see it, without memory. */
static void describe_tensor(const whole *w, int tensor) {
    problem *p = w->slice;
    trine_tensor *t = &p->call.tensor[tensor];
    int64_t next = 1;
    *t = (trine_tensor){ .dtype = p->operand[tensor].full.dtype, .rank = p->operand[tensor].full.rank };
    trine_plan_shape(p->plan, tensor, w->dim, t->shape);
    for (int d = t->rank - 1; d >= 0; next *= t->shape[d--]) t->stride[d] = next;
}

/* Writes a tensor: its table, then what is there behind itself, again and again. */
static bool make_tensor(whole *w, int tensor) {
    trine_tensor *t = &w->slice->call.tensor[tensor];
    const int64_t count = trine_tensor_count(t);
    if (!make_table(w, tensor, count)) return false;
    const size_t width = trine_dtype_size(t->dtype), bytes = (size_t)count * width,
                 first = (size_t)w->period[tensor] * width;
    bool ok = trine_memory_alloc(w->queue, bytes, &t->data) == TRINE_OK &&
              trine_memory_write(w->queue, t->data, w->table[tensor], first) == TRINE_OK;
    for (size_t done = first; ok && done < bytes; done *= 2)
        ok = trine_memory_copy(w->queue, (char *)t->data + done, t->data, bytes - done < done ? bytes - done : done) ==
             TRINE_OK;
    return ok;
}

/* The place, in the whole tensor, of element k of the slice that starts at `first` of the independent symbol. */
static int64_t whole_index(const whole *w, int tensor, int64_t first, int64_t k) {
    const problem *p = w->slice;
    const trine_tensor *part = &p->operand[tensor].full, *all = &p->call.tensor[tensor];
    int64_t place = 0;
    for (int d = part->rank - 1; d >= 0; d--) {
        int64_t index = k % part->shape[d];
        k /= part->shape[d];
        if (dim_grows(p, tensor, d)) index += first;
        place += index * all->stride[d];
    }
    return place;
}

/* The elements of a slice that lie side by side in the whole. */
static int64_t run_length(const operand *o) { return o->full.rank > 0 ? o->full.shape[o->full.rank - 1] : 1; }

/* What was put into the slice of an input that starts at `first`. */
static void take_input(const whole *w, int tensor, int64_t first) {
    const operand *o = &w->slice->operand[tensor];
    const int64_t period = w->period[tensor], run = run_length(o);
    for (int64_t k = 0; k < o->count; k += run) {
        int64_t place = whole_index(w, tensor, first, k) % period;
        for (int64_t i = 0; i < run; i++) {
            o->value[k + i] = trine_load(w->table[tensor], o->full.dtype, place);
            if (++place == period) place = 0;
        }
    }
}

/* Reads the slice of an output. NULL if that fails. */
static unsigned char *take_output(const whole *w, int tensor, int64_t first) {
    const operand *o = &w->slice->operand[tensor];
    const size_t width = trine_dtype_size(o->full.dtype);
    const int64_t run = run_length(o);
    unsigned char *output = malloc((size_t)o->count * width + 1);
    for (int64_t k = 0; output != NULL && k < o->count; k += run) {
        const char *place =
            (const char *)w->slice->call.tensor[tensor].data + width * (size_t)whole_index(w, tensor, first, k);
        if (trine_memory_read(w->queue, output + width * (size_t)k, place, width * (size_t)run) == TRINE_OK) continue;
        free(output);
        output = NULL;
    }
    return output;
}

/* The reference's results for the slice that starts at `first`. Backwards, so that the place that stays is the first
 * output's. */
static void refer(const whole *w, int64_t first) {
    problem *p = w->slice;
    for (int i = p->plan->tensors - 1; i >= 0; i--) {
        operand *o = &p->operand[i];
        if (problem_input(p, i)) take_input(w, i, first);
        if (!problem_output(p, i)) continue;
        memset(o->magnitude, 0, sizeof *o->magnitude * (size_t)o->count);
        memset(o->slack, 0, sizeof *o->slack * (size_t)o->count);
        p->first = (uint64_t)whole_index(w, i, first, 0);
    }
    problem_reference(p);
}

/* Holds the outputs that grow, or those that do not, against what the reference made. */
static bool compare(const whole *w, bool growing, int64_t first, char *text, size_t size) {
    const problem *p = w->slice;
    outcome y = { { NULL } };
    char detail[800];
    bool read = true, ok = true;
    for (int i = 0; read && i < p->plan->tensors; i++)
        if (problem_output(p, i) && grows(p, i) == growing) read = (y.output[i] = take_output(w, i, first)) != NULL;
    if (!read)
        snprintf(text, size, "%s", trine_error_message());
    else if (!(ok = compare_reference(p, &y, detail, sizeof detail)))
        snprintf(text, size, growing ? "in the slice from %lld: %s" : "summed from %lld: %s", (long long)first, detail);
    for (int i = 0; i < p->plan->tensors; i++) free(y.output[i]);
    return read && ok;
}

static bool check_slice(const whole *w, int64_t first, char *text, size_t size) {
    refer(w, first);
    return compare(w, true, first, text, size);
}

/* Adds the reference's results to the sums so many times, or puts the sums in their place if 0. */
static void exchange(const problem *p, double *const *sum, int64_t times) {
    for (int i = 0; i < p->plan->tensors; i++) {
        const operand *o = &p->operand[i];
        double *const result[] = { o->value, o->magnitude, o->slack };
        for (int64_t k = 0; sum[i] != NULL && k < 3 * o->count; k++) {
            double *x = &result[k / o->count][k % o->count];
            if (times > 0)
                sum[i][k] += (double)times * *x;
            else
                *x = sum[i][k];
        }
    }
}

/* Outputs that do not grow are the sums of all slices', and so is what bounds them, beside the number of terms of the
 * whole. After PERIOD slices what was put into them comes again. */
static bool check_sums(const whole *w, char *text, size_t size) {
    problem *p = w->slice;
    int64_t *symbol = &p->call.dim[p->plan->independent];
    const int64_t slice = *symbol, n = w->dim[p->plan->independent], slices = n / slice;
    double *sum[TRINE_MAX_TENSORS] = { NULL };
    bool any = false, ok = true;
    for (int i = 0; i < p->plan->tensors; i++) {
        if (!problem_output(p, i) || grows(p, i)) continue;
        any = true;
        ok &= (sum[i] = calloc((size_t)(3 * p->operand[i].count) + 1, sizeof *sum[i])) != NULL;
    }
    if (any && ok) {
        for (int64_t k = 0; k < slices && k < PERIOD; k++) {
            refer(w, k * slice);
            exchange(p, sum, (slices - k + PERIOD - 1) / PERIOD);
        }
        exchange(p, sum, 0);
        *symbol = n;
        ok = compare(w, false, 0, text, size);
        *symbol = slice;
    }
    for (int i = 0; i < p->plan->tensors; i++) free(sum[i]);
    return ok;
}

/* Runs the whole, and looks at it at its start and end, and for each tensor where element 2^31 is, and half of it,
 * where offsets in bytes wrap. */
static bool run_whole(whole *w, char *text, size_t size) {
    const problem *p = w->slice;
    bool ok = true;
    for (int i = 0; ok && i < p->plan->tensors; i++) ok = !problem_has(p, i) || make_tensor(w, i);
    ok = ok && trine_run(w->queue, p->plan->op, p->call.args) == TRINE_OK && trine_queue_wait(w->queue) == TRINE_OK;
    if (!ok) {
        snprintf(text, size, "%s", trine_error_message());
        return false;
    }
    const int64_t slice = p->call.dim[p->plan->independent], n = w->dim[p->plan->independent];
    ok = check_slice(w, 0, text, size) && check_slice(w, n - slice, text, size);
    for (int i = 0; ok && i < p->plan->tensors; i++) {
        if (!problem_has(p, i)) continue;
        const int64_t wrap = (int64_t)((double)n * 0x1p31 / (double)trine_tensor_count(&p->call.tensor[i])),
                      firsts[] = { wrap / 2, wrap - slice / 2 };
        for (int k = 0; ok && k < 2; k++)
            ok = firsts[k] < 0 || firsts[k] + slice > n || check_slice(w, firsts[k], text, size);
    }
    return ok && check_sums(w, text, size);
}

/* The bytes that the tensors and the workspace of a huge case may have. */
static double available_bytes(const context *c) {
    return 0.85 * (c->memory->host ? (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE)
                                   : (double)c->info.memory);
}

/* The bytes of workspace for the whole; 0 if no kernel takes it, as its run will say. */
static double workspace_bytes(const whole *w, trine_queue *queue) {
    const problem *p = w->slice;
    size_t bytes = 0;
    for (int i = 0; i < p->plan->tensors; i++)
        if (problem_has(p, i)) describe_tensor(w, i);
    return trine_workspace(queue, p->plan->op, p->call.args, &bytes) == TRINE_OK ? (double)bytes : 0;
}

/* Makes a whole that fits and does not take long, and whose slices are worth looking at. */
static bool make_whole(whole *w, const runner *r, const trine_plan *plan) {
    problem *p = w->slice;
    for (int64_t attempt = 0; plan->independent >= 0 && attempt < 200; attempt++) {
        double bytes;
        if (!problem_make(p, plan, &r->asked, r->options->seed, attempt, PROBLEM_PART)) continue;
        memcpy(w->dim, p->call.dim, sizeof w->dim);
        const double one = largest_count(p, w->dim, 1, &bytes);
        const int64_t slice = p->call.dim[plan->independent], n = (int64_t)(0x1.08p31 / fmax(one, 1)) + slice;
        largest_count(p, w->dim, n - n % slice, &bytes);
        const bool worth = (one >= LEAST_ROW || plan->symbols == 1) && one * (double)slice >= LEAST_SLICE &&
                           trine_plan_flops(plan, w->dim) < most_flops;
        if (worth && bytes + workspace_bytes(w, r->context[0].queue) < available_bytes(&r->context[0])) return true;
        problem_free(p);
    }
    return false;
}

bool run_huge(runner *r, const trine_plan *plan, int64_t index) {
    problem p;
    whole w = { .slice = &p };
    char text[1024] = "out of memory";
    const context *c = &r->context[0];
    if (index > 0) return false;
    if (!make_whole(&w, r, plan)) {
        runner_skip(r);
        return true;
    }
    runner_enter(r, c, NULL, &p);
    const trine_queue_options options = { .struct_size = sizeof options };
    if (trine_queue_open(c->lib, c->device, &options, &w.queue) == TRINE_OK && run_whole(&w, text, sizeof text))
        runner_pass(r);
    else
        runner_fail(r, c, NULL, &p, text);
    for (int i = 0; w.queue != NULL && i < plan->tensors; i++)
        if (problem_has(&p, i)) trine_memory_free(w.queue, p.call.tensor[i].data);
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) free(w.table[i]);
    trine_queue_close(w.queue);
    problem_free(&p);
    return true;
}
