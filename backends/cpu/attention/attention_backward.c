/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on the CPU, in one pass: each block of keys goes over the rows that see it (FlashAttention-2,
 * algorithm 2).
 *
 * A task is one problem, or where there are few of these one of `parts` that take its blocks of keys in turn. It owns
 * the gradients of its keys and values, and sums that of the rows into a part of the workspace; the parts are merged in
 * order. How many there are follows from the shapes alone. */
#include "attention_dots_gradient.h"

/* BQ, BK: multiples of MR, BK also of NR; PART: keys of a part at least */
enum { BQ = 48, BK = 96, LDS = BK + 16, TASKS = 32, PART = 4 * BK };

/* What a thread works on. */
typedef struct buffers {
    float *q, *dout;    /* BQ x d; q is scaled */
    float *kt, *vt, *k; /* d x BK twice, BK x d */
    float *dk, *dv;     /* BK x d */
    float *p, *ds;      /* BQ x BK: scores, then p; dp, then ds */
    float *lse, *delta; /* BQ */
    int64_t ld;         /* of q, dout, k, dk and dv */
} buffers;

typedef struct plan {
    attention a;
    bool dots;                   /* of bf16, by attention_dots_gradient.h */
    int64_t rows, keys;          /* of a block */
    int64_t parts, width, spare; /* width: columns of the sums for dq; spare: rows behind them */
    /* the workspace: delta, of shape b h sq; the parts; the threads' buffers */
    size_t delta_bytes, part_floats, buffer_bytes;
} plan;

static int64_t buffer_floats(int64_t d) {
    const int64_t rows = cpu_round_up(d, VL);
    return (2 * BQ + 3 * BK) * leading(rows) + 2 * rows * LDS + 2 * BQ * LDS + 2 * BQ;
}

static buffers buffers_at(float *at, int64_t d) {
    const int64_t rows = cpu_round_up(d, VL), ld = leading(rows);
    buffers w = { .ld = ld, .q = at };
    w.dout = w.q + BQ * ld;
    w.kt = w.dout + BQ * ld;
    w.vt = w.kt + rows * LDS;
    w.k = w.vt + rows * LDS;
    w.dk = w.k + BK * ld;
    w.dv = w.dk + BK * ld;
    w.p = w.dv + BK * ld;
    w.ds = w.p + BQ * LDS;
    w.lse = w.ds + BQ * LDS;
    w.delta = w.lse + BQ;
    return w;
}

static plan plan_of(const trine_call *call) {
    const trine_attention_backward_args *args = call->args;
    plan p = { .a = ATTENTION_OF(call, args, ATTENTION_BACKWARD) };
    const attention *a = &p.a;
    p.dots = dots_pay() && a->dtype == TRINE_BF16;
    p.rows = p.dots ? DOTS_ROWS : BQ, p.keys = p.dots ? DOTS_KEYS : BK, p.spare = p.dots ? SIDE : MR;
    const int64_t problems = a->sequences * a->hk, part = p.dots ? DOTS_KEYS : PART, most = (a->sk + part - 1) / part;
    p.parts = problems < 1 || problems >= TASKS ? 1 : (TASKS + problems - 1) / problems;
    if (p.parts > most) p.parts = most > 0 ? most : 1;
    p.width = cpu_round_up(a->d, p.dots ? SIDE : VL);
    p.delta_bytes = (size_t)cpu_round_up(a->b * a->hk * a->group * a->sq * (int64_t)sizeof(float), 256);
    p.part_floats = (size_t)(a->hk * (a->b * a->sq * a->group + a->sequences * p.spare) * p.width);
    p.buffer_bytes =
        (size_t)cpu_round_up((p.dots ? dots_floats(a->d) : buffer_floats(a->d)) * (int64_t)sizeof(float), 256);
    return p;
}

static size_t parts_bytes(const plan *p) {
    return (size_t)cpu_round_up((int64_t)((size_t)p->parts * p->part_floats * sizeof(float)), 256);
}

static size_t workspace(const trine_call *call) {
    const plan p = plan_of(call);
    return p.delta_bytes + parts_bytes(&p) +
           (size_t)most_threads(call, p.a.sequences * p.a.hk * p.parts) * p.buffer_bytes;
}

