/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on the CPU. */
#include "softmax.h"
#include "spec/places/softmax.h"
#include "softmax_same.h"

typedef struct softmax {
    softmax_way way;
    const trine_tensor *x, *y;
    int64_t s, n;
    bool causal;
} softmax;

INLINE int64_t visible_of(const softmax *a, int64_t i) { return a->causal ? row_visible(i, a->s, a->n) : a->n; }

/* Rows [first, last), of one matrix. */
INLINE void softmax_rows_as(const softmax *a, float *h, int64_t first, int64_t last, trine_dtype T) {
    const int64_t size = (int64_t)vsize(T), g = first / a->s, i = first % a->s;
    const char *x = row_at3(a->x, g, i);
    char *y = row_at3(a->y, g, i);
    for (int64_t k = 0; k < last - first; k++, x += a->x->stride[1] * size, y += a->y->stride[1] * size) {
        const int64_t visible = visible_of(a, i + k);
        softmax_row_as(&a->way, h, x, x + a->x->stride[1] * size, y, (int)visible, T);
        if (visible < a->n) memset(y + visible * size, 0, (size_t)((a->n - visible) * size));
    }
}

static void softmax_part(const void *context, int64_t first_chunk, int64_t last_chunk, int thread) {
    const softmax *a = context;
    const int64_t chunks = softmax_chunks(a->s, a->n), rows = softmax_chunk(a->n);
    row_piece h;
    (void)thread;
    for (int64_t c = first_chunk; c < last_chunk; c++) {
        const int64_t i = c % chunks * rows, first = c / chunks * a->s + i;
        FOR_TYPE(a->x->dtype, softmax_rows_as, a, h, first, first + (a->s - i < rows ? a->s - i : rows));
    }
    if (a->way.stream) stream_fence();
}

static void begin(const void *op, parts_row *row) {
    const softmax *a = op;
    softmax_begin(row, a->n, visible_of(a, row->i % a->s));
}
static void piece(const void *op, const parts_row *row, int64_t at, int count, float *h, double *result) {
    const softmax *a = op;
    const int64_t g = row->i / a->s, i = row->i % a->s;
    FOR_TYPE(a->x->dtype, softmax_piece_as, &a->way, row, a->n, h, row_at3(a->x, g, i), row_at3(a->y, g, i), at, count,
             result);
}
static void add(const void *op, parts_row *row, const double *result) {
    softmax_add(&((const softmax *)op)->way, row, result);
}
static bool end(const void *op, parts_row *row) {
    const softmax *a = op;
    const int64_t size = (int64_t)vsize(a->y->dtype);
    if (softmax_end(row)) return true;
    memset((char *)row_at3(a->y, row->i / a->s, row->i % a->s) + row->length * size, 0,
           (size_t)((a->n - row->length) * size));
    return false;
}

static parts parts_of(const trine_call *call, const softmax *a) {
    return (parts){ .op = a,
                    .rows = call->dim[SOFTMAX_DIM_G] * call->dim[SOFTMAX_DIM_S],
                    .n = call->dim[SOFTMAX_DIM_N],
                    .bytes = row_bytes(call),
                    .held = softmax_held(call->dim[SOFTMAX_DIM_N]),
                    .in_turn = a && a->causal,
                    .stream = a && a->way.stream,
                    .begin = begin,
                    .piece = piece,
                    .add = add,
                    .end = end };
}

static size_t workspace(const trine_call *call) {
    const parts job = parts_of(call, NULL);
    return job.n > ROW_PIECE ? parts_workspace(call, &job) : 0;
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    const int64_t matrices = call->dim[SOFTMAX_DIM_G], s = call->dim[SOFTMAX_DIM_S], n = call->dim[SOFTMAX_DIM_N];
    const softmax a = {
        /* a line stored in part past the caches costs more than it saves */
        .way = softmax_way_of(args->scale, INFINITY, !args->causal && row_streams(call)),
        .x = row_tensor(call, SOFTMAX_X),
        .y = row_tensor(call, SOFTMAX_Y),
        .s = s,
        .n = n,
        .causal = args->causal,
    };
    if (n > ROW_PIECE) {
        const parts job = parts_of(call, &a);
        parts_run(call, &job, call->workspace);
        return TRINE_OK;
    }
    const int64_t chunks = matrices * softmax_chunks(s, n);
    if (a.causal) /* rows grow */
        cpu_tasks(call, softmax_team(call, matrices, s, n), chunks, softmax_part, &a);
    else
        cpu_shares(call, softmax_team(call, matrices, s, n), chunks, softmax_part, &a);
    return TRINE_OK;
}

CPU_KERNELS(softmax) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = softmax_edges },
                         { .name = SAME_NAME, .launch = softmax_same_launch, .edges = row_edges, .same = true },
                         { 0 } };
