/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions that take any op: check, select, reserve, launch. */
#include <string.h>

#include "comm.h"
#include "float_env.h"
#include "queue.h"
#include "select.h"

const char *trine_op_name(trine_op op) {
    return op > TRINE_OP_NONE && op < TRINE_OP_COUNT ? trine_specs[op]->name : NULL;
}

trine_op trine_op_find(const char *name) {
    for (int op = 1; name != NULL && op < TRINE_OP_COUNT; op++)
        if (strcmp(trine_specs[op]->name, name) == 0) return (trine_op)op;
    return TRINE_OP_NONE;
}

trine_status trine_prepare(trine_queue *queue, trine_op op, const void *args, bool need_data, trine_call *call) {
    const trine_status status = trine_check(op, args, need_data, call);
    if (status != TRINE_OK) return status;
    call->host = &queue->lib->host;
    call->backend = queue->backend;
    call->device = queue->device->state;
    call->queue = queue->state;
    call->flags = queue->flags;
    call->owner = queue;
    return call->plan->comm >= 0 ? trine_comm_check(queue, call) : TRINE_OK;
}

trine_status trine_queue_take_workspace(trine_queue *queue, const char *op, size_t bytes) {
    if (bytes <= queue->workspace_size) return TRINE_OK;
    if (queue->flags & TRINE_QUEUE_STRICT_WORKSPACE || queue->workspace_borrowed)
        return trine_fail(TRINE_ERR_WORKSPACE, "%s: needs %zu bytes of workspace, but %zu are reserved", op, bytes,
                          queue->workspace_size);
    bool recording;
    const trine_status status = trine_queue_recording(queue, &recording);
    if (status == TRINE_OK && recording)
        return trine_fail(TRINE_ERR_WORKSPACE,
                          "%s: needs %zu bytes of workspace, but %zu are reserved, and no more can be while the queue "
                          "is recorded",
                          op, bytes, queue->workspace_size);
    return status == TRINE_OK ? trine_queue_reserve(queue, bytes) : status;
}

static FLOAT_ENV_INSIDE trine_status run(trine_queue *queue, trine_op op, const void *args) {
    trine_call call;
    const trine_kernel *kernel;
    trine_status status =
        trine_queue_check(queue, op > TRINE_OP_NONE && op < TRINE_OP_COUNT ? trine_specs[op]->name : "trine_run");
    if (status != TRINE_OK) return status;
    if (op > TRINE_OP_NONE && op < TRINE_OP_COUNT && trine_plan_get(op)->comm >= 0)
        return trine_comm_run(queue, op, args);
    if ((status = trine_prepare(queue, op, args, true, &call)) != TRINE_OK) return status;
    if (call.empty) return TRINE_OK;
    if ((status = trine_select(queue, &call, &kernel)) != TRINE_OK) return status;
    status = trine_queue_take_workspace(queue, call.plan->spec->name, call.workspace_size);
    if (status != TRINE_OK) return status;
    call.workspace = call.workspace_size > 0 ? queue->workspace : NULL;
    if (!queue->lib->verbose) return kernel->launch(&call);
    const double start = trine_seconds();
    status = kernel->launch(&call);
    trine_trace(queue, &call, kernel, trine_seconds() - start);
    return status;
}

trine_status trine_run(trine_queue *queue, trine_op op, const void *args) {
    const float_env env = float_env_enter();
    const trine_status status = run(queue, op, args);
    float_env_leave(env);
    return status;
}

static FLOAT_ENV_INSIDE trine_status workspace(trine_queue *queue, trine_op op, const void *args, size_t *bytes_out) {
    trine_call call;
    const trine_kernel *kernel;
    trine_status status = trine_queue_check(queue, "trine_workspace");
    if (status != TRINE_OK) return status;
    if (bytes_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_workspace: bytes_out is NULL");
    if ((status = trine_prepare(queue, op, args, false, &call)) != TRINE_OK) return status;
    if (!call.empty && (status = trine_select(queue, &call, &kernel)) != TRINE_OK) return status;
    *bytes_out = call.workspace_size;
    return TRINE_OK;
}

trine_status trine_workspace(trine_queue *queue, trine_op op, const void *args, size_t *bytes_out) {
    const float_env env = float_env_enter();
    const trine_status status = workspace(queue, op, args, bytes_out);
    float_env_leave(env);
    return status;
}

static FLOAT_ENV_INSIDE trine_status error_bound(trine_queue *queue, trine_op op, const void *args, const char *output,
                                                 double *coefficient_out) {
    trine_call call;
    trine_status status = trine_queue_check(queue, "trine_error_bound");
    if (status != TRINE_OK) return status;
    if (output == NULL || coefficient_out == NULL)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_error_bound: %s is NULL", output ? "coefficient_out" : "output");
    if ((status = trine_prepare(queue, op, args, false, &call)) != TRINE_OK) return status;
    const int index = trine_plan_find_tensor(call.plan, output);
    if (index < 0 || !(call.plan->tensor[index].spec->flags & OUT))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_error_bound: %s has no output \"%s\"", call.plan->spec->name,
                          output);
    *coefficient_out = trine_plan_coefficient(call.plan, index, call.dim, call.type);
    return TRINE_OK;
}

trine_status trine_error_bound(trine_queue *queue, trine_op op, const void *args, const char *output,
                               double *coefficient_out) {
    const float_env env = float_env_enter();
    const trine_status status = error_bound(queue, op, args, output, coefficient_out);
    float_env_leave(env);
    return status;
}

static FLOAT_ENV_INSIDE trine_status explain(trine_queue *queue, trine_op op, const void *args,
                                             trine_explanation *explanation_out) {
    trine_call call;
    trine_status status = trine_queue_check(queue, "trine_explain");
    if (status != TRINE_OK) return status;
    if (explanation_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_explain: explanation_out is NULL");
    if ((status = trine_prepare(queue, op, args, false, &call)) != TRINE_OK) return status;
    trine_explain_call(queue, &call, explanation_out);
    return TRINE_OK;
}

trine_status trine_explain(trine_queue *queue, trine_op op, const void *args, trine_explanation *explanation_out) {
    const float_env env = float_env_enter();
    const trine_status status = explain(queue, op, args, explanation_out);
    float_env_leave(env);
    return status;
}

static FLOAT_ENV_INSIDE trine_status explain_edges(trine_queue *queue, trine_op op, const void *args,
                                                   const char *kernel, trine_edge *edges_out, int32_t *count_out) {
    trine_call call;
    trine_status status = trine_queue_check(queue, "trine_explain_edges");
    if (status != TRINE_OK) return status;
    if (kernel == NULL || edges_out == NULL || count_out == NULL)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_explain_edges: %s is NULL",
                          kernel == NULL      ? "kernel"
                          : edges_out == NULL ? "edges_out"
                                              : "count_out");
    status = trine_prepare(queue, op, args, false, &call);
    return status == TRINE_OK ? trine_edges_of(queue, &call, kernel, edges_out, count_out) : status;
}

trine_status trine_explain_edges(trine_queue *queue, trine_op op, const void *args, const char *kernel,
                                 trine_edge edges_out[TRINE_MAX_EDGES], int32_t *count_out) {
    const float_env env = float_env_enter();
    const trine_status status = explain_edges(queue, op, args, kernel, edges_out, count_out);
    float_env_leave(env);
    return status;
}

#define OP(name, NAME) \
    trine_status trine_##name(trine_queue *queue, const trine_##name##_args *args) { \
        return trine_run(queue, TRINE_OP_##NAME, args); \
    }
#include <trine/op_rows.h>
#undef OP