/* Row 0 of a problem's sums for dq in one part. Each problem has rows to spare, for the padding of its last tile. */
static float *sums_at(const plan *p, int64_t part, int64_t s, const sequence *seq, int64_t head) {
    const attention *a = &p->a;
    const int64_t before = a->hk * ((seq->batch * a->sq + seq->q) * a->group + s * p->spare),
                  rows = seq->queries * a->group + p->spare;
    return (float *)(void *)((char *)a->call->workspace + p->delta_bytes) + (size_t)part * p->part_floats +
           (before + head * rows) * p->width;
}

static float *delta_at(const plan *p, const block *b, int64_t r) {
    const attention *a = &p->a;
    const int64_t row = b->first + r;
    return (float *)a->call->workspace + ((b->seq.batch * a->hk + b->head) * a->group + row % a->group) * a->sq +
           b->seq.q + row / a->group;
}

/* ------------------------------------------------------------------------------------------------------------ delta */

INLINE void dot_row(const void *x, const void *y, int64_t n, float *sum_out, trine_dtype T) {
    vf sum = vzero();
    for (int64_t c = 0; c < n; c += VL) sum = vfma(load_part(x, T, c, n - c), load_part(y, T, c, n - c), sum);
    *sum_out = vhsum(sum);
}

/* delta = dout.o of row `row` of b sq h. */
static void delta_row(const plan *p, int64_t row) {
    const attention *a = &p->a;
    const int64_t h = a->hk * a->group, head = row % h, i = row / h % a->sq, batch = row / h / a->sq;
    float *to = (float *)a->call->workspace + (batch * h + head) * a->sq + i;
    FOR_TYPE(a->dtype, dot_row, token_at(&a->call->tensor[ATTENTION_BACKWARD_DOUT], batch, i, head),
             token_at(&a->call->tensor[ATTENTION_BACKWARD_O], batch, i, head), a->d, to);
}

/* -------------------------------------------------------------------------------------------------------- one block */

/* Packs the rows of q and dout. Rows that give nothing, by lse = -Inf or as padding, are zero. All finite? */
static bool pack_block(const plan *p, const block *b, const buffers *w) {
    const attention *a = &p->a;
    const trine_tensor *t = a->call->tensor;
    bool finite = true;
    for (int64_t r = 0; r < b->padded; r++) {
        float *q = w->q + r * w->ld, *dout = w->dout + r * w->ld;
        w->lse[r] = r < b->rows ? *statistic_at(b, &t[ATTENTION_BACKWARD_LSE], r) : -INFINITY;
        w->delta[r] = r < b->rows ? *delta_at(p, b, r) : 0;
        if (w->lse[r] == -INFINITY) {
            memset(q, 0, (size_t)w->ld * sizeof *q);
            memset(dout, 0, (size_t)w->ld * sizeof *dout);
        } else {
            finite &= pack_scaled(row_at(b, &t[ATTENTION_BACKWARD_Q], r), a->d, a->scale, q, a->dtype);
            finite &= pack_scaled(row_at(b, &t[ATTENTION_BACKWARD_DOUT], r), a->d, 1, dout, a->dtype);
        }
    }
    return finite;
}

/* Scores, dp, and from these p and ds, a tile of rows at a time. */
static void weigh_block(const block *b, const buffers *w, const span *k, int64_t start) {
    const attention *a = b->a;
    for (int j = 0; j < k->n; j += NR)
        for (int64_t r = 0; r < b->padded; r += MR) {
            if (k->low[r] >= j + NR || k->high[r + MR - 1] <= j) continue;
            tile(MR, 2, a->d, w->q + r * w->ld, w->ld, 1, w->kt + j, LDS, w->p + r * LDS + j, LDS, SET, NULL);
            tile(MR, 2, a->d, w->dout + r * w->ld, w->ld, 1, w->vt + j, LDS, w->ds + r * LDS + j, LDS, SET, NULL);
        }
    for (int64_t r = 0; r < b->padded; r++) {
        const weigh_row row = { w->p + r * LDS, w->ds + r * LDS, w->lse[r], w->delta[r] };
        if (r < b->rows && (adds(a) || a->drops))
            weigh_with_options(b, &row, r, k, start);
        else if (a->softcap > 0)
            weigh(&row, k->n, k->low[r], k->high[r], a->softcap, NULL, NULL, 1, NULL);
        else
            weigh(&row, k->n, k->low[r], k->high[r], 0, NULL, NULL, 1, NULL);
    }
}

