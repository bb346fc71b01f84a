/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of products of groups of rows. */
#ifndef TRINE_SIMT_GROUPED_HOST_H
#define TRINE_SIMT_GROUPED_HOST_H

#include "grouped_matmul.h"
#include "backends/simt/core/host.h"
#include "spec/matmul/grouped_places.h"

static inline const char *grouped_refuse(const trine_call *call, const grouped_places *at, int64_t divide) {
    if (call->dim[at->p] > INT32_MAX - GROUPED_ROWS) return "more than 2^31 - 65 rows";
    if (call->dim[at->e] > INT32_MAX / 4) return "more than 2^29 - 1 groups";
    return simt_present(call, at->gather) && call->dim[at->r] > INT32_MAX / divide
               ? "more than 2^31 - 1 numbers to gather by"
               : NULL;
}

/* Of each group's rows, and of those it has beyond its count, and of what is before the first and behind the last, one
 * may be short. */
static inline int64_t grouped_tiles(const trine_call *call, const grouped_places *at, int rows) {
    const int64_t parts = simt_present(call, at->counts) ? 2 : 1;
    return call->dim[at->p] / rows + parts * call->dim[at->e] + 2;
}

static inline size_t grouped_workspace(const trine_call *call, const grouped_places *at, int rows) {
    return call->empty ? 0 : (size_t)grouped_tiles(call, at, rows) * sizeof(grouped_tile);
}

/* Are lines at multiples of `stride` and of `other` elements aligned to 16 bytes? */
static inline bool grouped_aligned(const trine_tensor *t, int64_t stride, int64_t other) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    return (int64_t)(uintptr_t)t->data % 16 == 0 && stride * size % 16 == 0 && other * size % 16 == 0;
}

/* All but the matrices. */
static inline grouped_params grouped_params_of(const trine_call *call, const grouped_places *at, int64_t divide,
                                               int32_t activation, int rows) {
    const trine_tensor *x = &call->tensor[at->x], *bias = &call->tensor[at->bias], *y = &call->tensor[at->y];
#define DATA(place) (simt_present(call, at->place) ? call->tensor[at->place].data : NULL)
    return (grouped_params){ .x = { .data = x->data, .row = x->stride[0] },
                             .y = { .data = y->data, .row = y->stride[0] },
                             .bias = DATA(bias),
                             .offsets = DATA(offsets),
                             .gather = DATA(gather),
                             .counts = DATA(counts),
                             .row_scale = DATA(row_scale),
                             .tile = call->workspace,
                             .bias_group = bias->stride[0],
                             .r = call->dim[at->r],
                             .n = call->dim[at->n],
                             .k = call->dim[at->k],
                             .divide = divide,
                             .right = simt_blocks(call->dim[at->n], GROUPED_COLUMNS),
                             .e = (int32_t)call->dim[at->e],
                             .p = (int32_t)call->dim[at->p],
                             .tiles = (int32_t)grouped_tiles(call, at, rows),
                             .rows = rows,
                             .activation = activation,
                             .x_aligned = grouped_aligned(x, x->stride[0], 0),
                             .y_aligned = grouped_aligned(y, y->stride[0], 0),
                             .wide_bias = bias->dtype == TRINE_F32 };
#undef DATA
}

/* The tiles. */
static inline trine_status grouped_plan(const trine_call *call, const grouped_params *p) {
    return simt_launch(call, &(simt_function){ .step = "plan" }, 1, SIMT_THREADS, p, sizeof *p);
}

/* The tiles, which need *p alone, and the products, to which `size` bytes of `params` are passed. */
static inline trine_status grouped_launch(const trine_call *call, const grouped_params *p, trine_dtype in,
                                          trine_dtype out, const void *params, size_t size) {
    const simt_function function = { .type = { in, out } };
    const trine_status status = grouped_plan(call, p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &function, p->tiles * p->right, SIMT_THREADS, params, size);
}

static inline void grouped_edges(trine_kernel_edges *edges, const grouped_places *at) {
    trine_kernel_edge(edges, at->p, GROUPED_ROWS);
    trine_kernel_edge(edges, at->n, GROUPED_COLUMNS);
    trine_kernel_edge(edges, at->k, GROUPED_DEPTH);
    trine_kernel_edge(edges, at->e, SIMT_THREADS);
}

#endif
