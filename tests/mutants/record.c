/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the module of mutants: launches that are kept instead of run. */
#include "record.h"

#include <stdlib.h>

enum { MOST_LAUNCHES = 8 };

typedef struct graph {
    int count;
    struct {
        trine_status (*launch)(const trine_call *call);
        trine_call call;
    } kept[MOST_LAUNCHES];
} graph;

static graph *recorded; /* NULL: work is done at once */

/* A copy whose arguments are its own. */
static void copy_call(trine_call *copy, const trine_call *call) {
    *copy = *call;
    copy->args = copy->storage;
    for (int i = 0; i < call->plan->tensors; i++)
        if (call->present >> i & 1)
            *(const trine_tensor **)(void *)(copy->storage + call->plan->tensor[i].spec->offset) = &copy->tensor[i];
}

trine_status record_submit(const trine_call *call, trine_status (*launch)(const trine_call *call)) {
    if (recorded == NULL) return launch(call);
    if (recorded->count == MOST_LAUNCHES) return TRINE_ERR_MEMORY;
    recorded->kept[recorded->count].launch = launch;
    copy_call(&recorded->kept[recorded->count++].call, call);
    return TRINE_OK;
}

static trine_status capturing(const trine_device *device, void *queue, bool *capturing_out) {
    (void)device, (void)queue;
    *capturing_out = recorded != NULL;
    return TRINE_OK;
}

static trine_status graph_begin(const trine_device *device, void *queue) {
    (void)device, (void)queue;
    recorded = calloc(1, sizeof *recorded);
    return recorded != NULL ? TRINE_OK : TRINE_ERR_MEMORY;
}

static trine_status graph_end(const trine_device *device, void *queue, void **graph_out) {
    (void)device, (void)queue;
    *graph_out = recorded;
    recorded = NULL;
    return TRINE_OK;
}

static trine_status graph_launch(const trine_device *device, void *queue, void *state) {
    const graph *g = state;
    (void)device, (void)queue;
    trine_status status = TRINE_OK;
    for (int i = 0; i < g->count && status == TRINE_OK; i++) status = g->kept[i].launch(&g->kept[i].call);
    return status;
}

static void graph_free(const trine_device *device, void *state) {
    (void)device;
    free(state);
}

void record_fill_backend(trine_backend *backend_out) {
    backend_out->capturing = capturing;
    backend_out->graph_begin = graph_begin;
    backend_out->graph_end = graph_end;
    backend_out->graph_launch = graph_launch;
    backend_out->graph_free = graph_free;
}
