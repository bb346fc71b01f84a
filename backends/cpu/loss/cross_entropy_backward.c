/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on the CPU: probabilities anew from the saved lse, chunk by chunk;
 * where it is too coarse, from the row's sums. */
#include "cross_entropy_sums.h"
#include "spec/places/cross_entropy_backward.h"

typedef struct gradients {
    gradient_rows rows;
    const float *lse;
    int64_t count, chunks; /* rows, and chunks of each */
} gradients;

/* exp(z - lse), as 2^(spread (f x - origin)) with the origin nearest lse; the factor makes good what it is off by. */
static row_powers powers_of(const gradients *g, int64_t row) {
    const exponent e = exponent_of(g->rows.scale);
    const double lse = g->lse[row];
    const float origin = e.unit > 0 ? to_origin((float)(lse / e.unit)) : 0;
    return (row_powers){ origin, (float)(z_factor(lse_weight(&g->rows, row), g->rows.z_loss, lse) *
                                         exp(origin * e.unit - lse)) };
}

/* A row from end to end, since the gradient may overwrite the logits that the sums want. */
static void coarse_row(const gradients *g, int64_t row) {
    const exponent e = exponent_of(g->rows.scale);
    const int64_t v = g->rows.v;
    row_sums s = no_sums();
    for (int64_t at = 0; at < v; at += CHUNK) {
        part part;
        row_chunk(g->rows.logits, row, at, chunk_length(v, at), &e, false, NULL, &part);
        sums_add(&s, &part, e.unit);
    }
    const row_powers powers = sums_powers(&s, e.unit, lse_weight(&g->rows, row), g->rows.z_loss);
    for (int64_t at = 0; at < v; at += CHUNK) gradient_chunk(&g->rows, row, powers, at, chunk_length(v, at));
}

static void gradient_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const gradients *g = context;
    const int64_t v = g->rows.v;
    (void)thread;
    for (int64_t task = first; task < last; task++) {
        const int64_t row = task / g->chunks, at = task % g->chunks * CHUNK;
        if (fabsf(g->lse[row]) < COARSE_LSE || isnan(g->lse[row]))
            gradient_chunk(&g->rows, row, powers_of(g, row), at, chunk_length(v, at));
        else if (at == 0)
            coarse_row(g, row);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_cross_entropy_backward_args *args = call->args;
    const float *const weights = call->present >> CROSS_ENTROPY_BACKWARD_CLASS_WEIGHT & 1
                                     ? call->tensor[CROSS_ENTROPY_BACKWARD_CLASS_WEIGHT].data
                                     : NULL;
    const gradients g = {
        .rows = { .logits = &call->tensor[CROSS_ENTROPY_BACKWARD_LOGITS],
                  .labels = &call->tensor[CROSS_ENTROPY_BACKWARD_LABELS],
                  .dloss = &call->tensor[CROSS_ENTROPY_BACKWARD_DLOSS],
                  .dlogits = &call->tensor[CROSS_ENTROPY_BACKWARD_DLOGITS],
                  .weights = weights,
                  .weight_sum = weight_sum(weights, call->dim[CROSS_ENTROPY_BACKWARD_DIM_V]),
                  .v = call->dim[CROSS_ENTROPY_BACKWARD_DIM_V],
                  .ignore = args->ignore_index_set ? args->ignore_index : -100,
                  .smoothing = args->label_smoothing,
                  .scale = args->logit_scale,
                  .z_loss = args->z_loss },
        .lse = call->tensor[CROSS_ENTROPY_BACKWARD_LSE].data,
        .count = call->dim[CROSS_ENTROPY_BACKWARD_DIM_R],
        .chunks = chunks_of(call->dim[CROSS_ENTROPY_BACKWARD_DIM_V]),
    };
    const trine_status status = labels_check(call, g.rows.labels, g.rows.v, g.rows.ignore);
    if (status != TRINE_OK) return status;
    const int64_t tasks = g.count * g.chunks;
    cpu_shares(call, cpu_team(call, tasks, g.count * g.rows.v * 2 * (int64_t)vsize(g.rows.logits->dtype)), tasks,
               gradient_tasks, &g);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    chunk_edges(edges, CROSS_ENTROPY_BACKWARD_DIM_V);
}

CPU_KERNELS(cross_entropy_backward) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
