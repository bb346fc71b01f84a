/* SPDX-License-Identifier: Apache-2.0 */
/* The argument check of every op, from its table: the caller's arguments in, the canonical call out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trine/ops.h>

#include "comm.h"
#include "dispatch.h"
#include "overlap.h"
#include "text.h"

/* What the check knows besides the call. */
typedef struct checker {
    const trine_plan *plan;
    const char *op;
    trine_call *call;
    uint32_t unset; /* parameters that were left zero */
    int lead;       /* leading dimensions of the table that a rank's tensors do not have */
    short symbol_from[TRINE_MAX_SYMBOLS], type_from[TRINE_MAX_SYMBOLS]; /* tensor that bound it, -1: none */
    short missing[TRINE_MAX_TENSORS];                                   /* leading dimensions the caller left out */
    /* bytes a tensor covers; equal where it is empty or absent */
    char *low[TRINE_MAX_TENSORS], *high[TRINE_MAX_TENSORS];
} checker;

#define FAIL(...) trine_fail(TRINE_ERR_ARGUMENT, __VA_ARGS__)

/* The shape from dimension `first` on. */
static void shape_text(const trine_tensor *tensor, int first, char *out, size_t size) {
    text t = text_begin(out, size);
    text_add(&t, "[");
    for (int i = first; i < tensor->rank; i++) text_add(&t, "%s%" PRId64, i > first ? ", " : "", tensor->shape[i]);
    text_add(&t, "]");
}

static const char *dtype_text(trine_dtype dtype, char *buffer, size_t size) {
    const char *name = trine_dtype_name(dtype);
    if (name != NULL) return name;
    snprintf(buffer, size, "0x%04x", (unsigned)dtype);
    return buffer;
}

static trine_status copy_args(const trine_spec *spec, const void *args, trine_call *call) {
    if (args == NULL) return FAIL("%s: args is NULL", spec->name);
    size_t size;
    memcpy(&size, args, sizeof size);
    if (size < sizeof(size_t) + sizeof(void *))
        return FAIL("%s: struct_size is %zu; write TRINE_ARGS(%s) as the first member", spec->name, size, spec->name);
    /* Not a size that any version's structure has: it would cut a pointer in two. */
    if (size % sizeof(void *) != 0)
        return FAIL("%s: struct_size is %zu, not a multiple of %zu", spec->name, size, sizeof(void *));
    if (size > spec->args_size + 4096)
        return FAIL("%s: struct_size is %zu, but the structure has %zu bytes", spec->name, size, spec->args_size);
    for (size_t i = spec->args_size; i < size; i++)
        if (((const char *)args)[i] != 0)
            return FAIL("%s: byte %zu of args is set, but this library knows only %zu: it is older than the caller",
                        spec->name, i, spec->args_size);
    memset(call->storage, 0, spec->args_size);
    memcpy(call->storage, args, size < spec->args_size ? size : spec->args_size);
    return TRINE_OK;
}

/* A dimension of the table, as the call's tensors count them. */
static const trine_dim *dim_of(const checker *c, int index, int d) { return &c->plan->tensor[index].dim[d + c->lead]; }

/* The shape that the table asks for, without what a rank's tensors do not have. */
static const char *wanted_shape(const checker *c, int index) {
    const char *shape = c->plan->tensor[index].spec->shape;
    if (c->lead > 0) shape += strcspn(shape, " ");
    return shape + strspn(shape, " ");
}

/* Copies the tensor's description to full rank, with missing leading dimensions of 1. */
static trine_status take_tensor(checker *c, int index) {
    const trine_plan_tensor *want = &c->plan->tensor[index];
    const int rank = want->rank - c->lead;
    const trine_tensor *have = trine_plan_arg(c->plan, index, c->call->storage);
    trine_tensor *t = &c->call->tensor[index];
    if (have->rank < 0 || have->rank > TRINE_MAX_RANK)
        return FAIL("%s: %s has rank %d, but 0 to %d are possible: is it a trine_tensor?", c->op, want->spec->name,
                    have->rank, TRINE_MAX_RANK);
    if (trine_dtype_size(have->dtype) == 0)
        return FAIL("%s: %s has dtype 0x%04x, which is none", c->op, want->spec->name, (unsigned)have->dtype);
    int missing = rank - have->rank;
    for (int i = 0; i < missing; i++)
        if (!dim_of(c, index, i)->optional) missing = -1;
    if (missing < 0)
        return FAIL("%s: %s has rank %d, but its shape is [%s]", c->op, want->spec->name, have->rank,
                    wanted_shape(c, index));
    c->missing[index] = (short)missing;
    t->data = have->data;
    t->dtype = have->dtype;
    t->rank = rank;
    for (int i = 0; i < rank; i++) {
        t->shape[i] = i < missing ? 1 : have->shape[i - missing];
        t->stride[i] = i < missing ? 0 : have->stride[i - missing];
        if (t->shape[i] < 0) {
            char shape[256];
            shape_text(have, 0, shape, sizeof shape);
            return FAIL("%s: %s has shape %s: a dimension is negative", c->op, want->spec->name, shape);
        }
    }
    return TRINE_OK;
}

