/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that mlp_fused and its gradient share. */
#ifndef TRINE_SIMT_FIELD_MLP_HOST_H
#define TRINE_SIMT_FIELD_MLP_HOST_H

#include "backends/simt/core/host.h"
#include "mlp.h"

/* Of rows; of layers of rows, or of biases. */
static inline mlp_tensor mlp_rows_of(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? (mlp_tensor){ t->data, 0, t->stride[0] } : (mlp_tensor){ 0 };
}
static inline mlp_tensor mlp_stack_of(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? (mlp_tensor){ t->data, t->stride[0], t->rank > 2 ? t->stride[1] : 0 } : (mlp_tensor){ 0 };
}

/* The width that a kernel is compiled for. */
static inline int mlp_width(int64_t k, int64_t h, int64_t o) {
    const int64_t most = k > h ? (k > o ? k : o) : h > o ? h : o;
    int width = 16;
    while (width < most) width *= 2;
    return width;
}
/* Floats of the copies. */
static inline int64_t mlp_copies(int64_t m, int64_t width) { return (m + 2) * (width * width + width); }

static inline trine_status mlp_launch_copy(const trine_call *call, const mlp_params *p, trine_dtype type) {
    const simt_function copy = { .step = "copy", .type = { type } };
    return simt_launch(call, &copy, simt_blocks(mlp_copies(p->m, p->width), SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
}

static inline void mlp_edges(trine_kernel_edges *edges, int r, int h) {
    for (int width = 16; width <= 128; width *= 2) {
        trine_kernel_edge(edges, h, width);
        trine_kernel_edge(edges, r, MLP_HELD / width);
    }
}

#endif
