/* SPDX-License-Identifier: Apache-2.0 */
/* A call as one line of text. */
#include <stdarg.h>
#include <stdio.h>

#include "dispatch.h"

/* Text that grows as far as its storage reaches. */
typedef struct line {
    char *text;
    size_t size, used;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *out, const char *format, ...) {
    if (out->used >= out->size) return;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(out->text + out->used, out->size - out->used, format, arguments);
    va_end(arguments);
    out->used = length < 0 ? out->size : out->used + (size_t)length;
}

void trine_call_text(const trine_call *call, char *text_out, size_t size) {
    const trine_plan *plan = call->plan;
    line out = { text_out, size, 0 };
    if (size > 0) text_out[0] = 0;
    for (int i = 0; i < plan->types; i++) add(&out, "%s%s=%s", out.used ? " " : "", plan->type_name[i], trine_dtype_name(call->type[i]));
    for (int i = 0; i < plan->symbols; i++) add(&out, "%s%s=%lld", out.used ? " " : "", plan->symbol_name[i], (long long)call->dim[i]);
    for (int i = 0; i < plan->tensors; i++)
        if ((plan->tensor[i].spec->flags & OPTIONAL) && (call->present >> i & 1)) add(&out, " +%s", plan->tensor[i].spec->name);
    for (int i = 0; i < plan->params; i++) {
        const trine_spec_param *param = &plan->spec->params[i];
        const double value = trine_param_get(plan, i, call->args);
        if (value == param->fallback) continue;
        if (param->kind == U64)
            add(&out, " %s=%llu", param->name, (unsigned long long)*(const uint64_t *)((const char *)call->args + param->offset));
        else
            add(&out, " %s=%.9g", param->name, value);
    }
}

void trine_trace(const trine_queue *queue, const trine_call *call, const trine_kernel *kernel, double seconds) {
    if (queue->lib->verbose == 0) return;
    char text[512];
    trine_call_text(call, text, sizeof text);
    fprintf(stderr, "trine: %s %s %s %s %.3f us\n", queue->device->info.name, call->plan->spec->name, kernel->name, text, seconds * 1e6);
}