static trine_status wrong_dim(const checker *c, int index, int d, int64_t expected) {
    const trine_plan_tensor *want = &c->plan->tensor[index];
    const trine_dim *dim = dim_of(c, index, d);
    char shape[256];
    shape_text(&c->call->tensor[index], c->missing[index], shape, sizeof shape);
    if (dim->symbol >= 0 && dim->symbol == c->plan->ranks && c->lead > 0)
        return FAIL("%s: %s has shape %s, but comm has ranks = %" PRId64, c->op, want->spec->name, shape, expected);
    if (dim->symbol >= 0) {
        const int from = c->symbol_from[dim->symbol];
        if (from >= 0 && dim->add == 0)
            return FAIL("%s: %s has shape %s, but %s = %" PRId64 " from %s", c->op, want->spec->name, shape,
                        c->plan->symbol_name[dim->symbol], expected, c->plan->tensor[from].spec->name);
    }
    return FAIL("%s: %s has shape %s, but [%s] asks for %" PRId64 " at place %d", c->op, want->spec->name, shape,
                wanted_shape(c, index), expected, d - c->missing[index]);
}

/* Binds the symbols that appear first here, and compares the rest. */
static trine_status unify_shape(checker *c, int index) {
    const trine_plan_tensor *want = &c->plan->tensor[index];
    const trine_tensor *t = &c->call->tensor[index];
    int64_t *dim = c->call->dim;
    for (int i = 0; i < t->rank; i++) {
        const trine_dim *d = dim_of(c, index, i);
        const bool told = c->lead > 0 && d->symbol == c->plan->ranks; /* by the communicator */
        if (d->symbol >= 0 && c->symbol_from[d->symbol] < 0 && !told) {
            if (t->shape[i] < d->add) return wrong_dim(c, index, i, d->add);
            dim[d->symbol] = t->shape[i] - d->add;
            c->symbol_from[d->symbol] = (short)index;
            continue;
        }
        const int64_t expected = trine_plan_size(d, dim);
        if (t->shape[i] == expected) continue;
        if ((want->spec->flags & BROADCAST) && t->shape[i] == 1) continue;
        return wrong_dim(c, index, i, expected);
    }
    return TRINE_OK;
}

static trine_status unify_type(checker *c, int index) {
    const trine_plan_tensor *want = &c->plan->tensor[index];
    const trine_dtype have = c->call->tensor[index].dtype;
    char a[16], b[16];
    if (want->type < 0) {
        if (have == want->dtype) return TRINE_OK;
        return FAIL("%s: %s is %s, but must be %s", c->op, want->spec->name, dtype_text(have, a, sizeof a),
                    want->spec->type);
    }
    if (c->type_from[want->type] < 0) {
        c->type_from[want->type] = (short)index;
        c->call->type[want->type] = have;
        return TRINE_OK;
    }
    const trine_dtype bound = c->call->type[want->type];
    if (have == bound) return TRINE_OK;
    return FAIL("%s: %s is %s, but %s is %s", c->op, want->spec->name, dtype_text(have, a, sizeof a),
                c->plan->tensor[c->type_from[want->type]].spec->name, dtype_text(bound, b, sizeof b));
}

/* The types together must be a row of the table; type variables of absent tensors take the first row's that fits. */
static trine_status check_types(checker *c) {
    const trine_plan *plan = c->plan;
    for (int row = 0; row < plan->combos; row++) {
        bool fits = true;
        for (int i = 0; i < plan->types; i++) fits &= c->type_from[i] < 0 || c->call->type[i] == plan->combo[row][i];
        if (!fits) continue;
        memcpy(c->call->type, plan->combo[row], sizeof c->call->type);
        return TRINE_OK;
    }
    char have[256], buffer[16];
    text t = text_begin(have, sizeof have);
    for (int i = 0; i < plan->types; i++)
        if (c->type_from[i] >= 0)
            text_add(&t, "%s%s is %s", text_gap(&t, ", "), plan->tensor[c->type_from[i]].spec->name,
                     dtype_text(c->call->type[i], buffer, sizeof buffer));
    return FAIL("%s: no such combination of types: %s (see trine spec %s)", c->op, have, c->op);
}

