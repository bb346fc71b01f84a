/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of every op alike: the CPU's kernel runs, then what it wrote is damaged. */
#include <trine/ops.h>

#include "damage.h"
#include "record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

trine_queue *damage_queue(void) {
    static trine_queue *queue;
    trine *lib;
    if (queue == NULL &&
        trine_open(&(trine_options){ .struct_size = sizeof(trine_options), .backends = "cpu" }, &lib) == TRINE_OK)
        trine_queue_open(lib, trine_device_find(lib, "cpu"), NULL, &queue);
    return queue;
}

/* A checked call as its caller had it: broadcast dimensions and zeros that are meant must be said again. */
typedef struct again {
    trine_tensor tensor[TRINE_MAX_TENSORS];
    _Alignas(16) unsigned char args[TRINE_MAX_ARGS];
} again;

static void say_again(const trine_call *call, again *a) {
    const trine_plan *plan = call->plan;
    memcpy(a->args, call->args, sizeof a->args);
    for (int i = 0; i < plan->tensors; i++) {
        if (!(call->present >> i & 1)) continue;
        trine_tensor *t = &a->tensor[i];
        *t = call->tensor[i];
        for (int d = 0; plan->tensor[i].spec->flags & BROADCAST && d < t->rank; d++)
            if (t->stride[d] == 0) t->shape[d] = t->stride[d] = 1;
        *(const trine_tensor **)(void *)(a->args + plan->tensor[i].spec->offset) = t;
    }
    for (int i = 0; i < plan->params; i++)
        if (plan->spec->params[i].fallback != 0 && trine_param_get(plan, i, a->args) == 0)
            trine_param_set(plan, i, a->args, -0.0);
}

trine_status damage_run(const trine_call *call) {
    again a;
    say_again(call, &a);
    return trine_run(damage_queue(), call->plan->op, a.args);
}

const char *damage_refuses(const trine_call *call) {
    again a;
    trine_explanation why;
    say_again(call, &a);
    return trine_explain(damage_queue(), call->plan->op, a.args, &why) == TRINE_OK && why.chosen >= 0
               ? NULL
               : "the CPU has no kernel";
}

int64_t tensor_place(const trine_tensor *t, int64_t i) {
    int64_t at = 0;
    for (int d = t->rank - 1; d >= 0; i /= t->shape[d--]) at += i % t->shape[d] * t->stride[d];
    return at;
}

static bool is_output(const trine_call *call, int index) {
    return call->present >> index & 1 && call->plan->tensor[index].spec->flags & OUT;
}

static trine_status last_wrong(const trine_call *call) {
    const trine_status status = damage_run(call);
    for (int i = 0; i < call->plan->tensors && status == TRINE_OK; i++) {
        const trine_tensor *y = &call->tensor[i];
        if (!is_output(call, i) || trine_tensor_count(y) == 0) continue;
        const int64_t at = tensor_place(y, trine_tensor_count(y) - 1);
        const double right = trine_load(y->data, y->dtype, at);
        trine_store(y->data, y->dtype, at, right == 0 ? 1 : right * 1.5);
    }
    return status;
}

static trine_status last_unwritten(const trine_call *call) {
    char before[TRINE_MAX_TENSORS][8] = { 0 };
    trine_status status = TRINE_OK;
    for (int restore = 0; restore < 2 && status == TRINE_OK; restore++) {
        for (int i = 0; i < call->plan->tensors; i++) {
            const trine_tensor *y = &call->tensor[i];
            if (!is_output(call, i) || trine_tensor_count(y) == 0) continue;
            const size_t size = trine_dtype_size(y->dtype);
            char *at = (char *)y->data + tensor_place(y, trine_tensor_count(y) - 1) * (int64_t)size;
            memcpy(restore ? at : before[i], restore ? before[i] : at, size);
        }
        if (restore == 0) status = damage_run(call);
    }
    return status;
}

static trine_status all_nan_swallowed(const trine_call *call) {
    const trine_status status = damage_run(call);
    for (int i = 0; i < call->plan->tensors && status == TRINE_OK; i++) {
        const trine_tensor *y = &call->tensor[i];
        for (int64_t k = 0; is_output(call, i) && k < trine_tensor_count(y); k++)
            if (isnan(trine_load(y->data, y->dtype, tensor_place(y, k))))
                trine_store(y->data, y->dtype, tensor_place(y, k), 0);
    }
    return status;
}

/* What a list does otherwise is in its kernel's launch_list. */
static trine_status last_wrong_in_list(const trine_call *call) { return damage_run(call); }

static trine_status list_submitted(trine_call *const *calls, int64_t count) {
    trine_status status = TRINE_OK;
    for (int64_t i = 0; i < count && status == TRINE_OK; i++) status = record_submit(calls[i], last_wrong);
    return status;
}

#define DAMAGE(defect, what) \
    static trine_status defect##_submitted(const trine_call *call) { return record_submit(call, defect); }
DAMAGES(DAMAGE)
#undef DAMAGE

bool damage_kernels(trine_op op, trine_kernel *list, int *count) {
#define DAMAGE(defect, what) { #defect, defect##_submitted },
    static const struct {
        const char *name;
        trine_status (*launch)(const trine_call *call);
    } damages[] = { DAMAGES(DAMAGE) };
#undef DAMAGE
    enum { KINDS = sizeof damages / sizeof damages[0] };
    static char names[TRINE_OP_COUNT][KINDS][64];
    for (int i = 0; i < KINDS; i++) {
        snprintf(names[op][i], sizeof names[op][i], "%s_%s", trine_specs[op]->name, damages[i].name);
        list[(*count)++] =
            (trine_kernel){ .name = names[op][i],
                            .refuse = damage_refuses,
                            .launch = damages[i].launch,
                            .launch_list = damages[i].launch == last_wrong_in_list_submitted ? list_submitted : NULL };
    }
    return damage_queue() != NULL;
}
