/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel runs a call, and why. */
#include <stdio.h>
#include <string.h>

#include "comm.h"
#include "select.h"
#include "text.h"

/* Why `kernel` cannot run the call; NULL if it can, and the call then has the size of its workspace. */
static const char *refusal(const trine_queue *queue, const trine_kernel *kernel, trine_call *call) {
    if (queue->kernel[0] && strcmp(queue->kernel, kernel->name) != 0) return "another kernel is forced";
    if (queue->flags & TRINE_QUEUE_REPRODUCIBLE && !kernel->same && !call->plan->spec->exact)
        return "its bits are not those of other devices";
    call->self = kernel->self;
    const char *const reason = kernel->refuse != NULL ? kernel->refuse(call) : NULL;
    if (reason != NULL) return reason;
    const int64_t memory = queue->device->info.memory;
    const bool launched = !call->empty || call->comm != NULL;
    call->workspace_size = kernel->workspace != NULL && launched ? kernel->workspace(call) : 0;
    if (trine_whole_is(call)) call->workspace_size = trine_whole_workspace(call, call->workspace_size);
    return memory > 0 && call->workspace_size > (size_t)memory
               ? "its workspace would be larger than the device's memory"
               : NULL;
}

double trine_predict(const trine_queue *queue, const trine_kernel *kernel, const trine_call *call) {
    if (kernel->seconds != NULL) return kernel->seconds(call);
    const double moving =
        trine_plan_bytes(call->plan, call->dim, call->type, call->present) / queue->device->bytes_per_second;
    const double computing = trine_plan_flops(call->plan, call->dim) / queue->device->flops_per_second;
    return moving > computing ? moving : computing;
}

/* No kernel: says why, kernel by kernel. */
static trine_status unsupported(const trine_queue *queue, trine_call *call, const trine_kernel *kernel) {
    char reasons[768], types[256];
    text all = text_begin(reasons, sizeof reasons);
    trine_call_text(call, types, sizeof types);
    for (; kernel != NULL && kernel->name != NULL; kernel++)
        text_add(&all, "; %s: %s", kernel->name, refusal(queue, kernel, call));
    return trine_fail(TRINE_ERR_UNSUPPORTED, "%s: %s has no kernel for %s%s%s%s%s", call->plan->spec->name,
                      queue->device->info.name, types, queue->kernel[0] ? " (forced by " : "",
                      queue->kernel[0] ? queue->kernel_source : "", queue->kernel[0] ? ")" : "", reasons);
}

/* The kernel that was tuned, if there is one of this name and it takes the call. */
static const trine_kernel *named(const trine_queue *queue, trine_call *call, const trine_kernel *list,
                                 const char *name) {
    for (const trine_kernel *kernel = list; name != NULL && kernel->name != NULL; kernel++)
        if (strcmp(kernel->name, name) == 0 && refusal(queue, kernel, call) == NULL) return kernel;
    return NULL;
}

/* What was measured for the device where it was made, unless a kernel from elsewhere, which was not there, takes the
 * call: who installs one wants it used. */
static const trine_kernel *shipped_choice(const trine_queue *queue, trine_call *call, const trine_kernel *list) {
    const char *name = trine_tune_find(queue->lib->shipped, queue, call);
    const int added = name != NULL ? queue->lib->device[queue->device_index].added[call->plan->op] : 0;
    for (int i = 0; i < added; i++)
        if (refusal(queue, &list[i], call) == NULL) return NULL;
    return named(queue, call, list, name);
}

