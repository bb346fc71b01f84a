/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_parallel_cross_entropy on the CPU: as many rows at a time as a cache holds. Each rank sums up its part of a row
 * as cross_entropy does, all ranks get all sums and put them together in one order, and each writes its part of the
 * gradient. */
#include "backends/cpu/comm/copy.h"
#include "backends/cpu/loss/cross_entropy_sums.h"
#include "spec/places/vocab_parallel_cross_entropy.h"

enum { PANEL_BYTES = 8 << 20 }; /* of logits */

/* What a rank tells of a row. */
typedef struct told {
    row_sums sums;
    double at_label; /* f x, of the rank that has the label */
    int64_t label;
} told;

typedef struct job {
    const trine_call *call;
    const trine_tensor *logits, *labels, *lse, *dlogits; /* NULL: not asked for */
    int ranks;
    int64_t r, v, classes, chunks, panel, ignore, row, rows; /* rows of the panel at hand, from `row` on */
    float smoothing, z_loss;
    exponent exponent;
    part *parts;        /* of the chunks of a panel */
    row_powers *powers; /* of its rows */
    told *mine;
    gradient_rows gradients;
} job;

static int64_t panel_of(const trine_call *call) {
    const int64_t r = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_R], v = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V],
                  width = (int64_t)vsize(call->type[VOCAB_PARALLEL_CROSS_ENTROPY_TYPE_T]),
                  room = trine_cpu_group_bytes(call) / (int64_t)sizeof(told),
                  cached = v > 0 ? PANEL_BYTES / (v * width) : r, most = cached < room ? cached : room;
    return most < 1 || r < 1 ? 1 : most < r ? most : r;
}

static job job_of(const trine_call *call) {
    const trine_vocab_parallel_cross_entropy_args *args = call->args;
    const int64_t ranks = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_RANKS],
                  v = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V], chunks = chunks_of(v), panel = panel_of(call),
                  ignore = args->ignore_index_set ? args->ignore_index : -100;
    const trine_tensor *logits = &call->tensor[VOCAB_PARALLEL_CROSS_ENTROPY_LOGITS],
                       *labels = &call->tensor[VOCAB_PARALLEL_CROSS_ENTROPY_LABELS],
                       *dlogits = trine_call_given(call, VOCAB_PARALLEL_CROSS_ENTROPY_DLOGITS);
    part *parts = call->workspace;
    return (job){ .call = call,
                  .logits = logits,
                  .labels = labels,
                  .lse = trine_call_given(call, VOCAB_PARALLEL_CROSS_ENTROPY_LSE),
                  .dlogits = dlogits,
                  .ranks = (int)ranks,
                  .r = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_R],
                  .v = v,
                  .classes = ranks * v,
                  .chunks = chunks,
                  .panel = panel,
                  .ignore = ignore,
                  .smoothing = args->label_smoothing,
                  .z_loss = args->z_loss,
                  .exponent = exponent_of(args->logit_scale),
                  .parts = parts,
                  .powers = parts ? (row_powers *)(parts + panel * chunks) : NULL,
                  .gradients = { .logits = logits,
                                 .labels = labels,
                                 .dloss = trine_call_given(call, VOCAB_PARALLEL_CROSS_ENTROPY_DLOSS),
                                 .dlogits = dlogits,
                                 .v = ranks * v,
                                 .ignore = ignore,
                                 .first_class = trine_cpu_group_rank(call) * v,
                                 .smoothing = args->label_smoothing,
                                 .z_loss = args->z_loss,
                                 .scale = args->logit_scale } };
}

static size_t workspace(const trine_call *call) {
    return (size_t)panel_of(call) *
           ((size_t)chunks_of(call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V]) * sizeof(part) + sizeof(row_powers));
}

static void sum_chunks(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    for (int64_t task = first; task < last; task++) {
        const int64_t row = b->row + task / b->chunks, at = task % b->chunks * CHUNK;
        row_chunk(b->logits, row, at, chunk_length(b->v, at), &b->exponent, b->smoothing > 0, NULL, &b->parts[task]);
    }
}

/* To this rank's half, with the logit of the label where that is here. */
static void tell_rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = b->row + i, label = label_at(b->labels, row), place = label - b->gradients.first_class;
        told t = { .sums = no_sums(), .label = label };
        for (int64_t c = 0; c < b->chunks; c++) sums_add(&t.sums, &b->parts[i * b->chunks + c], b->exponent.unit);
        if (place >= 0 && place < b->v)
            t.at_label =
                (double)b->exponent.f * sload(b->logits->data, b->logits->dtype, row * b->logits->stride[0] + place);
        b->mine[i] = t;
    }
}

