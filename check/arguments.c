/* SPDX-License-Identifier: Apache-2.0 */
/* Argument checks: a valid call spoiled in one way, made from the table, must be refused with a message that names the
 * op and the argument, and with nothing touched. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trine/ops.h>

#include "run.h"
#include "spec/number.h"

/* A spoiled call. */
typedef struct bad {
    problem *p;
    char what[160];   /* how it was spoiled */
    uint32_t tensors; /* the message must name one of these, */
    int param;        /* or this parameter (-1: none), */
    const char *word; /* or this word */
    bool data;        /* the fault is in the data, which only the kernel sees */
    bool allowed;     /* the call turned out to be valid after all */
} bad;

static const char *tensor_name(const bad *b, int i) { return b->p->plan->tensor[i].spec->name; }

static void *field_of(bad *b, uint32_t offset) { return b->p->call.args + offset; }

/* "x: " and how; the message must name the tensor. */
static trine_tensor *spoil(bad *b, int tensor, const char *how) {
    snprintf(b->what, sizeof b->what, "%s: %s", tensor_name(b, tensor), how);
    b->tensors = 1u << tensor;
    return &b->p->call.tensor[tensor];
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

/* A dimension one larger: the tensors that share its symbol disagree. Any of them may be named.
 * False if nothing contradicts it. */
static bool spoil_size(bad *b, int tensor, int d) {
    const trine_plan *plan = b->p->plan;
    const trine_dim *dim = &plan->tensor[tensor].dim[d];
    uint32_t sharing = 0;
    for (int i = 0; i < plan->tensors; i++)
        for (int k = 0; problem_has(b->p, i) && k < plan->tensor[i].rank; k++) {
            const trine_dim *other = &plan->tensor[i].dim[k];
            if ((i != tensor || k != d) && dim->symbol >= 0 && other->symbol == dim->symbol &&
                !(problem_flags(b->p, i) & BROADCAST && b->p->call.tensor[i].shape[k] == 1))
                sharing |= 1u << i;
        }
    if (dim->symbol >= 0 && sharing == 0) return false;
    char how[80];
    snprintf(how, sizeof how, "dimension %d is %" PRId64 " instead of %" PRId64, d,
             b->p->call.tensor[tensor].shape[d] + 1, b->p->call.tensor[tensor].shape[d]);
    trine_tensor *t = spoil(b, tensor, how);
    t->shape[d]++;
    for (int k = t->rank - 1, contiguous = 1; k >= 0; contiguous *= (int)t->shape[k--]) t->stride[k] = contiguous;
    b->tensors |= sharing;
    return true;
}

/* A type that no row of the table has in this place. */
static trine_dtype foreign_type(const bad *b, int tensor) {
    static const trine_dtype all[] = { TRINE_I16, TRINE_U32, TRINE_E5M2, TRINE_F64, TRINE_I32, TRINE_F32 };
    const trine_plan_tensor *t = &b->p->plan->tensor[tensor];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bool taken = t->type < 0 && t->dtype == all[i];
        for (int row = 0; t->type >= 0 && row < b->p->plan->combos; row++)
            taken |= b->p->plan->combo[row][t->type] == all[i];
        if (!taken) return all[i];
    }
    return TRINE_NONE;
}

