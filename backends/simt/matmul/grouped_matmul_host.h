/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of grouped_matmul on any device. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_HOST_H
#define TRINE_SIMT_GROUPED_MATMUL_HOST_H

#include "grouped_host.h"
#include "spec/places/grouped_matmul.h"

static const grouped_places grouped_matmul_places = GROUPED_PLACES(GROUPED_MATMUL);

static inline const char *grouped_matmul_refuse(const trine_call *call) {
    const trine_grouped_matmul_args *args = call->args;
    return grouped_refuse(call, &grouped_matmul_places, args->divide);
}

static inline size_t grouped_matmul_workspace(const trine_call *call) {
    return grouped_workspace(call, &grouped_matmul_places, GROUPED_ROWS);
}

static inline grouped_params grouped_matmul_params_of(const trine_call *call, int rows) {
    const trine_grouped_matmul_args *args = call->args;
    const trine_tensor *w = &call->tensor[GROUPED_MATMUL_W];
    grouped_params p = grouped_params_of(call, &grouped_matmul_places, args->divide, args->activation, rows);
    p.w = w->data, p.w_group = w->stride[0], p.w_lane = w->stride[1], p.w_along = w->stride[2];
    p.across = w->stride[2] != 1 && w->stride[1] == 1;
    p.w_aligned = grouped_aligned(w, w->stride[0], w->stride[p.across ? 2 : 1]);
    return p;
}

static inline trine_status grouped_matmul_launch(const trine_call *call) {
    const grouped_params p = grouped_matmul_params_of(call, GROUPED_ROWS);
    return grouped_launch(call, &p, call->type[GROUPED_MATMUL_TYPE_T], call->type[GROUPED_MATMUL_TYPE_O], &p, sizeof p);
}

static inline void grouped_matmul_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    grouped_edges(edges, &grouped_matmul_places);
}

#endif