/* Strides: a broadcast dimension is 0, one of length 1 as if contiguous, and what the table demands. Those of a tensor
 * without elements mean
 * nothing: kernels, which may compute with them, see 1. */
static trine_status check_strides(checker *c, int index) {
    const trine_plan_tensor *want = &c->plan->tensor[index];
    trine_tensor *t = &c->call->tensor[index];
    const uint32_t flags = want->spec->flags;
    if (flags & BROADCAST) {
        int64_t full[TRINE_MAX_RANK];
        trine_plan_shape(c->plan, index, c->call->dim, full);
        for (int i = 0; i < t->rank; i++) {
            if (t->shape[i] == 1 && full[i] != 1) t->stride[i] = 0;
            t->shape[i] = full[i];
        }
    }
    if (trine_tensor_count(t) == 0) {
        for (int i = 0; i < t->rank; i++) t->stride[i] = 1;
        return TRINE_OK;
    }
    int64_t contiguous = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] == 1) t->stride[i] = contiguous;
        if (__builtin_mul_overflow(t->stride[i], t->shape[i] > 0 ? t->shape[i] : 1, &contiguous)) contiguous = 1;
    }
    const int last = t->rank - 1;
    /* One row: its length-1 dimension is the contiguous one of a transposed view. */
    if (flags & TRANSPOSABLE && last > 0 && t->shape[last - 1] == 1 && t->stride[last] != 1) t->stride[last - 1] = 1;
    if (last < 0 || (flags & ANY_STRIDE)) return TRINE_OK;
    if (t->stride[last] == 1 || ((flags & BROADCAST) && t->stride[last] == 0)) return TRINE_OK;
    if (flags & TRANSPOSABLE && last > 0 && t->stride[last - 1] == 1) return TRINE_OK;
    return FAIL("%s: %s has stride %" PRId64 " in its last dimension, but %s must be contiguous", c->op,
                want->spec->name, t->stride[last], flags & TRANSPOSABLE ? "it or the one before" : "it");
}

/* The bytes a tensor covers; an extent beyond the address space is an error. */
static trine_status find_extent(checker *c, int index, bool need_data) {
    const trine_tensor *t = &c->call->tensor[index];
    const char *name = c->plan->tensor[index].spec->name;
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), count = trine_tensor_count(t);
    int64_t low = 0, high = size;
    if (count < 0) return FAIL("%s: the number of elements of %s overflows", c->op, name);
    if (count == 0) return TRINE_OK;
    for (int i = 0; i < t->rank; i++) {
        int64_t extent;
        if (__builtin_mul_overflow(t->stride[i], t->shape[i] - 1, &extent) ||
            __builtin_mul_overflow(extent, size, &extent) ||
            __builtin_add_overflow(extent < 0 ? low : high, extent, extent < 0 ? &low : &high))
            return FAIL("%s: the strides of %s reach beyond the address space", c->op, name);
    }
    if (!need_data) return TRINE_OK;
    if (t->data == NULL) {
        char shape[256];
        shape_text(t, c->missing[index], shape, sizeof shape);
        return FAIL("%s: %s has no data, but its shape is %s", c->op, name, shape);
    }
    if ((uintptr_t)t->data % (size_t)size != 0)
        return FAIL("%s: %s is at %p, which is not a multiple of its element's %d bytes", c->op, name, t->data,
                    (int)size);
    c->low[index] = (char *)t->data + low;
    c->high[index] = (char *)t->data + high;
    return TRINE_OK;
}

static bool same_view(const trine_tensor *a, const trine_tensor *b) {
    if (a->data != b->data || a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i] || (a->shape[i] != 1 && a->stride[i] != b->stride[i])) return false;
    return true;
}

/* No output may share memory with another tensor, but as the table allows; nor with itself. */
static trine_status check_overlap(const checker *c, int out) {
    const trine_plan *plan = c->plan;
    const trine_tensor *y = &c->call->tensor[out];
    const char *name = plan->tensor[out].spec->name;
    if (c->low[out] == c->high[out]) return TRINE_OK;
    if (trine_view_overlaps_itself(y))
        return FAIL("%s: elements of output %s overlap each other: its strides are too small", c->op, name);
    for (int i = 0; i < plan->tensors; i++) {
        if (i == out || c->high[i] <= c->low[out] || c->high[out] <= c->low[i]) continue;
        const trine_tensor *x = &c->call->tensor[i];
        const bool allowed = plan->alias[out] >> i & 1 || plan->alias[i] >> out & 1;
        if (allowed && same_view(x, y)) continue;
        if (!trine_views_overlap(x, y)) continue;
        return FAIL("%s: output %s overlaps %s%s", c->op, name, plan->tensor[i].spec->name,
                    allowed ? ": only the very same view is allowed" : "");
    }
    return TRINE_OK;
}

