/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm_quantize on devices: the sums of some rows at a time, so that the workspace stays small, of which
 * rms_norm_quantize makes codes: they are f32, and so is its weight. */
#include "all_reduce_rms_norm_quantize.h"

#include <trine/ops.h>

#include "backends/nested_step.h"
#include "exchanges.h"
#include "spec/places/all_reduce_rms_norm_quantize.h"

#define DIM(name) call->dim[ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_##name]
#define GIVEN(name) trine_call_given(call, ALL_REDUCE_RMS_NORM_QUANTIZE_##name)
enum { PANEL = 1 << 22, ALIGNMENT = 256 };

typedef struct job {
    const trine_call *call;
    const trine_all_reduce_rms_norm_quantize_args *args;
    int64_t r, k, groups, panel;         /* panel: rows at a time */
    float *h, *weight, *y;               /* y: NULL where the output is of f32, or there is none */
    const trine_tensor *weights, *y_out; /* NULL: not given */
    size_t bytes;                        /* of the workspace, before that of the ops within */
    int64_t row;                         /* of the panel at hand the first */
} job;

static float *place(job *b, int64_t count) {
    void *at = b->call->workspace ? (char *)b->call->workspace + b->bytes : NULL;
    b->bytes += (size_t)(simt_blocks(count * (int64_t)sizeof(float), ALIGNMENT) * ALIGNMENT);
    return at;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t panel_of(const trine_call *call) {
    const int64_t rows = DIM(K) > 0 ? PANEL / DIM(K) : DIM(R);
    return least(rows > 0 ? rows : 1, DIM(R) > 0 ? DIM(R) : 1);
}

static job job_of(const trine_call *call) {
    job b = { .call = call,
              .args = call->args,
              .r = DIM(R),
              .k = DIM(K),
              .groups = DIM(GROUPS),
              .panel = panel_of(call),
              .weights = GIVEN(WEIGHT),
              .y_out = GIVEN(Y) };
    b.h = place(&b, b.panel * b.k);
    b.weight = place(&b, b.weights && b.weights->dtype != TRINE_F32 ? b.k : 0);
    b.y = place(&b, b.y_out && b.y_out->dtype != TRINE_F32 ? b.panel * b.k : 0);
    return b;
}

/* ------------------------------------------------------------------------------------------------------- nested ops */

static trine_status widen_weight(const job *b, size_t *bytes) {
    if (!b->weights || b->weights->dtype == TRINE_F32) return TRINE_OK;
    const trine_tensor from = exchange_row(b->weights->data, b->weights->dtype, b->k),
                       to = exchange_row(b->weight, TRINE_F32, b->k);
    const trine_cast_args args = { .struct_size = sizeof args, .x = &from, .y = &to };
    return nested_step(b->call, b->bytes, TRINE_OP_CAST, &args, bytes);
}

static char *row_at(const trine_tensor *t, int64_t row) {
    return (char *)t->data + row * t->stride[0] * (int64_t)trine_dtype_size(t->dtype);
}

/* Rows of an operand from the panel's first on; in a call of all ranks, whose sizes alone are asked for, without
 * gaps. */
static trine_tensor rows_of(const job *b, const trine_tensor *t, int64_t rows, int64_t n) {
    trine_tensor view = exchange_rows(t->data, t->dtype, rows, n);
    if (!b->call->comm) return view;
    view.stride[0] = t->stride[0];
    if (t->data) view.data = row_at(t, b->row);
    return view;
}

static trine_status quantize(const job *b, int64_t rows, size_t *bytes) {
    const trine_call *call = b->call;
    const bool wide = b->weights && b->weights->dtype == TRINE_F32, narrow = b->y_out && b->y_out->dtype != TRINE_F32;
    const trine_tensor h = exchange_rows(b->h, TRINE_F32, rows, b->k),
                       weight = exchange_row(wide ? b->weights->data : b->weight, TRINE_F32, b->k),
                       codes = rows_of(b, &call->tensor[ALL_REDUCE_RMS_NORM_QUANTIZE_CODES], rows, b->k),
                       scales = rows_of(b, &call->tensor[ALL_REDUCE_RMS_NORM_QUANTIZE_SCALES], rows, b->groups),
                       y = b->y_out ? rows_of(b, b->y_out, rows, b->k) : (trine_tensor){ 0 },
                       kept = exchange_rows(b->y, TRINE_F32, rows, b->k);
    const trine_rms_norm_quantize_args args = { .struct_size = sizeof args,
                                                .x = &h,
                                                .weight = b->weights ? &weight : NULL,
                                                .codes = &codes,
                                                .scales = &scales,
                                                .y = narrow     ? &kept
                                                     : b->y_out ? &y
                                                                : NULL,
                                                .eps = b->args->eps == 0 ? -0.0f : b->args->eps, /* a zero is meant */
                                                .weight_offset = b->args->weight_offset,
                                                .upward = b->args->upward,
                                                .powers = b->args->powers };
    const trine_cast_args cast = { .struct_size = sizeof cast, .x = &kept, .y = &y };
    const trine_status status = nested_step(b->call, b->bytes, TRINE_OP_RMS_NORM_QUANTIZE, &args, bytes);
    return status == TRINE_OK && narrow ? nested_step(b->call, b->bytes, TRINE_OP_CAST, &cast, bytes) : status;
}

/* What the ops within need, and whether there are kernels for them; the last panel may have fewer rows. */
static trine_status plan(const trine_call *call, size_t *bytes_out) {
    const job b = job_of(call);
    size_t bytes = 0;
    trine_status status = widen_weight(&b, &bytes);
    if (status == TRINE_OK) status = quantize(&b, least(b.panel, b.r), &bytes);
    if (status == TRINE_OK && b.r > b.panel) status = quantize(&b, b.r % b.panel, &bytes);
    *bytes_out = b.bytes + bytes;
    return status;
}

static const char *refuse(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? NULL : "rms_norm_quantize or cast has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? bytes : 0;
}

/* ------------------------------------------------------------------------------------------------------------- sums */

static simt_rows from_row(const trine_call *call, int tensor, int64_t row) {
    simt_rows rows = simt_rows_of(call, tensor);
    if (rows.data) rows.data = row_at(&call->tensor[tensor], row);
    return rows;
}

static trine_status add_up(const job *b, int64_t rows) {
    const trine_call *call = b->call;
    const trine_tensor *x = &call->tensor[ALL_REDUCE_RMS_NORM_QUANTIZE_X];
    const int64_t width = (int64_t)trine_dtype_size(x->dtype), line = x->stride[0] * width,
                  packets = simt_blocks(b->k * width, EXCHANGE_PACKET);
    const char *from = row_at(x, b->row);
    summed_rows_params p = { .exchange = { .x = from,
                                           .y = b->h,
                                           .n = b->k,
                                           .kind = TRINE_RANKS_SUM,
                                           .aligned = ((uintptr_t)from | (uintptr_t)line) % EXCHANGE_PACKET == 0,
                                           .lines = b->k > 0 ? rows : 0,
                                           .x_line = line,
                                           .y_line = b->k * (int64_t)sizeof(float),
                                           .line_packets = simt_divisor_of(packets > 0 ? packets : 1) },
                             .residual = from_row(call, ALL_REDUCE_RMS_NORM_QUANTIZE_RESIDUAL, b->row),
                             .residual_out = from_row(call, ALL_REDUCE_RMS_NORM_QUANTIZE_RESIDUAL_OUT, b->row),
                             .f32_residual = call->type[ALL_REDUCE_RMS_NORM_QUANTIZE_TYPE_R] == TRINE_F32 };
    return simt_exchange_more(call, &(simt_function){ .type = { x->dtype } }, &p, sizeof p, rows * packets, 1);
}

static trine_status run(const trine_call *call) {
    job b = job_of(call);
    trine_status status = widen_weight(&b, NULL);
    for (b.row = 0; status == TRINE_OK && (b.row == 0 || b.row < b.r); b.row += b.panel) {
        const int64_t rows = least(b.panel, b.r - b.row);
        status = add_up(&b, rows);
        if (status == TRINE_OK && rows > 0) status = quantize(&b, rows, NULL);
    }
    return status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t elements =
        EXCHANGE_PACKET / (int64_t)trine_dtype_size(call->type[ALL_REDUCE_RMS_NORM_QUANTIZE_TYPE_T]);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_K, elements);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_R, DIM(K) > 0 ? PANEL / DIM(K) : 1);
}

SIMT_KERNELS(all_reduce_rms_norm_quantize) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