/* to (mr x d) += weights (mr x n) from (n x d). */
INLINE void product(int mr, int64_t d, int64_t n, const float *weights, int64_t wr, int64_t wk, const float *from,
                    int64_t ld, float *to, int64_t ldc) {
    int64_t c = 0;
    for (; d - c > VL; c += NR) tile(mr, 2, n, weights, wr, wk, from + c, ld, to + c, ldc, ADD, NULL);
    if (c < d) tile(mr, 1, n, weights, wr, wk, from + c, ld, to + c, ldc, ADD, NULL);
}

/* dq += ds k. Where ds is zero by a mask, or since the row gives nothing, it must not meet a key that is not finite. */
static void add_queries(const block *b, const buffers *w, const span *k, bool finite, float *dq, int64_t width) {
    const int64_t d = b->a->d;
    for (int64_t r = 0; r < b->padded; r += MR) {
        if (!span_any(k, r, MR)) continue;
        if (finite) {
            const int low = k->low[r], high = k->high[r + MR - 1];
            product(MR, d, high - low, w->ds + r * LDS + low, LDS, 1, w->k + low * w->ld, w->ld, dq + r * width, width);
            continue;
        }
        for (int64_t i = r; i < r + MR; i++)
            if (w->lse[i] != -INFINITY)
                product(1, d, k->high[i] - k->low[i], w->ds + i * LDS + k->low[i], LDS, 1, w->k + k->low[i] * w->ld,
                        w->ld, dq + i * width, width);
    }
}

/* dk += ds^T q, dv += p^T dout, for keys j .. j+mr-1, over the rows that see one of them. */
INLINE void add_tile(const block *b, const buffers *w, const span *k, int mr, int64_t j) {
    int64_t first = 0, last = b->padded;
    while (first < last && k->high[first] <= j) first++;
    while (last > first && k->low[last - 1] >= j + mr) last--;
    const int64_t at = first * LDS + j, row = first * w->ld;
    product(mr, b->a->d, last - first, w->ds + at, 1, LDS, w->q + row, w->ld, w->dk + j * w->ld, w->ld);
    product(mr, b->a->d, last - first, w->p + at, 1, LDS, w->dout + row, w->ld, w->dv + j * w->ld, w->ld);
}

/* Likewise a zero must not meet a row that is not finite. */
static void add_keys(const block *b, const buffers *w, const span *k, bool finite) {
    if (finite)
        for (int64_t j = 0; j < k->n; j += MR) add_tile(b, w, k, MR, j);
    else
        for (int64_t j = 0; j < k->n; j++) add_tile(b, w, k, 1, j);
}

/* ------------------------------------------------------------------------------------------------------------ tasks */

static void store_keys(const plan *p, const sequence *seq, int64_t head, int64_t start, int n, const buffers *w) {
    const attention *a = &p->a;
    for (int64_t j = 0; j < n; j++) {
        const int64_t token = seq->k + start + j;
        store_scaled(w->dk + j * w->ld, a->d, 1,
                     token_at(&a->call->tensor[ATTENTION_BACKWARD_DK], seq->batch, token, head), a->dtype);
        store_scaled(w->dv + j * w->ld, a->d, a->drops ? a->dropout.scale : 1,
                     token_at(&a->call->tensor[ATTENTION_BACKWARD_DV], seq->batch, token, head), a->dtype);
    }
}

/* One block of keys: its gradients, and its part of the rows'. */
static void run_keys(const plan *p, const sequence *seq, int64_t head, int64_t start, float *sums, const buffers *w) {
    const attention *a = &p->a;
    const int64_t end = start + BK < seq->keys ? start + BK : seq->keys, rows = seq->queries * a->group;
    const trine_tensor *tk = &a->call->tensor[ATTENTION_BACKWARD_K], *tv = &a->call->tensor[ATTENTION_BACKWARD_V];
    const char *k = token_at(tk, seq->batch, seq->k + start, head), *v = token_at(tv, seq->batch, seq->k + start, head);
    pack_transposed(k, tk->stride[1], end - start, a->d, w->kt, LDS, a->dtype);
    pack_transposed(v, tv->stride[1], end - start, a->d, w->vt, LDS, a->dtype);
    const bool finite = pack_rows(k, tk->stride[1], end - start, a->d, w->k, w->ld, a->dtype);
    memset(w->dk, 0, (size_t)(BK * w->ld) * sizeof *w->dk);
    memset(w->dv, 0, (size_t)(BK * w->ld) * sizeof *w->dv);
    for (int64_t first = 0; first < rows; first += BQ) {
        block b;
        span sees;
        block_init(&b, a, *seq, head, first, rows - first < BQ ? rows - first : BQ, MR);
        if (b.high[b.padded - 1] <= start || b.low[0] >= end) continue;
        span_init(&sees, &b, start, end);
        const bool finite_rows = pack_block(p, &b, w);
        weigh_block(&b, w, &sees, start);
        add_keys(&b, w, &sees, finite_rows);
        add_queries(&b, w, &sees, finite, sums + first * p->width, p->width);
    }
    store_keys(p, seq, head, start, (int)(end - start), w);
}