static trine_status check_param(checker *c, int index) {
    const trine_plan *plan = c->plan;
    const trine_spec_param *param = &plan->spec->params[index];
    const char *op = plan->spec->name;
    unsigned char *storage = c->call->storage;
    if (trine_param_unset(plan, index, storage)) {
        c->unset |= 1u << index;
        if (param->fallback != 0) {
            trine_param_set(plan, index, storage, param->fallback);
            return TRINE_OK;
        }
    }
    if (param->kind == U64 || param->kind == COMM) return TRINE_OK;
    if (param->kind == TEXT && trine_param_text(param, storage) == NULL)
        return param->min > 0 ? FAIL("%s: %s is NULL", op, param->name) : TRINE_OK;
    const double value = trine_param_get(plan, index, storage), min = plan->min[index], max = plan->max[index];
    if (!isfinite(value)) return FAIL("%s: %s is %g, but must be finite", op, param->name, value);
    if ((value < min || value > max) && c->unset >> index & 1 && trine_param_told(plan, index, c->call->present))
        return TRINE_OK;
    if (value < min) return FAIL("%s: %s is %.9g, but must be at least %.9g", op, param->name, value, min);
    if (value > max) return FAIL("%s: %s is %.9g, but must be at most %.9g", op, param->name, value, max);
    if (plan->below[index] >= 0 && value >= (double)c->call->dim[plan->below[index]])
        return FAIL("%s: %s is %.9g, but must be less than %s = %" PRId64, op, param->name, value,
                    plan->symbol_name[plan->below[index]], c->call->dim[plan->below[index]]);
    if (value != 0 || c->unset >> index & 1) return TRINE_OK;
    if (param->unset != NULL) return FAIL("%s: %s is 0: leave it out for %s", op, param->name, param->unset);
    if (param->fallback != 0) trine_param_set(plan, index, storage, 0); /* -0.0 has said what it had to say */
    return TRINE_OK;
}

static trine_status check_require(const checker *c, const trine_plan_require *require) {
    const uint32_t present = c->call->present & require->tensors;
    switch (require->kind) {
    case REQUIRE_BOTH:
        if (present == 0 || present == require->tensors) return TRINE_OK;
        return FAIL("%s: %s: give both or neither", c->op, require->text);
    case REQUIRE_ANY:
        if (present != 0) return TRINE_OK;
        return FAIL("%s: %s: give at least one", c->op, require->text);
    case REQUIRE_PARAM: {
        const char *tensor = c->plan->tensor[__builtin_ctz(require->tensors)].spec->name,
                   *param = c->plan->spec->params[require->param].name;
        if (present == 0 || !(c->unset >> require->param & 1)) return TRINE_OK;
        return FAIL("%s: %s is given and %s is 0: leave %s out, or set %s", c->op, tensor, param, tensor, param);
    }
    case REQUIRE_TENSOR:
        if (present == 0 || c->call->present >> require->with & 1) return TRINE_OK;
        return FAIL("%s: %s is given without %s", c->op, c->plan->tensor[__builtin_ctz(require->tensors)].spec->name,
                    c->plan->tensor[require->with].spec->name);
    case REQUIRE_INSTEAD: {
        const char *tensor = c->plan->tensor[__builtin_ctz(require->tensors)].spec->name,
                   *param = c->plan->spec->params[require->param].name;
        if (present == 0 || c->unset >> require->param & 1) return TRINE_OK;
        return FAIL("%s: %s is given, which stands for %s, but %s is set too", c->op, tensor, param, param);
    }
    default: break;
    }
    if (!trine_require_applies(c->plan, require, c->call->present, c->call->storage)) return TRINE_OK;
    if (trine_require_holds(require, c->call->dim, c->call->type)) return TRINE_OK;
    char values[256], buffer[16];
    text t = text_begin(values, sizeof values);
    if (require->kind == REQUIRE_TYPE)
        text_add(&t, "%s is %s", c->plan->type_name[require->type],
                 dtype_text(c->call->type[require->type], buffer, sizeof buffer));
    for (int i = 0; i < require->expr.length; i++) {
        const int symbol = require->expr.step[i].symbol;
        if (require->expr.step[i].op != '$') continue;
        const int from = c->symbol_from[symbol];
        text_add(&t, "%s%s = %" PRId64 "%s%s", text_gap(&t, ", "), c->plan->symbol_name[symbol], c->call->dim[symbol],
                 from >= 0 ? " of " : "", from >= 0 ? c->plan->tensor[from].spec->name : "");
    }
    return FAIL("%s: %s is required, but %s", c->op, require->text, values);
}