static const told *told_by(const job *b, int rank) {
    return (const told *)(const void *)trine_cpu_group_half(b->call, rank);
}

/* Every rank judges the labels of all, so that all return the same. */
static trine_status check_labels(const job *b) {
    for (int64_t i = 0; i < b->rows; i++)
        for (int q = 0; q < b->ranks; q++) {
            const int64_t label = told_by(b, q)[i].label, first = told_by(b, 0)[i].label;
            if ((label < 0 || label >= b->classes) && label != b->ignore)
                return b->call->host->error(
                    TRINE_ERR_ARGUMENT,
                    "vocab_parallel_cross_entropy: labels[%lld] = %lld of rank %d is neither in "
                    "[0, ranks v = %lld) nor the ignored label %lld",
                    (long long)(b->row + i), (long long)label, q, (long long)b->classes, (long long)b->ignore);
            if (label != first)
                return b->call->host->error(TRINE_ERR_ARGUMENT,
                                            "vocab_parallel_cross_entropy: labels[%lld] is %lld of rank 0, but %lld of "
                                            "rank %d: all ranks must have the same labels",
                                            (long long)(b->row + i), (long long)first, (long long)label, q);
        }
    return TRINE_OK;
}

static void put_rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const exponent *x = &b->exponent;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = b->row + i, y = label_at(b->labels, row);
        row_sums s = no_sums();
        for (int q = 0; q < b->ranks; q++) sums_join(&s, &told_by(b, q)[i].sums, x->unit);
        const double lse = sums_lse(&s, x->unit), e = b->smoothing, w = b->z_loss;
        if (b->lse) ((float *)b->lse->data)[row] = (float)lse;
        double loss = 0;
        if (y != b->ignore) {
            const double at_label = told_by(b, (int)(y / b->v))[i].at_label;
            loss = sums_log(&s) + (1 - e) * (x->unit * (s.origin - at_label));
            if (e > 0) loss -= e * (x->unit * s.total / (double)b->classes);
            if (w > 0) loss += w * lse * lse;
        }
        ((float *)b->call->tensor[VOCAB_PARALLEL_CROSS_ENTROPY_LOSS].data)[row] = (float)loss;
        b->powers[i] = sums_powers(&s, x->unit, 1, b->z_loss);
    }
}

static void put_gradients(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    for (int64_t task = first; task < last; task++) {
        const int64_t i = task / b->chunks, at = task % b->chunks * CHUNK;
        gradient_chunk(&b->gradients, b->row + i, b->powers[i], at, chunk_length(b->v, at));
    }
}

static trine_status do_panel(job *b) {
    const int64_t tasks = b->rows * b->chunks, bytes = b->rows * b->v * (int64_t)vsize(b->logits->dtype);
    char *half;
    cpu_shares(b->call, cpu_team(b->call, tasks, bytes), tasks, sum_chunks, b);
    trine_status status = trine_cpu_group_ready(b->call, &half);
    if (status != TRINE_OK) return status;
    b->mine = (told *)(void *)half;
    const int team = cpu_team(b->call, b->rows, b->rows * b->chunks * (int64_t)sizeof(part));
    cpu_shares(b->call, team, b->rows, tell_rows, b);
    status = trine_cpu_group_post(b->call, b->row == 0, 1);
    if (status == TRINE_OK) status = check_labels(b);
    if (status != TRINE_OK) return status;
    cpu_shares(b->call, team, b->rows, put_rows, b);
    if (b->dlogits) cpu_shares(b->call, cpu_team(b->call, tasks, 2 * bytes), tasks, put_gradients, b);
    return TRINE_OK;
}

static trine_status launch(const trine_call *call) {
    job b = job_of(call);
    trine_status status = TRINE_OK;
    for (b.row = 0; status == TRINE_OK && (b.row == 0 || b.row < b.r); b.row += b.panel) {
        b.rows = b.r - b.row < b.panel ? b.r - b.row : b.panel;
        status = do_panel(&b);
    }
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    chunk_edges(edges, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V);
    trine_kernel_edge(edges, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_R, panel_of(call));
}

CPU_KERNELS(vocab_parallel_cross_entropy) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