trine_status trine_select_why(const trine_queue *queue, trine_call *call, const trine_kernel **kernel_out,
                              const char **why_out) {
    const trine_kernel *list = trine_kernels(queue->lib, queue->device_index, call->plan->op);
    *why_out = queue->kernel[0] ? queue->kernel_source : "first that accepts";
    /* Ranks of a group must choose alike: by what they share. */
    if (list != NULL && queue->kernel[0] == 0 && call->plan->comm < 0) {
        const trine_kernel *tuned = named(queue, call, list, trine_tune_find(queue->lib->tune, queue, call));
        const trine_kernel *shipped = tuned == NULL ? shipped_choice(queue, call, list) : NULL;
        if (tuned != NULL || shipped != NULL) {
            *why_out = tuned != NULL ? "tuning cache" : "tuned for this device";
            *kernel_out = tuned != NULL ? tuned : shipped;
            return TRINE_OK;
        }
    }
    for (const trine_kernel *kernel = list; kernel != NULL && kernel->name != NULL; kernel++) {
        if (refusal(queue, kernel, call) != NULL) continue;
        *kernel_out = kernel;
        return TRINE_OK;
    }
    return unsupported(queue, call, list);
}

trine_status trine_select(const trine_queue *queue, trine_call *call, const trine_kernel **kernel_out) {
    const char *why;
    return trine_select_why(queue, call, kernel_out, &why);
}

void trine_explain_call(const trine_queue *queue, trine_call *call, trine_explanation *out) {
    const trine_kernel *chosen = NULL, *kernel = trine_kernels(queue->lib, queue->device_index, call->plan->op);
    size_t used = 0;
    out->chosen = -1;
    out->count = 0;
    if (trine_select_why(queue, call, &chosen, &out->why) != TRINE_OK) out->why = "no kernel accepts";
    for (; kernel != NULL && kernel->name != NULL && out->count < TRINE_MAX_CANDIDATES; kernel++) {
        trine_candidate *candidate = &out->candidate[out->count];
        const char *reason = refusal(queue, kernel, call);
        *candidate = (trine_candidate){ .kernel = kernel->name };
        if (reason != NULL && used < sizeof out->text) {
            candidate->refused = out->text + used;
            used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s", reason) + 1;
        } else if (reason != NULL) {
            candidate->refused = "refused";
        } else if (!call->empty) { /* an empty call runs no kernel, and kernels need not understand one */
            candidate->seconds = trine_predict(queue, kernel, call);
            candidate->workspace = call->workspace_size;
        }
        if (kernel == chosen) out->chosen = out->count;
        out->count++;
    }
}

trine_status trine_edges_of(const trine_queue *queue, trine_call *call, const char *name, trine_edge *edges_out,
                            int32_t *count_out) {
    const trine_plan *plan = call->plan;
    const trine_kernel *kernel = trine_kernels(queue->lib, queue->device_index, plan->op);
    trine_kernel_edges edges = { 0 };
    while (kernel != NULL && kernel->name != NULL && strcmp(kernel->name, name) != 0) kernel++;
    if (kernel == NULL || kernel->name == NULL)
        return trine_fail(TRINE_ERR_NOT_FOUND, "%s: %s has no kernel \"%.60s\"", plan->spec->name,
                          queue->device->info.name, name);
    call->self = kernel->self;
    if (kernel->edges != NULL && !call->empty) kernel->edges(call, &edges);
    if (edges.count > TRINE_MAX_EDGES)
        return trine_fail(TRINE_ERR_INTERNAL, "%s: kernel \"%s\" has %d edges, more than %d", plan->spec->name, name,
                          edges.count, TRINE_MAX_EDGES);
    for (int i = 0; i < edges.count; i++)
        if (edges.edge[i].symbol < 0 || edges.edge[i].symbol >= plan->symbols)
            return trine_fail(TRINE_ERR_INTERNAL, "%s: kernel \"%s\" has an edge of dimension %d, of %d",
                              plan->spec->name, name, edges.edge[i].symbol, plan->symbols);
    for (int i = 0; i < edges.count; i++)
        edges_out[i] = (trine_edge){ plan->symbol_name[edges.edge[i].symbol], edges.edge[i].size };
    *count_out = edges.count;
    return TRINE_OK;
}
