/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of lists of parameters whose optimizer steps are one launch. */
#ifndef TRINE_SIMT_OPTIMIZER_HOST_H
#define TRINE_SIMT_OPTIMIZER_HOST_H

#include <string.h>

#include "optimizer.h"
#include "backends/simt/core/host.h"

static inline const void *optimizer_data(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

static inline by_chance by_chance_of(const trine_call *call, int param, int philox, bool stochastic, uint64_t seed,
                                     uint64_t stream) {
    return (by_chance){ .words = simt_dropout_of(0, seed, stream),
                        .philox = optimizer_data(call, philox),
                        .on = stochastic && simt_present(call, param) && call->tensor[param].dtype == TRINE_BF16 };
}

/* Places of an op's tensors, -1: it has none; and where its arguments have the stream of chance. */
typedef struct optimizer_places {
    int param, grad, m, v, copy;
    size_t stream;
} optimizer_places;

typedef bool optimizer_same(const trine_call *a, const trine_call *b); /* have all their elements the same step? */

static inline optimizer_item optimizer_item_of(const trine_call *call, const optimizer_places *at, int64_t first) {
    const trine_tensor *tensor = call->tensor;
    const bool copies = simt_present(call, at->copy);
    uint64_t stream;
    memcpy(&stream, (const char *)call->args + at->stream, sizeof stream);
    return (optimizer_item){
        .param = tensor[at->param].data,
        .m = tensor[at->m].data,
        .v = at->v < 0 ? NULL : tensor[at->v].data,
        .copy = copies ? tensor[at->copy].data : NULL,
        .grad = tensor[at->grad].data,
        .n = tensor[at->param].shape[0],
        .stream = stream,
        .first = (uint32_t)first,
        .param_type = simt_list_type_of(tensor[at->param].dtype),
        .grad_type = simt_list_type_of(tensor[at->grad].dtype),
        .state_type = simt_list_type_of(tensor[at->m].dtype),
        .copy_type = copies ? simt_list_type_of(tensor[at->copy].dtype) : 0,
    };
}

/* The calls that have the step of calls[0], as many at a time as `list` has room for, which is part of the
 * parameters. */
static inline trine_status optimizer_launch_alike(trine_call *const *calls, int64_t count, const optimizer_places *at,
                                                  optimizer_same *same, optimizer_list *list, const void *params,
                                                  size_t size) {
    const simt_function function = { .step = "list" };
    int64_t blocks = 0;
    trine_status status = TRINE_OK;
    for (int64_t i = 0; i < count && status == TRINE_OK; i++) {
        if (!same(calls[i], calls[0])) continue;
        const int64_t own = simt_blocks(calls[i]->tensor[at->param].shape[0], OPTIMIZER_LIST_BLOCK);
        if (list->count == OPTIMIZER_LIST || (list->count > 0 && blocks + own > INT32_MAX)) {
            status = simt_launch(calls[0], &function, blocks, SIMT_THREADS, params, size);
            list->count = 0;
            blocks = 0;
        }
        list->item[list->count++] = optimizer_item_of(calls[i], at, blocks);
        blocks += own;
    }
    return status == TRINE_OK ? simt_launch(calls[0], &function, blocks, SIMT_THREADS, params, size) : status;
}

/* `alike` on the first call of each step and those behind it. */
static inline trine_status optimizer_launch_list(trine_call *const *calls, int64_t count, optimizer_same *same,
                                                 trine_status (*alike)(trine_call *const *calls, int64_t count)) {
    trine_status status = TRINE_OK;
    for (int64_t first = 0; first < count && status == TRINE_OK; first++) {
        int64_t before = 0;
        while (before < first && !same(calls[before], calls[first])) before++;
        if (before == first) status = alike(calls + first, count - first);
    }
    return status;
}

#endif
