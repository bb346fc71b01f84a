/* SPDX-License-Identifier: Apache-2.0 */
/* A call as one line of text, and the time it took. */
#include <stdio.h>
#include <time.h>

#include "dispatch.h"
#include "text.h"

double trine_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* As a case has it. */
static void add_text(text *out, const char *name, const char *value) {
    char plain[1024];
    size_t length = 0;
    for (; *value && length + 1 < sizeof plain; value++)
        if (*value > ' ') plain[length++] = *value;
    plain[length] = 0;
    text_add(out, " %s=%s", name, plain);
}

void trine_call_text(const trine_call *call, char *text_out, size_t size) {
    const trine_plan *plan = call->plan;
    text out = text_begin(text_out, size);
    for (int i = 0; i < plan->types; i++)
        text_add(&out, "%s%s=%s", text_gap(&out, " "), plan->type_name[i], trine_dtype_name(call->type[i]));
    for (int i = 0; i < plan->symbols; i++)
        text_add(&out, "%s%s=%lld", text_gap(&out, " "), plan->symbol_name[i], (long long)call->dim[i]);
    for (int i = 0; i < plan->tensors; i++)
        if ((plan->tensor[i].spec->flags & OPTIONAL) && (call->present >> i & 1))
            text_add(&out, " +%s", plan->tensor[i].spec->name);
    for (int i = 0; i < plan->params; i++) {
        const trine_spec_param *param = &plan->spec->params[i];
        const double value = trine_param_get(plan, i, call->args);
        if (value == param->fallback || param->kind == COMM) continue;
        if (param->kind == U64)
            text_add(&out, " %s=%llu", param->name,
                     (unsigned long long)*(const uint64_t *)((const char *)call->args + param->offset));
        else if (param->kind == TEXT)
            add_text(&out, param->name, trine_param_text(param, call->args));
        else
            text_add(&out, " %s=%.9g", param->name, value);
    }
}

void trine_trace_list(const trine_queue *queue, const trine_call *call, const trine_kernel *kernel, int64_t count,
                      double seconds) {
    if (queue->lib->verbose == 0) return;
    char text[512], more[64] = "";
    trine_call_text(call, text, sizeof text);
    if (count > 1) snprintf(more, sizeof more, " and %lld more of a list", (long long)count - 1);
    trine_fprintf(stderr, "trine: %s %s %s %s%s %.3f us\n", queue->device->info.name, call->plan->spec->name,
                  kernel->name, text, more, seconds * 1e6);
}

void trine_trace(const trine_queue *queue, const trine_call *call, const trine_kernel *kernel, double seconds) {
    trine_trace_list(queue, call, kernel, 1, seconds);
}
