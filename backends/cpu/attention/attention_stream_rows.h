/* SPDX-License-Identifier: Apache-2.0 */
/* attention of few rows for each head of keys, as when a model decodes: parts of the keys by attention_stream.h, merged
 * in their order. */
#ifndef TRINE_CPU_ATTENTION_STREAM_ROWS_H
#define TRINE_CPU_ATTENTION_STREAM_ROWS_H

#include "attention.h"
#include "attention_stream.h"

enum { ROWS_MOST = 48, ROWS_SHARE = 8 };

static stream_shares rows_shares(const attention *a) {
    const int64_t right = a->causal ? 0 : a->after,
                  window = a->before < a->sk && right < a->sk - a->before ? a->before + right : 0;
    return stream_share(a->call, a->dtype, a->b, a->hk, a->sq * a->group, a->sk, window, a->d, a->d);
}

static stream rows_stream(const attention *a, int64_t heads, int64_t rows) {
    const int64_t size = (int64_t)vsize(a->dtype);
    return stream_of((stream){ .T = a->dtype,
                               .C = a->dtype,
                               .heads = heads,
                               .rows = rows,
                               .all = a->sq * a->group,
                               .d = a->d,
                               .dv = a->d,
                               .k_head = a->call->tensor[ATTENTION_K].stride[2] * size,
                               .v_head = a->call->tensor[ATTENTION_V].stride[2] * size,
                               .softcap = a->softcap });
}

/* The workspace: sums of all problems and parts, then the threads' memory. */
static int64_t rows_sums(const attention *a, const stream_shares *t) { return a->b * a->hk * t->parts * t->floats; }
static int64_t rows_buffer(const attention *a, const stream_shares *t) {
    const stream s = rows_stream(a, t->heads, t->rows);
    const int64_t floats = stream_floats(&s);
    return cpu_round_up(floats > t->ldo ? floats : t->ldo, 16);
}

typedef struct rows_job {
    const attention *a;
    stream_shares t;
} rows_job;

static float *rows_buffer_at(const rows_job *job, int thread) {
    return (float *)job->a->call->workspace + rows_sums(job->a, &job->t) + thread * rows_buffer(job->a, &job->t);
}

/* A task's rows against its part. */
static void rows_attend(const rows_job *job, const stream_task *x, float *buffer) {
    const attention *a = job->a;
    const trine_tensor *k = &a->call->tensor[ATTENTION_K], *v = &a->call->tensor[ATTENTION_V];
    const sequence seq = sequence_of(a, x->n);
    const stream s = rows_stream(a, x->heads, x->rows);
    const stream_buffers w = stream_buffers_at(&s, buffer);
    const int64_t start = x->part * job->t.part;
    const char *ks[STREAM_LONG], *vs[STREAM_LONG];
    int low[STREAM_ROWS], high[STREAM_ROWS];
    float factor[STREAM_ROWS];
    stream_sums sums[STREAM_ROWS];
    block b;
    block_init(&b, a, seq, 0, x->row, x->rows, 1);
    int keys = 0;
    for (int64_t r = 0; r < x->rows; r++) {
        stream_clip(b.low[r], b.high[r], start, job->t.part, &low[r], &high[r]);
        keys = high[r];
    }
    for (int j = 0; j < keys; j++) {
        ks[j] = token_at(k, seq.batch, seq.k + start + j, x->head);
        vs[j] = token_at(v, seq.batch, seq.k + start + j, x->head);
    }
    for (int64_t h = 0; h < x->heads; h++) {
        b.head = x->head + h;
        factor[h] = a->scale;
        sums[h] = stream_sums_at(&job->t, a->call->workspace, x->n * a->hk + b.head, x->part, a->sq * a->group, x->row);
        for (int64_t r = 0; r < s.padded; r++)
            stream_put_query(&s, &w, h, r, r < x->rows ? row_at(&b, &a->call->tensor[ATTENTION_Q], r) : NULL);
    }
    const stream_part p = { keys, ks, vs, NULL, low, high };
    stream_attend(&s, &w, &p, factor, sums);
}

/* The parts [first, last) that any row of a sequence sees. */
static void rows_parts(const rows_job *job, const sequence *seq, int64_t *first, int64_t *last) {
    int64_t unused;
    visible(job->a, seq, 0, first, &unused);
    visible(job->a, seq, job->a->sq - 1, &unused, last);
    *first /= job->t.part, *last = (*last + job->t.part - 1) / job->t.part;
}

