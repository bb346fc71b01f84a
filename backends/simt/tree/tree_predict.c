/* SPDX-License-Identifier: Apache-2.0 */
/* tree_predict on devices: the host side. */
#include "tree_predict.h"
#include "backends/simt/core/host.h"
#include "spec/places/tree_predict.h"

enum { MANY_ROWS = 4096 /* make blocks enough of several rows */ };

static const void *data_of(const trine_call *call, int tensor) {
    const trine_tensor *given = trine_call_given(call, tensor);
    return given ? given->data : NULL;
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[TREE_PREDICT_DIM_R], n = call->dim[TREE_PREDICT_DIM_N],
                  t = call->dim[TREE_PREDICT_DIM_T];
    const tree_params p = { .x = simt_rows_of(call, TREE_PREDICT_X),
                            .children = simt_rows_of(call, TREE_PREDICT_CHILDREN),
                            .leaves = simt_rows_of(call, TREE_PREDICT_LEAVES),
                            .y = simt_rows_of(call, TREE_PREDICT_Y),
                            .indices = simt_rows_of(call, TREE_PREDICT_INDICES),
                            .features = data_of(call, TREE_PREDICT_FEATURES),
                            .roots = data_of(call, TREE_PREDICT_ROOTS),
                            .targets = data_of(call, TREE_PREDICT_TARGETS),
                            .thresholds = data_of(call, TREE_PREDICT_THRESHOLDS),
                            .base = data_of(call, TREE_PREDICT_BASE),
                            .rules = data_of(call, TREE_PREDICT_RULES),
                            .r = r,
                            .f = call->dim[TREE_PREDICT_DIM_F],
                            .n = n,
                            .t = t,
                            .l = call->dim[TREE_PREDICT_DIM_L],
                            .v = call->dim[TREE_PREDICT_DIM_V],
                            .o = call->dim[TREE_PREDICT_DIM_O],
                            .levels = t > 0 ? n / t : 0,
                            .rows = r < MANY_ROWS ? 1 : TREE_ROWS };
    const simt_function function = { .step = p.rows == TREE_ROWS && p.f <= TREE_FEATURES ? "held" : NULL };
    return simt_launch(call, &function, simt_blocks(r, p.rows), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, TREE_PREDICT_DIM_T, SIMT_THREADS);
    trine_kernel_edge(edges, TREE_PREDICT_DIM_R, MANY_ROWS);
    trine_kernel_edge(edges, TREE_PREDICT_DIM_F, TREE_FEATURES);
}

SIMT_KERNELS(tree_predict) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