#define TRY(call) \
    do { \
        const trine_status status_ = (call); \
        if (status_ != TRINE_OK) return status_; \
    } while (0)

static trine_status check_tensors(checker *c) {
    const trine_plan *plan = c->plan;
    trine_call *call = c->call;
    for (int i = 0; i < plan->tensors; i++) {
        const trine_spec_tensor *spec = plan->tensor[i].spec;
        const trine_tensor **arg = (const trine_tensor **)(void *)(call->storage + spec->offset);
        if (*arg == NULL) {
            if (!(spec->flags & OPTIONAL)) return FAIL("%s: %s is NULL, but required", c->op, spec->name);
            continue;
        }
        TRY(take_tensor(c, i));
        *arg = &call->tensor[i];
        call->present |= 1u << i;
        TRY(unify_type(c, i));
    }
    /* A broadcast tensor cannot tell what a symbol is: it comes after those that can. */
    for (int broadcast = 0; broadcast <= 1; broadcast++)
        for (int i = 0; i < plan->tensors; i++)
            if (call->present >> i & 1 && !!(plan->tensor[i].spec->flags & BROADCAST) == broadcast)
                TRY(unify_shape(c, i));
    return TRINE_OK;
}

static trine_status check_memory(checker *c, bool need_data) {
    const trine_plan *plan = c->plan;
    trine_call *call = c->call;
    call->empty = true;
    for (int i = 0; i < plan->tensors; i++) {
        if (!(call->present >> i & 1)) continue;
        TRY(check_strides(c, i));
        TRY(find_extent(c, i, need_data));
        if (plan->tensor[i].spec->flags & OUT && trine_tensor_count(&call->tensor[i]) > 0) call->empty = false;
    }
    if (!need_data) return TRINE_OK;
    for (int i = 0; i < plan->tensors; i++)
        if (plan->tensor[i].spec->flags & OUT) TRY(check_overlap(c, i));
    return TRINE_OK;
}

/* Of an op of a group: with a communicator the tensors are a rank's, and `ranks` is known; without one they are those
 * of all ranks. */
static trine_status take_comm(checker *c) {
    if (c->plan->comm < 0) return TRINE_OK;
    const trine_comm *comm = trine_comm_of(c->plan, c->call->storage);
    if (comm == NULL) return TRINE_OK;
    if (comm->magic != COMM_MAGIC) return FAIL("%s: comm is not an open communicator", c->op);
    c->lead = 1;
    c->call->dim[c->plan->ranks] = comm->ranks;
    c->call->comm = comm->state;
    return TRINE_OK;
}

trine_status trine_check(trine_op op, const void *args, bool need_data, trine_call *call_out) {
    const trine_plan *plan = trine_plan_get(op);
    if (plan == NULL) return FAIL("op %d does not exist", (int)op);
    checker c;
    c.plan = plan;
    c.op = plan->spec->name;
    c.call = call_out;
    c.unset = 0;
    c.lead = 0;
    for (int i = 0; i < plan->symbols; i++) c.symbol_from[i] = -1;
    for (int i = 0; i < plan->types; i++) c.type_from[i] = -1;
    for (int i = 0; i < plan->tensors; i++) c.low[i] = c.high[i] = NULL;
    call_out->plan = plan;
    call_out->args = call_out->storage;
    call_out->present = 0;
    call_out->workspace = NULL;
    call_out->workspace_size = 0;
    call_out->comm = NULL;
    memset(call_out->dim, 0, sizeof call_out->dim);
    memset(call_out->type, 0, sizeof call_out->type);
    TRY(copy_args(plan->spec, args, call_out));
    TRY(take_comm(&c));
    TRY(check_tensors(&c));
    TRY(check_types(&c));
    for (int i = 0; i < plan->params; i++) TRY(check_param(&c, i));
    for (int i = 0; i < plan->requires; i++) TRY(check_require(&c, &plan->require[i]));
    if (plan->spec->check != NULL && !plan->spec->check(call_out->storage, call_out->present, NULL, 0)) {
        char why[512];
        plan->spec->check(call_out->storage, call_out->present, why, sizeof why);
        return FAIL("%s: %s", plan->spec->name, why);
    }
    return check_memory(&c, need_data);
}
