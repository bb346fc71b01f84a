/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_scaled on devices: the host side. */
#include "grouped_matmul_scaled.h"
#include "sides_host.h"
#include "backends/simt/matmul/grouped_host.h"
#include "spec/places/grouped_matmul_scaled.h"

static const grouped_places places = GROUPED_PLACES(GROUPED_MATMUL_SCALED);

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_scaled_args *args = call->args;
    const trine_dtype w = call->type[GROUPED_MATMUL_SCALED_TYPE_B];
    const int64_t k = call->dim[GROUPED_MATMUL_SCALED_DIM_K];
    if ((w == TRINE_E4M3 || w == TRINE_E5M2) && k != call->dim[GROUPED_MATMUL_SCALED_DIM_Q])
        return "w of two elements in a byte that take 8 bits";
    return k > INT32_MAX / 4 ? "rows of more than 2^29 bytes" : grouped_refuse(call, &places, args->divide);
}

static size_t workspace(const trine_call *call) { return grouped_workspace(call, &places, GROUPED_ROWS); }

static trine_status launch(const trine_call *call) {
    const trine_grouped_matmul_scaled_args *args = call->args;
    const trine_tensor *x = &call->tensor[GROUPED_MATMUL_SCALED_X], *w = &call->tensor[GROUPED_MATMUL_SCALED_W],
                       *w_scale = trine_call_given(call, GROUPED_MATMUL_SCALED_W_SCALE),
                       *group_scale = trine_call_given(call, GROUPED_MATMUL_SCALED_GROUP_SCALE);
    const bool both = args->format == TRINE_SCALED_E2M1_BOTH, e2m1 = args->format >= TRINE_SCALED_E2M1;
    const int64_t k = call->dim[GROUPED_MATMUL_SCALED_DIM_K] * (both ? 2 : 1);
    const bool packed = call->dim[GROUPED_MATMUL_SCALED_DIM_Q] < k;
    const grouped_scaled_params p = {
        .rows = grouped_params_of(call, &places, args->divide, args->activation, GROUPED_ROWS),
        .of = { .a = scaled_side_of(x, trine_call_given(call, GROUPED_MATMUL_SCALED_X_SCALE), 2, k,
                                    scaled_kind_of(x->dtype, both, true), 0),
                .b = scaled_side_of(w, w_scale, 3, k, scaled_kind_of(w->dtype, packed, e2m1), args->code_offset),
                .k = (int32_t)k,
                .out_type = scaled_type_of(call->type[GROUPED_MATMUL_SCALED_TYPE_O]),
                .bias_type = scaled_type_of(call->type[GROUPED_MATMUL_SCALED_TYPE_V]) },
        .group_scale = group_scale ? group_scale->data : NULL,
        .w_group = w->stride[0],
        .scale_group = w_scale ? w_scale->stride[0] * (int64_t)trine_dtype_size(w_scale->dtype) : 0
    };
    const trine_status status = grouped_plan(call, &p.rows);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &(simt_function){ 0 }, p.rows.tiles * p.rows.right, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    grouped_edges(edges, &places);
}

SIMT_KERNELS(grouped_matmul_scaled) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
