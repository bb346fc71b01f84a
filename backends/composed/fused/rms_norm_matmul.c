/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_matmul, made of other ops: panels of rows are normalized into the workspace, and multiplied while they are
 * in a cache. */
#include "backends/composed/nested.h"
#include "spec/places/rms_norm_matmul.h"

/* A panel is such that an L2 of a GPU, or the caches of a CPU, have it beside what is multiplied, and has rows enough
 * for a product to fill the device. More of them save nothing. */
enum { PANEL_BYTES = 16 << 20, PANEL_LEAST = 512, PANEL_MOST = 4096, ALIGNMENT = 256 };
#define LONGEST ((int64_t)1 << 40) /* row: no size overflows */

typedef struct panels {
    const trine_call *call;
    int64_t r, k, whole, rows; /* all rows; those of a whole panel, and of the first */
    size_t bytes, nested;
} panels;

/* Rows [first, first + count) of a tensor, or elements where there is one each row; NULL of none. */
static const trine_tensor *rows_of(const trine_call *call, int place, int64_t first, int64_t count,
                                   trine_tensor *part) {
    const trine_tensor *t = trine_call_given(call, place);
    if (t == NULL) return NULL;
    *part = *t;
    if (part->data) part->data = (char *)part->data + first * part->stride[0] * (int64_t)trine_dtype_size(part->dtype);
    part->shape[0] = count;
    return part;
}

static trine_status step(panels *p, bool run, trine_op op, const void *args) {
    return nested_step(p->call, run, op, args, p->bytes, &p->nested);
}

static trine_status panel(panels *p, bool run, int64_t first, int64_t count) {
    const trine_call *call = p->call;
    const trine_rms_norm_matmul_args *args = call->args;
    trine_tensor part[5];
    const trine_tensor normalized =
        trine_tensor_2d(run ? call->workspace : NULL, call->tensor[RMS_NORM_MATMUL_X].dtype, count, p->k);
    const trine_rms_norm_args normalize = { .struct_size = sizeof normalize,
                                            .x = rows_of(call, RMS_NORM_MATMUL_X, first, count, &part[0]),
                                            .weight = trine_call_given(call, RMS_NORM_MATMUL_WEIGHT),
                                            .residual = rows_of(call, RMS_NORM_MATMUL_RESIDUAL, first, count, &part[1]),
                                            .y = &normalized,
                                            .residual_out =
                                                rows_of(call, RMS_NORM_MATMUL_RESIDUAL_OUT, first, count, &part[2]),
                                            .rstd = rows_of(call, RMS_NORM_MATMUL_RSTD, first, count, &part[3]),
                                            .eps = args->eps == 0 ? -0.0f : args->eps,
                                            .weight_offset = args->weight_offset };
    const trine_matmul_args multiply = { .struct_size = sizeof multiply,
                                         .a = &normalized,
                                         .b = &call->tensor[RMS_NORM_MATMUL_B],
                                         .bias = trine_call_given(call, RMS_NORM_MATMUL_BIAS),
                                         .d = rows_of(call, RMS_NORM_MATMUL_Y, first, count, &part[4]),
                                         .activation = args->activation };
    const trine_status status = step(p, run, TRINE_OP_RMS_NORM, &normalize);
    return status == TRINE_OK ? step(p, run, TRINE_OP_MATMUL, &multiply) : status;
}

static panels panels_of(const trine_call *call) {
    const int64_t size = (int64_t)trine_dtype_size(call->tensor[RMS_NORM_MATMUL_X].dtype);
    panels p = { .call = call, .r = call->dim[RMS_NORM_MATMUL_DIM_R], .k = call->dim[RMS_NORM_MATMUL_DIM_K] };
    p.whole = p.k > 0 ? PANEL_BYTES / size / p.k : PANEL_MOST;
    if (p.whole < PANEL_LEAST) p.whole = PANEL_LEAST;
    if (p.whole > PANEL_MOST) p.whole = PANEL_MOST;
    p.rows = p.whole < p.r ? p.whole : p.r;
    if (p.k <= LONGEST) p.bytes = ((size_t)(p.rows * p.k * size) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return p;
}

/* What the ops need, the first panel's and the last one's sizes being all that there are. */
static trine_status plan(panels *p, const trine_call *call) {
    *p = panels_of(call);
    if (p->k > LONGEST) return TRINE_ERR_UNSUPPORTED;
    const trine_status status = panel(p, false, 0, p->rows);
    return status == TRINE_OK && p->rows > 0 && p->r % p->rows ? panel(p, false, 0, p->r % p->rows) : status;
}

static const char *refuse(const trine_call *call) {
    panels p;
    if (call->empty || plan(&p, call) == TRINE_OK) return NULL;
    return p.k > LONGEST ? "rows of more than 2^40 elements" : "rms_norm or matmul has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    panels p;
    return !call->empty && plan(&p, call) == TRINE_OK ? p.bytes + p.nested : 0;
}

static trine_status launch(const trine_call *call) {
    panels p = panels_of(call);
    p.nested = call->workspace_size - p.bytes;
    trine_status status = TRINE_OK;
    for (int64_t first = 0; status == TRINE_OK && first < p.r; first += p.rows)
        status = panel(&p, true, first, p.r - first < p.rows ? p.r - first : p.rows);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, RMS_NORM_MATMUL_DIM_R, panels_of(call).whole);
}

extern const trine_kernel trine_rms_norm_matmul_composed[];
const trine_kernel trine_rms_norm_matmul_composed[] = {
    { .name = "composed", .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
