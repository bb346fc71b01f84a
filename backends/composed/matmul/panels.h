/* SPDX-License-Identifier: Apache-2.0 */
/* Products with weights that are not numbers as they lie: some rows of them at a time are written down in the type that
 * matmul takes, and multiplied. */
#ifndef TRINE_COMPOSED_PANELS_H
#define TRINE_COMPOSED_PANELS_H

#include "backends/composed/nested.h"

enum { PANEL_BYTES = 32 << 20, PANEL_LEAST = 256, ALIGNMENT = 256 };
#define LONGEST ((int64_t)1 << 40) /* row: no size overflows */

typedef struct panels {
    const trine_call *call;
    int64_t n, k, rows;  /* all rows of weights; those that are written down at a time */
    trine_dtype type;    /* in which they are */
    int symbol;          /* the dimension that n is */
    const char *lacking; /* what is said where an op has no kernel */
    size_t weights, nested;
} panels;

/* The call, and one panel of rows, or its workspace taken into account: of the op. */
static panels panels_of(const trine_call *call);
static trine_status panel(panels *p, bool run, int64_t first, int64_t count);

/* Elements [first, first + count) of a tensor's dimension `d`. */
static trine_tensor part_of(const trine_tensor *t, int d, int64_t first, int64_t count) {
    trine_tensor part = *t;
    if (part.data) part.data = (char *)part.data + first * part.stride[d] * (int64_t)trine_dtype_size(part.dtype);
    part.shape[d] = count;
    return part;
}

static inline trine_status step(panels *p, bool run, trine_op op, const void *args) {
    return nested_step(p->call, run, op, args, p->weights, &p->nested);
}

/* The sizes, the first panel's and the last one's being all that there are. */
static trine_status plan(panels *p, const trine_call *call) {
    *p = panels_of(call);
    const int64_t size = (int64_t)trine_dtype_size(p->type);
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
    if (plan(&p, call) == TRINE_OK) return NULL;
    return p.k > LONGEST ? "rows of more than 2^40 weights" : p.lacking;
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
    if (plan(&p, call) == TRINE_OK) trine_kernel_edge(edges, p.symbol, p.rows);
}

#define PANELS_KERNEL { .name = "composed", .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }

#endif
