/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized, made of other ops: weights are written down in x's type, some rows at a time, and multiplied. */
#include "backends/backend.h"
#include "spec/places/matmul_quantized.h"

enum { PANEL_BYTES = 32 << 20, PANEL_LEAST = 256, ALIGNMENT = 256 };
#define LONGEST ((int64_t)1 << 40) /* row: no size overflows */

typedef struct panels {
    const trine_call *call;
    int64_t n, k, rows; /* all rows of weights; those that are written down at a time */
    size_t weights, nested;
} panels;

/* Elements [first, first + count) of a tensor's dimension `d`. */
static trine_tensor part_of(const trine_tensor *t, int d, int64_t first, int64_t count) {
    trine_tensor part = *t;
    if (part.data) part.data = (char *)part.data + first * part.stride[d] * (int64_t)trine_dtype_size(part.dtype);
    part.shape[d] = count;
    return part;
}

/* An op within the call: run, or its workspace taken into account. */
static trine_status step(panels *p, bool run, trine_op op, const void *args) {
    const trine_host *host = p->call->host;
    size_t bytes;
    if (run) return host->nested_run(p->call, op, args, (char *)p->call->workspace + p->weights, p->nested);
    const trine_status status = host->nested_workspace(p->call, op, args, &bytes);
    if (status == TRINE_OK && bytes > p->nested) p->nested = bytes;
    return status;
}

static trine_status panel(panels *p, bool run, int64_t first, int64_t count) {
    const trine_matmul_quantized_args *args = p->call->args;
    const trine_tensor *tensor = p->call->tensor, *zeros = trine_call_given(p->call, MATMUL_QUANTIZED_ZEROS),
                       *mins = trine_call_given(p->call, MATMUL_QUANTIZED_MINS),
                       *bias = trine_call_given(p->call, MATMUL_QUANTIZED_BIAS);
    const trine_tensor weights = trine_tensor_2d(run ? p->call->workspace : NULL, tensor[MATMUL_QUANTIZED_X].dtype,
                                                 count, p->k),
                       across = trine_tensor_transpose(&weights),
                       codes = part_of(&tensor[MATMUL_QUANTIZED_CODES], 0, first, count),
                       scales = part_of(&tensor[MATMUL_QUANTIZED_SCALES], 0, first, count),
                       y = part_of(&tensor[MATMUL_QUANTIZED_Y], 1, first, count);
    trine_tensor zeros_part, mins_part, bias_part;
    if (zeros) zeros_part = part_of(zeros, 0, first, count);
    if (mins) mins_part = part_of(mins, 0, first, count);
    if (bias) bias_part = part_of(bias, 0, first, count);
    const trine_dequantize_args expand = { .struct_size = sizeof expand,
                                           .codes = &codes,
                                           .scales = &scales,
                                           .zeros = zeros ? &zeros_part : NULL,
                                           .mins = mins ? &mins_part : NULL,
                                           .y = &weights,
                                           .offset = args->offset,
                                           .format = args->format };
    const trine_matmul_args multiply = { .struct_size = sizeof multiply,
                                         .a = &tensor[MATMUL_QUANTIZED_X],
                                         .b = &across,
                                         .bias = bias ? &bias_part : NULL,
                                         .d = &y,
                                         .activation = args->activation };
    const trine_status status = step(p, run, TRINE_OP_DEQUANTIZE, &expand);
    return status == TRINE_OK ? step(p, run, TRINE_OP_MATMUL, &multiply) : status;
}

/* The sizes, the first panel's and the last one's being all that there are. */
static trine_status plan(panels *p, const trine_call *call) {
    const int64_t size = (int64_t)trine_dtype_size(call->type[MATMUL_QUANTIZED_TYPE_T]);
    *p = (panels){ .call = call, .n = call->dim[MATMUL_QUANTIZED_DIM_N], .k = call->dim[MATMUL_QUANTIZED_DIM_K] };
    if (p->k > LONGEST) return TRINE_ERR_UNSUPPORTED;
    p->rows = p->k > 0 ? PANEL_BYTES / (p->k * size) / PANEL_LEAST * PANEL_LEAST : p->n;
    if (p->rows < PANEL_LEAST) p->rows = PANEL_LEAST;
    if (p->rows > p->n) p->rows = p->n;
    p->weights = ((size_t)(p->rows * p->k * size) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const trine_status status = panel(p, false, 0, p->rows);
    return status == TRINE_OK && p->n % p->rows ? panel(p, false, 0, p->n % p->rows) : status;
}

static const char *refuse(const trine_call *call) {
    panels p;
    if (call->empty) return NULL;
    if (call->dim[MATMUL_QUANTIZED_DIM_K] > LONGEST) return "rows of more than 2^40 weights";
    return plan(&p, call) == TRINE_OK ? NULL : "dequantize or matmul has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    panels p;
    return plan(&p, call) == TRINE_OK ? p.weights + p.nested : 0;
}

static trine_status launch(const trine_call *call) {
    panels p;
    trine_status status = plan(&p, call);
    for (int64_t first = 0; status == TRINE_OK && first < p.n; first += p.rows)
        status = panel(&p, true, first, p.n - first < p.rows ? p.n - first : p.rows);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    panels p;
    if (plan(&p, call) == TRINE_OK) trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, p.rows);
}

extern const trine_kernel trine_matmul_quantized_composed[];
const trine_kernel trine_matmul_quantized_composed[] = {
    { .name = "composed", .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