/* The same by dots. */
static void run_dots(const plan *p, const sequence *seq, int64_t head, int64_t start, float *sums,
                     const dots_buffers *w) {
    const attention *a = &p->a;
    const int64_t end = start + p->keys < seq->keys ? start + p->keys : seq->keys, rows = seq->queries * a->group;
    const dots_keys keys = dots_keys_begin(a, seq, head, start, end - start, w);
    for (int64_t first = 0; first < rows; first += p->rows) {
        block b;
        span sees;
        block_init(&b, a, *seq, head, first, rows - first < p->rows ? rows - first : p->rows, SIDE);
        if (b.high[b.padded - 1] <= start || b.low[0] >= end) continue;
        span_init(&sees, &b, start, end);
        for (int64_t r = 0; r < b.padded; r++) {
            w->lse[r] = r < b.rows ? *statistic_at(&b, &a->call->tensor[ATTENTION_BACKWARD_LSE], r) : -INFINITY;
            w->delta[r] = r < b.rows ? *delta_at(p, &b, r) : 0;
        }
        dots_block(&b, w, &keys, &sees, sums + first * p->width, p->width);
    }
    dots_keys_end(a, seq, head, start, end - start, w);
}

static void run_task(const plan *p, int64_t task, const buffers *w) {
    const attention *a = &p->a;
    const int64_t part = task % p->parts, head = task / p->parts % a->hk, s = task / p->parts / a->hk;
    const sequence seq = sequence_of(a, s);
    float *sums = sums_at(p, part, s, &seq, head);
    memset(sums, 0, (size_t)((seq.queries * a->group + p->spare) * p->width) * sizeof *sums);
    const dots_buffers x = dots_buffers_at(w->q, a->d);
    for (int64_t start = part * p->keys; start < seq.keys; start += p->parts * p->keys) {
        if (p->dots)
            run_dots(p, &seq, head, start, sums, &x);
        else
            run_keys(p, &seq, head, start, sums, w);
    }
}

/* Rows of dq of one problem, from the sums of all parts. */
static void merge(const plan *p, int64_t problem, const buffers *w) {
    const attention *a = &p->a;
    const int64_t head = problem % a->hk, s = problem / a->hk;
    const sequence seq = sequence_of(a, s);
    const float *sums = sums_at(p, 0, s, &seq, head);
    for (int64_t row = 0; row < seq.queries * a->group; row++) {
        for (int64_t c = 0; c < p->width; c += VL) {
            vf sum = get(sums + row * p->width + c);
            for (int64_t part = 1; part < p->parts; part++)
                sum += get(sums + (size_t)part * p->part_floats + row * p->width + c);
            put(w->q + c, sum);
        }
        store_scaled(w->q, a->d, a->scale,
                     token_at(&a->call->tensor[ATTENTION_BACKWARD_DQ], seq.batch, seq.q + row / a->group,
                              head * a->group + row % a->group),
                     a->dtype);
    }
}

typedef struct gradient_job {
    const plan *p;
    char *buffers; /* of each thread */
} gradient_job;

static buffers buffers_of(const gradient_job *job, int thread) {
    return buffers_at((float *)(void *)(job->buffers + (size_t)thread * job->p->buffer_bytes), job->p->a.d);
}

/* Rows of b h sq of dbias become zero. */
static void clear_bias(const void *context, int64_t first, int64_t last, int thread) {
    const attention *a = context;
    const trine_tensor *t = &a->call->tensor[ATTENTION_BACKWARD_DBIAS];
    const size_t size = trine_dtype_size(t->dtype);
    const int64_t h = a->hk * a->group;
    (void)thread;
    for (int64_t row = first; row < last; row++)
        memset((char *)t->data +
                   (row / a->sq / h * t->stride[0] + row / a->sq % h * t->stride[1] + row % a->sq * t->stride[2]) *
                       (int64_t)size,
               0, (size_t)a->sk * size);
}

