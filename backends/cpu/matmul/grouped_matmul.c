/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on the CPU. */
#include "grouped_product.h"
#include "spec/places/grouped_matmul.h"

static const grouped_places places = GROUPED_PLACES(GROUPED_MATMUL);

static void pack_w(const task *t, int64_t part) {
    const grouped *a = t->a;
    const view *w = a->weights;
    const int64_t wide = tile_columns(a->kind), step = unit_depth(a->kind), units = units_of(a, part),
                  depth = depth_of(a, part), most = w->across ? AMX_STEP : units;
    const char *from = w->data + t->g * w->batch + t->column * w->lane + part * a->part * step * w->along;
    for (int64_t u = 0; u < units; u += most)
        for (int64_t j = 0; j < t->columns; j += wide)
            panel_pack(t->w + j / wide * panel_bytes(a->part, (int)wide, a->kind) + u * wide * unit_bytes(a->kind),
                       from + j * w->lane + u * step * w->along, w, a->n - t->column - j, depth - u * step,
                       units - u < most ? units - u : most, false);
}

/* What is to be packed: a matrix for each group. */
static view matrices(const trine_call *call) {
    const trine_tensor *w = &call->tensor[GROUPED_MATMUL_W];
    const int64_t size = (int64_t)trine_dtype_size(w->dtype);
    return (view){ .data = w->data,
                   .dtype = w->dtype,
                   .batch = w->stride[0] * size,
                   .lane = w->stride[1] * size,
                   .along = w->stride[2] * size,
                   .across = w->stride[2] != 1 && w->stride[1] == 1 };
}

static grouped product_of(const trine_call *call, const view *w) {
    const trine_grouped_matmul_args *args = call->args;
    grouped a = grouped_of(call, &places, args->divide, args->activation);
    a.pack_w = pack_w, a.weights = w;
    a.read = (double)a.e * (double)a.n * (double)a.k * (double)a.x.along;
    return a;
}

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_args *args = call->args;
    return grouped_refuse(call, &places, args->divide);
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const grouped a = product_of(call, NULL);
    return grouped_workspace(&a);
}

static trine_status launch(const trine_call *call) {
    const view w = matrices(call);
    const grouped a = product_of(call, &w);
    return grouped_launch(&a, "grouped_matmul");
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const grouped a = product_of(call, NULL);
    grouped_edges(&a, &places, edges);
}

CPU_KERNELS(grouped_matmul) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