static void rows_tasks(const void *context, int64_t begin, int64_t end, int thread) {
    const rows_job *job = context;
    const attention *a = job->a;
    const stream s = rows_stream(a, job->t.heads, job->t.rows);
    for (int64_t task = begin; task < end; task++) {
        const stream_task x = stream_task_of(&job->t, a->hk, a->sq * a->group, task);
        const sequence seq = sequence_of(a, x.n);
        int64_t first, last;
        rows_parts(job, &seq, &first, &last);
        if (x.part >= first && x.part < last) rows_attend(job, &x, rows_buffer_at(job, thread));
    }
    stream_end(&s);
}

/* Row r of a problem: o and lse. */
static void rows_merge_row(const rows_job *job, int64_t problem, int64_t r, float *o) {
    const attention *a = job->a;
    const trine_tensor *lse = trine_call_given(a->call, ATTENTION_LSE);
    const sequence seq = sequence_of(a, problem / a->hk);
    int64_t first, last;
    float sum, sink = -INFINITY;
    block b;
    block_init(&b, a, seq, problem % a->hk, r, 1, 1);
    rows_parts(job, &seq, &first, &last);
    if (a->sinks && r / a->group < seq.queries)
        sink = sload(a->sinks->data, a->sinks->dtype, b.head * a->group + r % a->group);
    const float top =
        stream_merge(&job->t, stream_sums_at(&job->t, a->call->workspace, problem, first, a->sq * a->group, r),
                     last > first ? last - first : 0, sink, o, &sum);
    const bool none = sum == 0;
    if (none) memset(o, 0, (size_t)job->t.ldo * sizeof *o);
    store_scaled(o, a->d, none ? 1 : 1 / sum, row_at(&b, &a->call->tensor[ATTENTION_O], 0), a->dtype);
    if (lse) *statistic_at(&b, lse, 0) = none ? -INFINITY : top + vlog(vset(sum))[0];
}
static void rows_merge(const void *context, int64_t begin, int64_t end, int thread) {
    const rows_job *job = context;
    const int64_t rows = job->a->sq * job->a->group;
    for (int64_t i = begin; i < end; i++) rows_merge_row(job, i / rows, i % rows, rows_buffer_at(job, thread));
}

/* ---------------------------------------------------------------------------------------------------------- launch */

static const char *rows_refuse(const trine_call *call) {
    const attention a = ATTENTION_OF(call, (const trine_attention_args *)call->args, ATTENTION);
    const int64_t rows = a.sq * a.group;
    if (a.cu_q != NULL) return "the sequences' lengths are data";
    if (adds(&a) || a.drops) return "scores are added to, or weights dropped";
    if (rows > ROWS_MOST) return "there are more than 48 rows for a head of keys";
    return rows * ROWS_SHARE > a.sk ? "there are fewer than 8 keys for each row of a head" : NULL;
}

static int64_t rows_number(const attention *a, const stream_shares *t) {
    return a->b * t->parts * t->head_tasks * t->row_tasks;
}
static int rows_team(const attention *a, const stream_shares *t) {
    const int64_t tasks = rows_number(a, t), rows = a->b * a->hk * a->sq * a->group;
    return cpu_team(a->call, tasks > rows ? tasks : rows, a->b * a->hk * a->sk * a->d * 2 * (int64_t)sizeof(float));
}

static size_t rows_workspace(const trine_call *call) {
    const attention a = ATTENTION_OF(call, (const trine_attention_args *)call->args, ATTENTION);
    const stream_shares t = rows_shares(&a);
    return (size_t)(rows_sums(&a, &t) + rows_team(&a, &t) * rows_buffer(&a, &t)) * sizeof(float);
}

static trine_status rows_launch(const trine_call *call) {
    attention a = ATTENTION_OF(call, (const trine_attention_args *)call->args, ATTENTION);
    const trine_status status = attention_begin(&a);
    if (status != TRINE_OK) return status;
    const rows_job job = { &a, rows_shares(&a) };
    const int team = rows_team(&a, &job.t);
    cpu_tasks(call, team, rows_number(&a, &job.t), rows_tasks, &job);
    cpu_shares(call, team, a.b * a.hk * a.sq * a.group, rows_merge, &job);
    clear_others(&a, &call->tensor[ATTENTION_O], trine_call_given(call, ATTENTION_LSE), false);
    return TRINE_OK;
}

static void rows_edges(const trine_call *call, trine_kernel_edges *edges) {
    static const int rows[] = { 2, 4, STREAM_TILE, ROWS_MOST };
    attention_edges(edges);
    trine_kernel_edge(edges, ATTENTION_DIM_D, SIDE);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, STREAM_BLOCK);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, STREAM_SHORT);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, STREAM_LONG);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) attention_row_edge(call, edges, rows[i]);
}

#endif