/* dsinks of heads: what the queries say of their sinks, in order. */
static void sum_sinks(const void *context, int64_t first, int64_t last, int thread) {
    const attention *a = context;
    const trine_tensor *t = a->call->tensor, *lse = &t[ATTENTION_BACKWARD_LSE], *to = &t[ATTENTION_BACKWARD_DSINKS];
    const float *delta = a->call->workspace;
    const int64_t h = a->hk * a->group;
    (void)thread;
    for (int64_t head = first; head < last; head++) {
        const float sink = sload((const char *)a->sinks->data, a->sinks->dtype, head);
        double sum = 0;
        for (int64_t s = 0; s < a->sequences; s++) {
            const sequence seq = sequence_of(a, s);
            for (int64_t i = seq.q; i < seq.q + seq.queries; i++) {
                const float l =
                    ((const float *)lse->data)[seq.batch * lse->stride[0] + head * lse->stride[1] + i * lse->stride[2]];
                if (l != -INFINITY)
                    sum -= vexp(vmin(vzero(), vset(sink - l)))[0] * (double)delta[(seq.batch * h + head) * a->sq + i];
            }
        }
        sstore(to->data, to->dtype, head, (float)sum);
    }
}

/* The steps. */
static void delta_rows(const void *context, int64_t first, int64_t last, int thread) {
    const gradient_job *job = context;
    (void)thread;
    for (int64_t row = first; row < last; row++) delta_row(job->p, row);
}
static void run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const gradient_job *job = context;
    const buffers w = buffers_of(job, thread);
    if (job->p->dots) tile_begin(UNIT_BF16);
    for (int64_t task = first; task < last; task++) run_task(job->p, task, &w);
    if (job->p->dots) tile_end(UNIT_BF16);
}
static void merge_problems(const void *context, int64_t first, int64_t last, int thread) {
    const gradient_job *job = context;
    const buffers w = buffers_of(job, thread);
    for (int64_t problem = first; problem < last; problem++) merge(job->p, problem, &w);
}

static trine_status launch(const trine_call *call) {
    plan p = plan_of(call);
    const attention *a = &p.a;
    const trine_status status = attention_begin(&p.a);
    if (status != TRINE_OK) return status;
    const int64_t problems = a->sequences * a->hk, tasks = problems * p.parts, rows = a->b * a->sq * a->hk * a->group;
    const int team = cpu_team(call, tasks, rows * (a->sk + 1) * a->d);
    const gradient_job job = { &p, (char *)call->workspace + p.delta_bytes + parts_bytes(&p) };
    cpu_shares(call, cpu_team(call, rows, rows * a->d * 2 * (int64_t)vsize(a->dtype)), rows, delta_rows, &job);
    if (call->present >> ATTENTION_BACKWARD_DBIAS & 1)
        cpu_shares(call, cpu_team(call, rows, rows * a->sk * (int64_t)sizeof(float)), rows, clear_bias, a);
    cpu_tasks(call, team, tasks, run_tasks, &job);
    cpu_shares(call, problems < team ? (int)problems : team, problems, merge_problems, &job);
    clear_others(a, &call->tensor[ATTENTION_BACKWARD_DQ], NULL, false);
    clear_others(a, &call->tensor[ATTENTION_BACKWARD_DK], NULL, true);
    clear_others(a, &call->tensor[ATTENTION_BACKWARD_DV], NULL, true);
    if (call->present >> ATTENTION_BACKWARD_DSINKS & 1)
        cpu_shares(call, cpu_team(call, a->hk * a->group, rows * 8), a->hk * a->group, sum_sinks, a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const plan p = plan_of(call);
    attention_edges(edges);
    trine_kernel_edge(edges, ATTENTION_DIM_D, SIDE);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, p.keys);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, p.dots ? 2 * p.keys : PART);
    trine_kernel_edge(edges, ATTENTION_DIM_B, TASKS);
    attention_row_edge(call, edges, p.spare);
    attention_row_edge(call, edges, p.rows);
}

CPU_KERNELS(attention_backward) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
