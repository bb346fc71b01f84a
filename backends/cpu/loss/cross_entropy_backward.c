/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on the CPU: probabilities anew from the saved lse, chunk by chunk. */
#include "cross_entropy.h"
#include "spec/places/cross_entropy_backward.h"

enum { CHUNK = 4096 };

typedef struct gradients {
    gradient_rows rows;
    const float *lse;
    int64_t count, chunks; /* rows, and chunks of each */
} gradients;

static void gradient_thread(const void *context, int thread, int team) {
    const gradients *g = context;
    const int64_t v = g->rows.v;
    int64_t first, last;
    cpu_share(g->count * g->chunks, thread, team, &first, &last);
    for (int64_t task = first; task < last; task++) {
        const int64_t row = task / g->chunks, at = task % g->chunks * CHUNK;
        gradient_chunk(&g->rows, row, g->lse[row], at, v - at < CHUNK ? v - at : CHUNK);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_cross_entropy_backward_args *args = call->args;
    const gradients g = {
        .rows = { .logits = &call->tensor[CROSS_ENTROPY_BACKWARD_LOGITS],
                  .labels = &call->tensor[CROSS_ENTROPY_BACKWARD_LABELS],
                  .dloss = &call->tensor[CROSS_ENTROPY_BACKWARD_DLOSS],
                  .dlogits = &call->tensor[CROSS_ENTROPY_BACKWARD_DLOGITS],
                  .v = call->dim[CROSS_ENTROPY_BACKWARD_DIM_V],
                  .ignore = args->ignore_index_set ? args->ignore_index : -100,
                  .smoothing = args->label_smoothing,
                  .scale = args->logit_scale,
                  .z_loss = args->z_loss },
        .lse = call->tensor[CROSS_ENTROPY_BACKWARD_LSE].data,
        .count = call->dim[CROSS_ENTROPY_BACKWARD_DIM_R],
        .chunks = (call->dim[CROSS_ENTROPY_BACKWARD_DIM_V] + CHUNK - 1) / CHUNK,
    };
    const trine_status status = labels_check(call, g.rows.labels, g.rows.v, g.rows.ignore);
    if (status != TRINE_OK) return status;
    cpu_parallel(cpu_team(call, g.count * g.chunks, g.count * g.rows.v * 2 * (int64_t)vsize(g.rows.logits->dtype)), gradient_thread, &g);
    return TRINE_OK;
}

CPU_KERNELS(cross_entropy_backward) = { { CPU_NAME, NULL, NULL, launch }, { 0 } };
