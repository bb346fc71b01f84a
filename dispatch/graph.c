/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: a queue's work recorded and launched again. */
#include <stdlib.h>

#include "queue.h"

struct trine_graph {
    const trine_backend *backend;
    const trine_device *device;
    void *state;   /* the backend's graph */
    uint64_t part; /* of the queue */
};

trine_status trine_queue_recording(trine_queue *queue, bool *recording_out) {
    *recording_out = queue->recording;
    return !queue->recording && queue->wrapped && queue->backend->capturing != NULL
               ? queue->backend->capturing(queue->device, queue->state, recording_out)
               : TRINE_OK;
}

trine_status trine_queue_immediate(trine_queue *queue, const char *function) {
    bool recording;
    const trine_status status = trine_queue_recording(queue, &recording);
    if (status != TRINE_OK || !recording) return status;
    return trine_fail(TRINE_ERR_UNSUPPORTED,
                      "%s: the queue's work is being recorded into a graph, where this cannot be", function);
}

/* An open queue whose device has graphs. */
static trine_status check(trine_queue *queue, const char *function) {
    const trine_status status = trine_queue_check(queue, function);
    if (status != TRINE_OK || queue->backend->graph_begin != NULL) return status;
    return trine_fail(TRINE_ERR_UNSUPPORTED, "%s: %s has no graphs", function, queue->device->info.name);
}

trine_status trine_graph_begin(trine_queue *queue) {
    bool recording;
    trine_status status = check(queue, "trine_graph_begin");
    if (status == TRINE_OK && queue->flags & TRINE_QUEUE_DEFAULT_STREAM)
        return trine_fail(TRINE_ERR_UNSUPPORTED,
                          "trine_graph_begin: the queue uses the default stream of %s, which cannot be recorded",
                          queue->device->info.name);
    if (status == TRINE_OK) status = trine_queue_recording(queue, &recording);
    if (status != TRINE_OK) return status;
    if (recording)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_graph_begin: the queue's work is being recorded already");
    status = queue->backend->graph_begin(queue->device, queue->state);
    queue->recording = status == TRINE_OK;
    return status;
}

trine_status trine_graph_end(trine_queue *queue, trine_graph **graph_out) {
    trine_status status = check(queue, "trine_graph_end");
    if (status != TRINE_OK) return status;
    if (graph_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_graph_end: graph_out is NULL");
    if (!queue->recording)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_graph_end: trine_graph_begin() has not been called");
    trine_graph *graph = malloc(sizeof *graph);
    void *state = NULL;
    status = queue->backend->graph_end(queue->device, queue->state, &state);
    if (status == TRINE_OK || queue->backend->capturing(queue->device, queue->state, &queue->recording) == TRINE_OK)
        queue->recording = queue->recording && status != TRINE_OK;
    if (status == TRINE_OK && graph == NULL) {
        queue->backend->graph_free(queue->device, state);
        return trine_fail(TRINE_ERR_MEMORY, "trine_graph_end: out of memory");
    }
    if (status != TRINE_OK) {
        free(graph);
        return status;
    }
    *graph = (trine_graph){ queue->backend, queue->device, state, queue->part };
    *graph_out = graph;
    return TRINE_OK;
}

trine_status trine_graph_launch(trine_queue *queue, const trine_graph *graph) {
    const trine_status status = trine_queue_check(queue, "trine_graph_launch");
    if (status != TRINE_OK) return status;
    if (graph == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_graph_launch: graph is NULL");
    if (graph->device != queue->device)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_graph_launch: the graph is of %s, but the queue of %s",
                          graph->device->info.name, queue->device->info.name);
    if (graph->part != 0 && graph->part != queue->part)
        return trine_fail(TRINE_ERR_ARGUMENT,
                          "trine_graph_launch: the graph was recorded on a part of %s, but not on this queue's",
                          queue->device->info.name);
    return queue->backend->graph_launch(queue->device, queue->state, graph->state);
}

void trine_graph_free(trine_graph *graph) {
    if (graph == NULL) return;
    graph->backend->graph_free(graph->device, graph->state);
    free(graph);
}
