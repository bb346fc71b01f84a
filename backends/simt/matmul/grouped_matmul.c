/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on devices: the host side. */
#include "grouped_matmul.h"
#include "backends/simt/core/host.h"
#include "spec/places/grouped_matmul.h"

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_args *args = call->args;
    const int64_t *dim = call->dim;
    if (dim[GROUPED_MATMUL_DIM_P] > INT32_MAX - GROUPED_ROWS) return "more than 2^31 - 65 rows";
    if (dim[GROUPED_MATMUL_DIM_E] > INT32_MAX / 4) return "more than 2^29 - 1 groups";
    return simt_present(call, GROUPED_MATMUL_GATHER) && dim[GROUPED_MATMUL_DIM_R] > INT32_MAX / args->divide
               ? "more than 2^31 - 1 numbers to gather by"
               : NULL;
}

/* Of each group's rows, and of those it has beyond its count, and of what is before the first and behind the last, one
 * may be short. */
static int64_t tiles_of(const trine_call *call) {
    const int64_t parts = simt_present(call, GROUPED_MATMUL_COUNTS) ? 2 : 1;
    return call->dim[GROUPED_MATMUL_DIM_P] / GROUPED_ROWS + parts * call->dim[GROUPED_MATMUL_DIM_E] + 2;
}

static size_t workspace(const trine_call *call) {
    return call->empty ? 0 : (size_t)tiles_of(call) * sizeof(grouped_tile);
}

static const void *data_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

static bool vectors(const trine_tensor *t, int64_t stride, int64_t other) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    return (int64_t)(uintptr_t)t->data % 16 == 0 && stride * size % 16 == 0 && other * size % 16 == 0;
}

static trine_status launch(const trine_call *call) {
    const trine_grouped_matmul_args *args = call->args;
    const trine_tensor *x = &call->tensor[GROUPED_MATMUL_X], *w = &call->tensor[GROUPED_MATMUL_W],
                       *bias = &call->tensor[GROUPED_MATMUL_BIAS], *y = &call->tensor[GROUPED_MATMUL_Y];
    const bool across = w->stride[2] != 1 && w->stride[1] == 1;
    const grouped_params p = { .x = { .data = x->data, .row = x->stride[0] },
                               .y = { .data = y->data, .row = y->stride[0] },
                               .w = w->data,
                               .bias = data_of(call, GROUPED_MATMUL_BIAS),
                               .offsets = data_of(call, GROUPED_MATMUL_OFFSETS),
                               .gather = data_of(call, GROUPED_MATMUL_GATHER),
                               .counts = data_of(call, GROUPED_MATMUL_COUNTS),
                               .row_scale = data_of(call, GROUPED_MATMUL_ROW_SCALE),
                               .tile = call->workspace,
                               .w_group = w->stride[0],
                               .w_lane = w->stride[1],
                               .w_along = w->stride[2],
                               .bias_group = bias->stride[0],
                               .r = call->dim[GROUPED_MATMUL_DIM_R],
                               .n = call->dim[GROUPED_MATMUL_DIM_N],
                               .k = call->dim[GROUPED_MATMUL_DIM_K],
                               .divide = args->divide,
                               .right = simt_blocks(call->dim[GROUPED_MATMUL_DIM_N], GROUPED_COLUMNS),
                               .e = (int32_t)call->dim[GROUPED_MATMUL_DIM_E],
                               .p = (int32_t)call->dim[GROUPED_MATMUL_DIM_P],
                               .tiles = (int32_t)tiles_of(call),
                               .activation = args->activation,
                               .across = across,
                               .x_aligned = vectors(x, x->stride[0], 0),
                               .y_aligned = vectors(y, y->stride[0], 0),
                               .w_aligned = vectors(w, w->stride[0], w->stride[across ? 2 : 1]),
                               .wide_bias = bias->dtype == TRINE_F32 };
    const simt_function function = { .type = { call->type[GROUPED_MATMUL_TYPE_T], call->type[GROUPED_MATMUL_TYPE_O] } };
    const trine_status status = simt_launch(call, &(simt_function){ .step = "plan" }, 1, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &function, p.tiles * p.right, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_P, GROUPED_ROWS);
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_N, GROUPED_COLUMNS);
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_K, GROUPED_DEPTH);
    trine_kernel_edge(edges, GROUPED_MATMUL_DIM_E, SIMT_THREADS);
}

SIMT_KERNELS(grouped_matmul) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
