/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over the references, correct ones and mutants. */
#include <trine/ops.h>

#include "mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "damage.h"
#include "record.h"

#define FAMILY(family) extern const mutant mutants_##family[];
#include "mutant_families.h"
#undef FAMILY
const mutant *const mutant_families[] = {
#define FAMILY(family) mutants_##family,
#include "mutant_families.h"
#undef FAMILY
    NULL
};

/* Reads a tensor into an array of its own, or writes it. */
static void copy(const mutant *m, const trine_tensor *t, double *value, bool write) {
    const int64_t count = trine_tensor_count(t);
    for (int64_t k = 0; k < count; k++) {
        const int64_t place = tensor_place(t, k), at = m->narrow ? (int32_t)place : place;
        if (write)
            trine_store(t->data, t->dtype, at, value[k]);
        else
            value[k] = trine_load(t->data, t->dtype, at);
    }
}

static void free_ref(trine_ref *ref) {
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) free(ref->value[i]), free(ref->magnitude[i]), free(ref->slack[i]);
}

static bool make_ref(const mutant *m, const trine_call *call, trine_ref *ref) {
    bool ok = true;
    for (int i = 0; i < call->plan->tensors; i++) {
        const uint32_t flags = call->plan->tensor[i].spec->flags;
        if (!(call->present >> i & 1)) continue;
        const size_t count = (size_t)trine_tensor_count(&call->tensor[i]) + 1;
        ok &= (ref->value[i] = calloc(count, sizeof(double))) != NULL;
        if (flags & OUT)
            ok &=
                (ref->magnitude[i] = calloc(count, sizeof(double))) && (ref->slack[i] = calloc(count, sizeof(double)));
        if (ok && flags & IN) copy(m, &call->tensor[i], ref->value[i], false);
    }
    return ok;
}

/* Would all ids be good if they had 32 bits? */
static bool narrow_good(const trine_call *call, const trine_ref *ref, const char *ids) {
    const int index = trine_plan_find_tensor(call->plan, ids);
    const trine_tensor *t = &call->tensor[index];
    const int64_t limit = trine_plan_fill_size(call->plan, call->plan->tensor[index].spec->fill, call->dim);
    if (t->dtype != TRINE_I64) return false;
    for (int64_t k = 0; k < trine_tensor_count(t); k++) {
        const int32_t low = (int32_t)(uint32_t)(int64_t)ref->value[index][k];
        if (low < 0 || low >= limit) return false;
    }
    return true;
}

static void spoil(const mutant *m, trine_ref *ref, unsigned char *args) {
    const trine_plan *plan = ref->plan;
    if (m->param) trine_param_set(plan, trine_plan_find_param(plan, m->param), args, m->value);
    if (m->without) {
        double **value = &ref->value[trine_plan_find_tensor(plan, m->without)];
        free(*value);
        *value = NULL;
    }
    if (m->before) m->before(ref, args);
}

static void spoil_results(const mutant *m, trine_ref *ref, const trine_call *call) {
    const int index = m->output ? trine_plan_find_tensor(call->plan, m->output) : -1;
    if (index >= 0 && ref->value[index])
        for (int64_t k = 0; k < trine_tensor_count(&call->tensor[index]); k++) ref->value[index][k] *= m->factor;
    if (m->after) m->after(ref);
}

/* Bytes of the outputs. */
static int64_t written(const trine_call *call) {
    int64_t bytes = 0;
    for (int i = 0; i < call->plan->tensors; i++)
        if (call->present >> i & 1 && call->plan->tensor[i].spec->flags & OUT)
            bytes += trine_tensor_count(&call->tensor[i]) * (int64_t)trine_dtype_size(call->tensor[i].dtype);
    return bytes;
}

static trine_status run_mutant(const trine_call *call) {
    static const mutant none;
    const mutant *m = call->self ? call->self : &none;
    if (m->streams && written(call) <= call->host->cache[2]) m = &none;
    _Alignas(16) unsigned char args[TRINE_MAX_ARGS];
    trine_ref ref = { .plan = call->plan, .args = args, .dim = call->dim, .type = call->type };
    memcpy(args, call->args, sizeof args);
    trine_status status = make_ref(m, call, &ref) ? damage_run(call) : TRINE_ERR_MEMORY;
    if (status == TRINE_ERR_ARGUMENT && m->ids && narrow_good(call, &ref, m->ids)) {
        status = TRINE_OK;
    } else if (status == TRINE_OK) {
        spoil(m, &ref, args);
        call->plan->spec->reference(&ref);
        spoil_results(m, &ref, call);
        for (int i = 0; i < call->plan->tensors; i++)
            if (call->present >> i & 1 && call->plan->tensor[i].spec->flags & OUT)
                copy(m, &call->tensor[i], ref.value[i], true);
    }
    free_ref(&ref);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const mutant *m = call->self;
    if (m != NULL && m->edge) trine_kernel_edge(edges, trine_plan_find_symbol(call->plan, m->edge), m->size);
}

static trine_status submit(const trine_call *call) { return record_submit(call, run_mutant); }

bool mutant_kernels(trine_op op, trine_kernel *list, int *count) {
    static char names[TRINE_OP_COUNT][MUTANT_MOST + 1][64];
    int own = 0;
    snprintf(names[op][0], sizeof names[op][0], "%s_reference", trine_specs[op]->name);
    list[(*count)++] = (trine_kernel){ .name = names[op][0], .refuse = damage_refuses, .launch = submit };
    for (const mutant *const *family = mutant_families; *family; family++)
        for (const mutant *m = *family; m->op && own < MUTANT_MOST; m++) {
            if (strcmp(m->op, trine_specs[op]->name) != 0) continue;
            snprintf(names[op][++own], sizeof names[op][0], "%s_%s", m->op, m->name);
            list[(*count)++] = (trine_kernel){
                .name = names[op][own], .refuse = damage_refuses, .launch = submit, .self = m, .edges = edges
            };
        }
    return damage_queue() != NULL;
}