/* The ways to spoil one tensor; `n` counts down to the one wanted. */
static bool spoil_tensor(bad *b, int tensor, int *n) {
    const uint32_t flags = problem_flags(b->p, tensor);
    trine_tensor *t = &b->p->call.tensor[tensor];
    const bool filled = b->p->operand[tensor].count > 0;
    const int last = t->rank - 1;
#define NTH(condition) if ((condition) && (*n)-- == 0)
    NTH(!(flags & OPTIONAL)) {
        spoil(b, tensor, "NULL");
        *(const trine_tensor **)field_of(b, b->p->plan->tensor[tensor].spec->offset) = NULL;
        return true;
    }
    NTH(filled) {
        spoil(b, tensor, "no data")->data = NULL;
        return true;
    }
    NTH(true) {
        spoil(b, tensor, "rank 9")->rank = TRINE_MAX_RANK + 1;
        return true;
    }
    NTH(true) {
        spoil(b, tensor, "rank -1")->rank = -1;
        return true;
    }
    NTH(t->rank < TRINE_MAX_RANK) {
        spoil(b, tensor, "one dimension too many");
        t->shape[t->rank] = t->stride[t->rank] = 1;
        t->rank++;
        return true;
    }
    NTH(last >= 0 && !b->p->plan->tensor[tensor].dim[last].optional) {
        spoil(b, tensor, "rank 0")->rank = 0;
        return true;
    }
    NTH(true) {
        spoil(b, tensor, "an unknown type code")->dtype = (trine_dtype)0x7777;
        return true;
    }
    NTH(foreign_type(b, tensor) != TRINE_NONE) {
        spoil(b, tensor, "a type that is not in the table")->dtype = foreign_type(b, tensor);
        return true;
    }
    NTH(last >= 0) {
        spoil(b, tensor, "a negative size")->shape[last] = -1;
        b->tensors = b->p->call.present;
        return true;
    }
    NTH(last >= 0) {
        spoil(b, tensor, "a size beyond all memory")->shape[0] = INT64_MAX;
        b->tensors = b->p->call.present;
        return true;
    }
    NTH(filled && last >= 0 && t->shape[last] > 1 && !(flags & (TRANSPOSABLE | ANY_STRIDE))) {
        spoil(b, tensor, "stride 2 in the last dimension")->stride[last] = 2;
        return true;
    }
    NTH(filled && last >= 1 && t->shape[0] > 1) {
        spoil(b, tensor, "a stride beyond all memory")->stride[0] = INT64_MAX;
        return true;
    }
    NTH(filled && last >= 1 && flags & OUT && t->shape[0] > 1) {
        spoil(b, tensor, "rows of an output upon each other")->stride[0] = 0;
        return true;
    }
    NTH(filled && trine_dtype_size(t->dtype) > 1) {
        spoil(b, tensor, "an address that is not a multiple of the element");
        t->data = (char *)t->data + 1;
        return true;
    }
    for (int d = 0; d < t->rank; d++) {
        if ((*n)-- != 0) continue;
        if (!spoil_size(b, tensor, d)) b->allowed = true;
        return true;
    }
#undef NTH
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- overlap */

/* Output `out` put upon tensor `other`: one element off where the same view is allowed, else right upon it. */
static bool spoil_overlap(bad *b, int out, int other) {
    const trine_plan *plan = b->p->plan;
    trine_tensor *y = &b->p->call.tensor[out], *x = &b->p->call.tensor[other];
    const bool view_allowed = plan->alias[out] >> other & 1 || plan->alias[other] >> out & 1;
    const size_t width = trine_dtype_size(y->dtype);
    if (out == other || !problem_has(b->p, out) || !problem_has(b->p, other)) return false;
    if (b->p->operand[out].bytes == 0 || b->p->operand[other].bytes <= width) return false;
    spoil(b, out, "overlaps another tensor");
    b->tensors |= 1u << other;
    y->data = (char *)x->data + (view_allowed ? width : 0);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- parameters */

static bool spoil_param(bad *b, int index, int *n) {
    const trine_spec_param *param = &b->p->plan->spec->params[index];
    void *field = field_of(b, param->offset);
    b->param = index;
    int count = 1;
    for (const char *at = param->values ? param->values : ""; *at; at++) count += *at == ' ';
    static const float wild[] = { NAN, INFINITY, -INFINITY };
#define SET(type, value) \
    (trine_snprintf(b->what, sizeof b->what, "%s = %.9g", param->name, (double)(value)), \
     *(type *)field = (type)(value), true)
    switch (param->kind) {
    case BOOL:
    case ENUM:
        if (param->kind == BOOL) count = 2;
        if ((*n)-- == 0) return SET(int32_t, -1);
        if ((*n)-- == 0) return SET(int32_t, count);
        if ((*n)-- == 0) return SET(int32_t, INT32_MAX);
        return false;
    case F32:
        if (param->unset != NULL && (*n)-- == 0) return SET(float, -0.0f);
        for (int i = 0; i < 3; i++)
            if ((*n)-- == 0) return SET(float, wild[i]);
        if (isfinite(param->min) && (*n)-- == 0) return SET(float, nextafterf((float)param->min, -INFINITY));
        if (isfinite(param->max) && param->max < trine_largest(TRINE_F32) && (*n)-- == 0)
            return SET(float, nextafterf((float)param->max, INFINITY));
        return false;
    case I32:
        if (isfinite(param->min) && param->min > INT32_MIN && (*n)-- == 0) return SET(int32_t, param->min - 1);
        if (isfinite(param->max) && param->max < INT32_MAX && (*n)-- == 0) return SET(int32_t, param->max + 1);
        if (b->p->plan->below[index] >= 0 && (*n)-- == 0) return SET(int32_t, b->p->call.dim[b->p->plan->below[index]]);
        return false;
    case I64:
        if (isfinite(param->min) && param->min > -0x1p53 && (*n)-- == 0) return SET(int64_t, param->min - 1);
        if (isfinite(param->max) && param->max < 0x1p53 && (*n)-- == 0) return SET(int64_t, param->max + 1);
        return false;
    case TEXT:
        if (param->min > 0 && (*n)-- == 0) {
            trine_param_set(b->p->plan, index, b->p->call.args, 0);
            snprintf(b->what, sizeof b->what, "%s = NULL", param->name);
            return true;
        }
        if ((*n)-- != 0) return false;
        *(const char **)field = "?";
        snprintf(b->what, sizeof b->what, "%s = \"?\"", param->name);
        return true;
    default: return false;
    }
#undef SET
}

/* A parameter left zero that a tensor asks for, or set though one stands for it. */
static bool spoil_required(bad *b, const trine_plan_require *require, int *n) {
    const bool instead = require->kind == REQUIRE_INSTEAD;
    if (require->kind != REQUIRE_PARAM && !instead) return false;
    if (!(require->tensors & b->p->call.present) || (*n)-- != 0) return false;
    b->param = require->param;
    snprintf(b->what, sizeof b->what, "%s: %s", b->p->plan->spec->params[require->param].name,
             instead ? "set beside the tensor that stands for it" : "left zero");
    trine_param_set(b->p->plan, require->param, b->p->call.args, instead);
    return true;
}

/* ----------------------------------------------------------------------------------------------- structure and data */

static bool spoil_structure(bad *b, int *n) {
    size_t *size = (size_t *)(void *)b->p->call.args;
    static const struct {
        size_t size;
        const char *what;
    } sizes[] = { { 0, "struct_size 0" }, { 1, "struct_size 1" }, { SIZE_MAX, "struct_size of all bits" } };
    b->word = "struct_size";
    for (int i = 0; i < 3; i++) {
        if ((*n)-- != 0) continue;
        *size = sizes[i].size;
        snprintf(b->what, sizeof b->what, "%s", sizes[i].what);
        return true;
    }
    return false;
}

/* An index that is out of its range, in the data: below 0, just too large, far too large; first the last element, then
 * the first. Then what a reader of its low 32 bits alone takes for a good one, for four numbers in turn: the row of
 * types changes after so many, so that each row with 64-bit indices has them all. */
static bool spoil_ids(bad *b, int tensor, int *n) {
    enum { NARROW = 6 };
    const operand *o = &b->p->operand[tensor];
    const trine_spec_tensor *spec = b->p->plan->tensor[tensor].spec;
    if (!fill_is(spec, "ids") || !problem_has(b->p, tensor) || o->count == 0) return false;
    const double limit = (double)trine_plan_fill_size(b->p->plan, spec->fill, b->p->call.dim);
    const double narrow[] = { -1, limit, 2147483647 }, wide[] = { 0x1p32 + limit - 1, -0x1p32 };
    const int count = NARROW + 4 * b->p->plan->combos, i = *n;
    if ((*n -= count) >= 0) return false;
    const bool last = i < NARROW ? i < 3 : i & 2;
    double id = i < NARROW ? narrow[i % 3] : wide[i & 1];
    if (o->full.dtype == TRINE_I32) id = fmax(id > INT32_MAX ? INT32_MAX : id, INT32_MIN);
    trine_snprintf(b->what, sizeof b->what, "%s: the %s element is %.17g", spec->name, last ? "last" : "first", id);
    trine_store(o->image, o->full.dtype, o->at[last ? o->count - 1 : 0], id);
    b->tensors = 1u << tensor;
    b->data = true;
    return true;
}

/* The faults of the data come before the operands are in memory, the others after. */
static bool spoil_data(bad *b, int *n) {
    for (int i = 0; i < b->p->plan->tensors; i++)
        if (spoil_ids(b, i, n)) return true;
    return false;
}

static bool spoil_call(bad *b, int *n) {
    const trine_plan *plan = b->p->plan;
    if (spoil_structure(b, n)) return true;
    b->word = NULL;
    for (int i = 0; i < plan->params; i++) {
        if (!spoil_param(b, i, n)) continue;
        b->allowed = trine_param_told(plan, i, b->p->call.present) && trine_param_unset(plan, i, b->p->call.args);
        return true;
    }
    for (int i = 0; i < plan->requires; i++)
        if (spoil_required(b, &plan->require[i], n)) return true;
    b->param = -1;
    for (int i = 0; i < plan->tensors; i++)
        if (problem_has(b->p, i) && spoil_tensor(b, i, n)) return true;
    for (int out = 0; out < plan->tensors; out++)
        for (int other = 0; other < plan->tensors; other++)
            if (plan->tensor[out].spec->flags & OUT && (*n)-- == 0) {
                if (!spoil_overlap(b, out, other)) b->allowed = true;
                return true;
            }
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ cases */

static bool message_good(const bad *b, const char *message, char *text, size_t size) {
    const trine_plan *plan = b->p->plan;
    bool named = b->word && strstr(message, b->word);
    for (int i = 0; i < plan->tensors; i++)
        if (b->tensors >> i & 1 && strstr(message, tensor_name(b, i))) named = true;
    if (b->param >= 0 && strstr(message, plan->spec->params[b->param].name)) named = true;
    if (strncmp(message, plan->spec->name, strlen(plan->spec->name)) == 0 && named) return true;
    snprintf(text, size, "%s: the message \"%s\" does not name the op and the argument", b->what, message);
    return false;
}

static bool refused(const context *c, bad *b, trine_queue *queue, char *text, size_t size) {
    char detail[256];
    const trine_status status = trine_run(queue, b->p->plan->op, b->p->call.args);
    if (status != TRINE_ERR_ARGUMENT) {
        snprintf(text, size, "%s: returned %s instead of TRINE_ERR_ARGUMENT", b->what, trine_status_name(status));
        return false;
    }
    if (!message_good(b, trine_error_message(), text, size)) return false;
    if (operands_fetch(c, b->p, queue, true, NULL, detail, sizeof detail)) return true;
    snprintf(text, size, "%s: %s", b->what, detail);
    return false;
}

/* A device without a kernel for the plain call, or on which faults in the data cannot be seen, has nothing to refuse it
 * with. */
static bool applies(const runner *r, const context *c, const problem *p, bool data) {
    trine_explanation why;
    const bool reports = c->memory->host && !(r->options->asynchronous && c->device > 0);
    return !data ||
           (reports && trine_explain(c->queue, p->plan->op, p->call.args, &why) == TRINE_OK && why.chosen >= 0);
}

bool run_arguments(runner *r, const trine_plan *plan, int64_t index) {
    char text[1024];
    for (int i = 0; i < r->contexts; i++) {
        const context *c = &r->context[i];
        if (c->small) continue;
        problem p;
        bad b = { .p = &p, .param = -1 };
        int n = (int)index;
        if (!problem_make(&p, plan, NULL, r->options->seed, index / 4 % plan->combos, PROBLEM_PLAIN))
            return index < 1000 && i == 0;
        const bool in_data = spoil_data(&b, &n);
        r->shared->kernel = i;
        runner_enter(r, c, NULL, &p);
        bool ready = operands_send(c, &p, c->queue, (int)index, 0);
        const bool spoiled = in_data || spoil_call(&b, &n);
        const size_t used = strlen(r->shared->what);
        snprintf(r->shared->what + used, sizeof r->shared->what - used, " (%s)", b.what);
        if (spoiled && !b.allowed && applies(r, c, &p, in_data)) {
            /* Queues of the contexts are strict: an own one, so that a fault in the data is met by a kernel. */
            trine_queue *queue = c->queue;
            trine_queue_options options = { .struct_size = sizeof options, .kernel = r->options->kernel };
            if (ready && in_data) ready = trine_queue_open(c->lib, c->device, &options, &queue) == TRINE_OK;
            if (!ready) snprintf(text, sizeof text, "%s: no memory or queue", b.what);
            if (ready && refused(c, &b, queue, text, sizeof text))
                runner_pass(r);
            else
                runner_fail(r, c, NULL, &p, text);
            if (queue != c->queue) trine_queue_close(queue);
        }
        problem_free(&p);
        if (!spoiled) return false;
    }
    return true;
}
