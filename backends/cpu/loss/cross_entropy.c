/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on the CPU: each row in chunks that fit the L1 cache, whose sums are then put together in order. The
 * gradient of a row is written while its logits are in the cache, if there are rows for all threads. */
#include "cross_entropy_sums.h"
#include "spec/places/cross_entropy.h"

static bool given(const trine_call *call, int tensor) { return call->present >> tensor & 1; }

/* Of rows of several chunks: their parts, and for gradients the powers of each. */
static size_t workspace(const trine_call *call) {
    const int64_t chunks = chunks_of(call->dim[CROSS_ENTROPY_DIM_V]);
    if (chunks <= 1) return 0;
    return (size_t)call->dim[CROSS_ENTROPY_DIM_R] *
           ((size_t)chunks * sizeof(part) + (given(call, CROSS_ENTROPY_DLOGITS) ? sizeof(row_powers) : 0));
}

typedef struct losses {
    const trine_call *call;
    const trine_tensor *logits, *labels;
    int64_t rows, v, chunks, ignore;
    bool need_lse, totals, gradient;
    exponent exponent;
    part *parts;        /* of rows of several chunks */
    row_powers *powers; /* of those, for gradients */
    gradient_rows gradients;
} losses;

/* Of a row whose loss, lse or gradient is asked for. */
static void loss_chunk(const losses *l, int64_t row, int64_t at, part *out) {
    *out = (part){ 0 };
    if (l->need_lse || label_at(l->labels, row) != l->ignore)
        row_chunk(l->logits, row, at, chunk_length(l->v, at), &l->exponent, l->totals, l->gradients.weights, out);
}

/* Puts a row's chunks together. A difference of two logits is that of what they are times f, exactly; those of the mean
 * and of the label are from the origin. */
static void loss_row(const losses *l, int64_t row, const part *parts) {
    const trine_cross_entropy_args *args = l->call->args;
    const int64_t y = label_at(l->labels, row);
    const exponent *x = &l->exponent;
    row_sums s = no_sums();
    for (int64_t c = 0; c < l->chunks; c++) sums_add(&s, &parts[c], x->unit);
    const double lse = sums_lse(&s, x->unit), e = args->label_smoothing;
    const double m = lse_weight(&l->gradients, row);
    if (l->need_lse) ((float *)l->call->tensor[CROSS_ENTROPY_LSE].data)[row] = (float)lse;
    double loss = 0;
    if (y != l->ignore) {
        const double w = args->z_loss;
        const double at_label = (double)x->f * sload(l->logits->data, l->logits->dtype, row * l->logits->stride[0] + y);
        loss = m * sums_log(&s) + (1 - e) * weight_at(l->gradients.weights, y) * (x->unit * (s.origin - at_label));
        if (e > 0) loss -= e * (x->unit * s.total / (double)l->v);
        if (w > 0) loss += w * lse * lse;
    }
    ((float *)l->call->tensor[CROSS_ENTROPY_LOSS].data)[row] = (float)loss;
    if (!l->gradient) return;
    const row_powers powers = sums_powers(&s, x->unit, m, args->z_loss);
    if (l->chunks > 1)
        l->powers[row] = powers;
    else
        gradient_chunk(&l->gradients, row, powers, 0, l->v);
}

/* Rows of one chunk, or rows enough that none need be shared: each from end to end. */
static void whole_rows(const void *context, int64_t first, int64_t last, int thread) {
    const losses *l = context;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        part one;
        /* cppcheck-suppress uninitvar ; its address alone */
        part *parts = l->chunks > 1 ? l->parts + row * l->chunks : &one;
        for (int64_t c = 0; c < l->chunks; c++) loss_chunk(l, row, c * CHUNK, parts + c);
        loss_row(l, row, parts);
        for (int64_t c = 0; l->gradient && l->chunks > 1 && c < l->chunks; c++)
            gradient_chunk(&l->gradients, row, l->powers[row], c * CHUNK, chunk_length(l->v, c * CHUNK));
    }
}

