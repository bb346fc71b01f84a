/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that add kernels to another backend: a good one, and ones that are refused, one for each -DNAME=...
 * with what is wrong. */
#include <stdio.h>

#include <trine/ops.h>

#include "backends/backend.h"
#include "spec/places/scale.h"
#include "spec/spec_hash.h"

#ifndef EXTENDS
#define EXTENDS "cpu"
#endif
#ifndef OP
#define OP TRINE_OP_SCALE
#endif
#ifndef HASH
#define HASH TRINE_OP_HASH_SCALE
#endif
#ifndef KERNELS
#define KERNELS { .name = NAME, .refuse = refuse, .launch = launch, .self = &factor }
#endif
#ifndef TAKES
#define TAKES NULL
#endif
#ifndef EXTEND
#define EXTEND extend
#endif
#ifndef ROWS
#define ROWS 1
#endif

/* What this kernel multiplies besides: the answer says who gave it. */
__attribute__((unused)) static const float factor = 10;

__attribute__((unused)) static const char *refuse(const trine_call *call) {
    if (call->tensor[SCALE_X].dtype != TRINE_F32 || call->tensor[SCALE_Y].dtype != TRINE_F32) return "only f32";
    return call->dim[SCALE_DIM_P] * call->dim[SCALE_DIM_Q] * call->dim[SCALE_DIM_R] > 1 ? "only one row" : NULL;
}

__attribute__((unused)) static trine_status launch(const trine_call *call) {
    const trine_scale_args *args = call->args;
    const trine_tensor *x = &call->tensor[SCALE_X], *y = &call->tensor[SCALE_Y];
    for (int64_t i = 0; i < call->dim[SCALE_DIM_N]; i++)
        ((float *)y->data)[i * y->stride[3]] =
            *(const float *)call->self * args->alpha * ((const float *)x->data)[i * x->stride[3]];
    return TRINE_OK;
}

__attribute__((unused)) static trine_status launch_code(const trine_call *call) {
    return call->host->launch(call, &(trine_code){ "", "code" },
                              &(trine_launch){ .blocks = { 1, 1, 1 }, .threads = { 1, 1, 1 } });
}

/* More than there may be, or one of a dimension that there is not. */
__attribute__((unused)) static void many_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    for (int size = 1; size <= TRINE_MAX_EDGES + 1; size++) trine_kernel_edge(edges, SCALE_DIM_N, size);
}
__attribute__((unused)) static void strange_edge(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, call->plan->symbols, 8);
}
/* Twice the same, and one that is none. */
__attribute__((unused)) static void some_edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, SCALE_DIM_R, 3);
    trine_kernel_edge(edges, SCALE_DIM_N, call->type[SCALE_TYPE_T] == TRINE_F32 ? 16 : 32);
    trine_kernel_edge(edges, SCALE_DIM_R, 3);
    trine_kernel_edge(edges, SCALE_DIM_N, 0);
}

__attribute__((unused)) static bool never(const trine_device *device) {
    (void)device;
    return false;
}

static const trine_kernel kernels[66] = { KERNELS };

static const trine_extension_row rows[] = {
    { TRINE_OP_SCALE, TRINE_OP_HASH_SCALE,
      (const trine_kernel[]){ { .name = "before", .refuse = refuse, .launch = launch, .self = &factor }, { 0 } },
      NULL },
    { OP, HASH, kernels, TAKES },
};

__attribute__((unused)) static const trine_extension *extend(const trine_host *host, char *reason_out,
                                                             size_t reason_size) {
    (void)host, (void)reason_out, (void)reason_size;
    static const trine_extension extension = { .struct_size = sizeof extension, .rows = ROWS, .row = rows + 2 - ROWS };
    return &extension;
}

__attribute__((unused)) static const trine_extension *says_why(const trine_host *host, char *reason_out,
                                                               size_t reason_size) {
    snprintf(reason_out, reason_size, "made for another machine (%d cores)", host->cores > 0);
    return NULL;
}

TRINE_MODULE(.name = NAME, .version = "3.2.1", .extends = EXTENDS, .extend = EXTEND);
