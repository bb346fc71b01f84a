/* SPDX-License-Identifier: Apache-2.0 */
/* What a choice of kernel is made by, as a key and as text. */
#include "choice.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The bucket of a size: itself up to 7, and then four for each power of two. */
static uint64_t bucket_of(int64_t size) {
    if (size < 8) return size > 0 ? (uint64_t)size : 0;
    const int power = 63 - __builtin_clzll((unsigned long long)size);
    return 4 * (uint64_t)(power - 1) + ((uint64_t)size >> (power - 2) & 3);
}

static long long least_of(uint64_t bucket) {
    return bucket < 8 ? (long long)bucket : (long long)((4 + bucket % 4) << (bucket / 4 - 1));
}

uint64_t trine_choice_key(uint64_t owner, const trine_plan *plan, const trine_choice *c) {
    uint64_t hash = mix(mix(owner, (uint64_t)plan->op << 40 ^ (uint64_t)c->flags << 32 ^ c->present), c->transposed);
    for (int i = 0; i < plan->types; i++) hash = mix(hash, c->type[i]);
    for (int i = 0; i < plan->symbols; i++) hash = mix(hash, bucket_of(c->dim[i]));
    for (int i = 0; i < plan->params; i++) hash = mix(hash, c->param[i]);
    return hash ? hash : 1;
}

static bool is_choice(const trine_spec_param *param) { return param->kind == BOOL || param->kind == ENUM; }

/* What stands for a parameter: its value, or a number for its text. */
static uint64_t param_of(const trine_plan *plan, int index, const void *args) {
    const trine_spec_param *param = &plan->spec->params[index];
    if (is_choice(param)) return (uint64_t)trine_param_get(plan, index, args);
    if (param->kind != TEXT) return 0;
    uint64_t hash = 0;
    for (const char *at = trine_param_text(param, args); at != NULL && *at; at++)
        if (*at > ' ') hash = mix(hash, (unsigned char)*at);
    return hash >> 1;
}

void trine_choice_of(const trine_queue *queue, const trine_call *call, trine_choice *c) {
    const trine_plan *plan = call->plan;
    memcpy(c->type, call->type, sizeof c->type);
    memcpy(c->dim, call->dim, sizeof c->dim);
    c->present = c->transposed = 0;
    c->flags = queue->flags & (TRINE_QUEUE_ATOMICS | TRINE_QUEUE_REPRODUCIBLE);
    for (int i = 0; i < plan->tensors; i++) {
        const trine_tensor *t = &call->tensor[i];
        if (plan->tensor[i].spec->flags & OPTIONAL) c->present |= call->present & 1u << i;
        if (plan->tensor[i].spec->flags & TRANSPOSABLE && call->present >> i & 1 && t->stride[t->rank - 1] != 1)
            c->transposed |= 1u << i;
    }
    for (int i = 0; i < plan->params; i++) c->param[i] = param_of(plan, i, call->args);
}

void trine_choice_text(const trine_plan *plan, const trine_choice *c, char *out, size_t size) {
    text t = text_begin(out, size);
    for (int i = 0; i < plan->types; i++)
        text_add(&t, "%s%s=%s", text_gap(&t, " "), plan->type_name[i], trine_dtype_name(c->type[i]));
    for (int i = 0; i < plan->symbols; i++)
        text_add(&t, "%s%s=%lld", text_gap(&t, " "), plan->symbol_name[i], least_of(bucket_of(c->dim[i])));
    for (int i = 0; i < plan->tensors; i++)
        if (c->present >> i & 1) text_add(&t, "%s+%s", text_gap(&t, " "), plan->tensor[i].spec->name);
    for (int i = 0; i < plan->tensors; i++)
        if (c->transposed >> i & 1) text_add(&t, "%s%s=transposed", text_gap(&t, " "), plan->tensor[i].spec->name);
    for (int i = 0; i < plan->params; i++)
        if (c->param[i])
            text_add(&t, "%s%s=%lld", text_gap(&t, " "), plan->spec->params[i].name, (long long)c->param[i]);
    if (c->flags) text_add(&t, "%sflags=%" PRIu32, text_gap(&t, " "), c->flags);
}

bool trine_choice_parse(const trine_plan *plan, char *word, trine_choice *c) {
    if (word[0] == '+') {
        const int tensor = trine_plan_find_tensor(plan, word + 1);
        if (tensor >= 0) c->present |= 1u << tensor;
        return tensor >= 0;
    }
    char *value = strchr(word, '=');
    if (value == NULL || value[1] == 0) return false;
    *value++ = 0;
    const int type = trine_plan_find_type(plan, word);
    const int tensor = trine_plan_find_tensor(plan, word);
    if (tensor >= 0 && strcmp(value, "transposed") == 0) {
        c->transposed |= 1u << tensor;
        return true;
    }
    if (type >= 0) return (c->type[type] = trine_dtype_parse(value)) != TRINE_NONE;
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (errno != 0 || *end != 0 || number < 0) return false;
    const int symbol = trine_plan_find_symbol(plan, word), param = trine_plan_find_param(plan, word);
    if (symbol >= 0)
        c->dim[symbol] = number;
    else if (param >= 0)
        c->param[param] = (uint64_t)number;
    else if (strcmp(word, "flags") == 0)
        c->flags = (uint32_t)number;
    else
        return false;
    return true;
}