/* Else in three steps: the chunks of all rows, the rows, and the chunks of their gradients. */
static void chunk_parts(const void *context, int64_t first, int64_t last, int thread) {
    const losses *l = context;
    (void)thread;
    for (int64_t task = first; task < last; task++)
        loss_chunk(l, task / l->chunks, task % l->chunks * CHUNK, &l->parts[task]);
}
static void row_losses(const void *context, int64_t first, int64_t last, int thread) {
    const losses *l = context;
    (void)thread;
    for (int64_t row = first; row < last; row++) loss_row(l, row, l->parts + row * l->chunks);
}
static void chunk_gradients(const void *context, int64_t first, int64_t last, int thread) {
    const losses *l = context;
    (void)thread;
    for (int64_t task = first; task < last; task++) {
        const int64_t row = task / l->chunks, at = task % l->chunks * CHUNK;
        gradient_chunk(&l->gradients, row, l->powers[row], at, chunk_length(l->v, at));
    }
}

static losses losses_of(const trine_call *call) {
    const trine_cross_entropy_args *args = call->args;
    const int64_t chunks = chunks_of(call->dim[CROSS_ENTROPY_DIM_V]),
                  ignore = args->ignore_index_set ? args->ignore_index : -100;
    const float *const weights =
        given(call, CROSS_ENTROPY_CLASS_WEIGHT) ? call->tensor[CROSS_ENTROPY_CLASS_WEIGHT].data : NULL;
    part *const parts = call->workspace;
    return (losses){
        .call = call,
        .logits = &call->tensor[CROSS_ENTROPY_LOGITS],
        .labels = &call->tensor[CROSS_ENTROPY_LABELS],
        .rows = call->dim[CROSS_ENTROPY_DIM_R],
        .v = call->dim[CROSS_ENTROPY_DIM_V],
        .chunks = chunks,
        .ignore = ignore,
        .need_lse = given(call, CROSS_ENTROPY_LSE),
        .totals = args->label_smoothing > 0,
        .gradient = given(call, CROSS_ENTROPY_DLOGITS),
        .exponent = exponent_of(args->logit_scale),
        .parts = parts,
        .powers = chunks > 1 ? (row_powers *)(parts + call->dim[CROSS_ENTROPY_DIM_R] * chunks) : NULL,
        .gradients = { .logits = &call->tensor[CROSS_ENTROPY_LOGITS],
                       .labels = &call->tensor[CROSS_ENTROPY_LABELS],
                       .dloss = given(call, CROSS_ENTROPY_DLOSS) ? &call->tensor[CROSS_ENTROPY_DLOSS] : NULL,
                       .dlogits = &call->tensor[CROSS_ENTROPY_DLOGITS],
                       .weights = weights,
                       .weight_sum = weight_sum(weights, call->dim[CROSS_ENTROPY_DIM_V]),
                       .v = call->dim[CROSS_ENTROPY_DIM_V],
                       .ignore = ignore,
                       .smoothing = args->label_smoothing,
                       .scale = args->logit_scale,
                       .z_loss = args->z_loss },
    };
}

static trine_status launch(const trine_call *call) {
    const losses l = losses_of(call);
    const trine_status status = labels_check(call, l.labels, l.v, l.ignore);
    if (status != TRINE_OK) return status;
    const int64_t tensors = l.gradient ? 2 : 1, bytes = l.rows * (l.v + 1) * (int64_t)vsize(l.logits->dtype) * tensors;
    const int64_t tasks = l.rows * (l.chunks > 1 ? l.chunks : 1);
    const int team = cpu_team(call, tasks, bytes);
    if (l.chunks <= 1 || (l.gradient && l.rows >= team)) {
        cpu_shares(call, team, l.rows, whole_rows, &l);
        return TRINE_OK;
    }
    cpu_shares(call, team, tasks, chunk_parts, &l);
    cpu_shares(call, l.rows < team ? (int)l.rows : team, l.rows, row_losses, &l);
    if (l.gradient) cpu_shares(call, team, tasks, chunk_gradients, &l);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    chunk_edges(edges, CROSS_ENTROPY_DIM_V);
}

CPU_KERNELS(cross_entropy) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
