/* SPDX-License-Identifier: Apache-2.0 */
/* attention on the CPU: blocks of BQ rows against blocks of BK keys, with running maxima and sums (FlashAttention-2, algorithm 1).
 *
 * A task is a block of rows of one problem; it packs the keys and values it needs itself. When there are few rows (decoding) the keys are shared out instead, in
 * chunks of fixed length, whose partial results are merged in order: that is the kernel "split". Neither depends on the number of threads. */
#include "attention.h"

enum { Q, K, V, CU_Q, CU_K, O, LSE };
enum { BQ = MAX_ROWS, BK = 128, LDS = BK + 16, CHUNK = 1024 };

/* What a thread works on. Rows are padded to a multiple of MR, so there may be MR - 1 more than BQ of them in none: MR divides BQ. */
typedef struct buffers {
    float *q, *kt, *v, *o, *s; /* BQ x d, d x BK, BK x d, BQ x d, BQ x BK */
    float *top, *sum;          /* BQ: running maximum and sum of exponentials */
    int64_t ld;                /* of q, v and o */
} buffers;

static attention attention_of(const trine_call *call) {
    const trine_attention_args *args = call->args;
    attention a = { .call = call, .softcap = args->softcap, .causal = args->causal };
    attention_sizes(&a, call->dim, Q, CU_Q, args->scale, args->window);
    return a;
}

static size_t buffer_floats(int64_t d) {
    return (size_t)((2 * BQ + BK) * leading(cpu_round_up(d, VL)) + cpu_round_up(d, VL) * LDS + BQ * LDS + 2 * BQ);
}

static buffers buffers_at(float *at, int64_t d) {
    buffers w = { .ld = leading(cpu_round_up(d, VL)) };
    w.q = at;
    w.o = w.q + BQ * w.ld;
    w.v = w.o + BQ * w.ld;
    w.kt = w.v + BK * w.ld;
    w.s = w.kt + cpu_round_up(d, VL) * LDS;
    w.top = w.s + BQ * LDS;
    w.sum = w.top + BQ;
    return w;
}

static void pack_queries(const block *b, const buffers *w) {
    const attention *a = b->a;
    for (int64_t r = 0; r < b->padded; r++) {
        if (r < b->rows)
            pack_scaled(row_at(b, &a->call->tensor[Q], r), a->d, a->scale, w->q + r * w->ld, a->dtype);
        else
            memset(w->q + r * w->ld, 0, (size_t)a->d * sizeof *w->q);
    }
}

/* A block of keys. */
typedef struct keys {
    span sees;
    bool finite; /* no value is NaN or Inf */
} keys;

static void keys_init(const block *b, const buffers *w, int64_t start, int64_t end, keys *k) {
    const attention *a = b->a;
    const trine_tensor *tk = &a->call->tensor[K], *tv = &a->call->tensor[V];
    pack_transposed(token_at(tk, b->seq.batch, b->seq.k + start, b->head), tk->stride[1], end - start, a->d, w->kt, LDS, a->dtype);
    k->finite = pack_rows(token_at(tv, b->seq.batch, b->seq.k + start, b->head), tv->stride[1], end - start, a->d, w->v, w->ld, a->dtype);
    span_init(&k->sees, b, start, end);
}

/* s = q k^T where a row of the tile sees a key of it. */
INLINE void scores(const block *b, const buffers *w, const span *k, int step) {
    for (int j = 0; j < k->n; j += NR)
        for (int64_t r = 0; r < b->padded; r += step)
            if (k->low[r] < j + NR && k->high[r + step - 1] > j)
                tile(step, 2, b->a->d, w->q + r * w->ld, w->ld, 1, w->kt + j, LDS, w->s + r * LDS + j, LDS, SET, NULL);
}

/* Turns row r of s, between keys first and last, into exponentials relative to the new maximum. Returns their sum; *shift_out is by how much the
 * exponents of what was summed before move. NaN never is the maximum, but comes out of the exponential. */
INLINE float exponentials(float *s, int first, int last, int low, int high, float softcap, float *top, float *shift_out) {
    vf most = vset(-INFINITY), sum = vzero();
    for (int j = first; j < last; j += VL) {
        vf x = get(s + j);
        if (softcap > 0) x = softcap * vtanh(x / softcap);
        if (j < low || j + VL > high) x = vsel((viota() + j >= low) & (viota() + j < high), x, vset(-INFINITY));
        put(s + j, x);
        most = vmax(x, most);
    }
    const float before = *top, found = vhmax(most), now = found > before ? found : before;
    const float base = now == -INFINITY ? 0 : now;
    for (int j = first; j < last; j += VL) {
        const vf p = vexp(get(s + j) - base);
        put(s + j, p);
        sum += p;
    }
    *top = now;
    *shift_out = before - base;
    return vhsum(sum);
}

/* Softmax of a tile of `step` rows, and what o must be multiplied by. */
INLINE void normalize(const block *b, const buffers *w, const span *k, int64_t r, int step, float *factor) {
    const int first = k->low[r] / VL * VL, last = k->high[r + step - 1];
    float shift[16] = {0}, sum[16];
    for (int i = 0; i < step; i++) {
        float *s = w->s + (r + i) * LDS;
        sum[i] = b->a->softcap > 0 ? exponentials(s, first, last, k->low[r + i], k->high[r + i], b->a->softcap, w->top + r + i, shift + i)
                                   : exponentials(s, first, last, k->low[r + i], k->high[r + i], 0, w->top + r + i, shift + i);
    }
    for (int i = 0; i < 16; i += VL) put(factor + i, vexp(get(shift + i)));
    for (int i = 0; i < step; i++) w->sum[r + i] = w->sum[r + i] * factor[i] + sum[i];
}

/* o = factor o + p v for a tile of rows. Columns to VL are enough: all that o and v have there is zero. */
INLINE void values(const buffers *w, int64_t d, int64_t r, int step, int low, int high, int64_t c, const float *factor) {
    float *o = w->o + r * w->ld + c;
    const float *p = w->s + r * LDS + low, *v = w->v + low * w->ld + c;
    if (d - c > VL)
        tile(step, 2, high - low, p, LDS, 1, v, w->ld, o, w->ld, SCALE, factor);
    else
        tile(step, 1, high - low, p, LDS, 1, v, w->ld, o, w->ld, SCALE, factor);
}

/* One block of keys. Where a tile's rows do not all see the same keys, exponentials that are zero would meet values that the row must not see: if one of those
 * is not finite the rows go one by one. */
INLINE void step_keys(const block *b, const buffers *w, const span *k, bool finite, int step) {
    float factor[BQ + 16];
    scores(b, w, k, step);
    for (int64_t r = 0; r < b->padded; r += step)
        if (span_any(k, r, step)) normalize(b, w, k, r, step, factor + r);
    for (int64_t c = 0; c < b->a->d; c += NR)
        for (int64_t r = 0; r < b->padded; r += step) {
            if (!span_any(k, r, step)) continue;
            if (finite || span_same(k, r, step))
                values(w, b->a->d, r, step, k->low[r], k->high[r + step - 1], c, factor + r);
            else
                for (int i = 0; i < step; i++) values(w, b->a->d, r + i, 1, k->low[r + i], k->high[r + i], c, factor + r + i);
        }
}

/* The block's rows against keys from `start` to `end`: w->o, top and sum. */
static void attend(const block *b, const buffers *w, int64_t start, int64_t end) {
    keys k;
    pack_queries(b, w);
    memset(w->o, 0, (size_t)(b->padded * w->ld) * sizeof *w->o);
    for (int64_t r = 0; r < b->padded; r++) w->top[r] = -INFINITY, w->sum[r] = 0;
    if (start < b->low[0]) start = b->low[0];
    if (end > b->high[b->padded - 1]) end = b->high[b->padded - 1];
    for (int64_t j = start; j < end; j += BK) {
        keys_init(b, w, j, j + BK < end ? j + BK : end, &k);
        if (b->step == 1)
            step_keys(b, w, &k.sees, k.finite, 1);
        else
            step_keys(b, w, &k.sees, k.finite, MR);
    }
}

/* Divides by the sums and writes the block's rows of o and lse. */
static void finish(const block *b, const buffers *w) {
    const attention *a = b->a;
    const trine_tensor *lse = &a->call->tensor[LSE];
    for (int64_t r = 0; r < b->rows; r++) {
        float *o = w->o + r * w->ld;
        const bool none = w->sum[r] == 0;
        if (none) memset(o, 0, (size_t)a->d * sizeof *o);
        store_scaled(o, a->d, none ? 1 : 1 / w->sum[r], row_at(b, &a->call->tensor[O], r), a->dtype);
        if (!(a->call->present >> LSE & 1)) continue;
        *statistic_at(b, lse, r) = none ? -INFINITY : w->top[r] + vlog(vset(w->sum[r]))[0];
    }
}

/* ------------------------------------------------------------------------------------------------------------------- tasks */

/* The most blocks of rows that the sequences can have together. */
static int64_t most_blocks(const attention *a) {
    const int64_t rows = a->sq * a->group;
    return a->cu_q ? a->sequences + rows / BQ : a->sequences * ((rows + BQ - 1) / BQ);
}

/* The workspace begins with the number of blocks before each sequence. */
static size_t index_bytes(const attention *a) { return (size_t)cpu_round_up((a->sequences + 1) * (int64_t)sizeof(int64_t), 256); }

static size_t workspace(const trine_call *call) {
    const attention a = attention_of(call);
    const size_t threads = (size_t)most_threads(call, most_blocks(&a) * a.hk);
    return index_bytes(&a) + threads * (size_t)cpu_round_up((int64_t)(buffer_floats(a.d) * sizeof(float)), 256);
}

static float *thread_buffer(const attention *a, size_t offset) {
    const size_t each = (size_t)cpu_round_up((int64_t)(buffer_floats(a->d) * sizeof(float)), 256);
    return (float *)(void *)((char *)a->call->workspace + offset + each * (size_t)omp_get_thread_num());
}

/* Blocks are numbered by sequence, and start from the last: with a causal mask the last rows of a sequence have the most keys. */
static void run_task(const attention *a, const int64_t *before, int64_t task, const buffers *w) {
    int64_t s = 0, above = a->sequences;
    const int64_t number = task / a->hk;
    while (above - s > 1) {
        const int64_t middle = s + (above - s) / 2;
        if (before[middle] <= number) s = middle;
        else above = middle;
    }
    const sequence seq = sequence_of(a, s);
    const int64_t rows = seq.queries * a->group, first = (number - before[s]) * BQ;
    block b;
    block_init(&b, a, seq, task % a->hk, first, rows - first < BQ ? rows - first : BQ, rows - first <= 2 ? 1 : MR);
    attend(&b, w, 0, seq.keys);
    finish(&b, w);
}

static trine_status launch(const trine_call *call) {
    const attention a = attention_of(call);
    const trine_status status = check_sequences(&a);
    if (status != TRINE_OK) return status;
    int64_t *before = call->workspace;
    before[0] = 0;
    for (int64_t s = 0; s < a.sequences; s++) before[s + 1] = before[s] + (sequence_of(&a, s).queries * a.group + BQ - 1) / BQ;
    const int64_t tasks = before[a.sequences] * a.hk;
    const int team = cpu_team(call, tasks, a.b * a.sq * a.hk * a.group * (a.sk + 1) * a.d);
#pragma omp parallel num_threads(team) if (team > 1)
    {
        const buffers w = buffers_at(thread_buffer(&a, index_bytes(&a)), a.d);
#pragma omp for schedule(dynamic)
        for (int64_t task = tasks - 1; task >= 0; task--) run_task(&a, before, task, &w);
    }
    return TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------------------- split */

static const char *split_refuse(const trine_call *call) {
    const attention a = attention_of(call);
    if (a.cu_q != NULL) return "the sequences' lengths are data";
    if (a.sq * a.group > BQ / 2) return "there are more than 48 rows for a head of keys";
    return a.sk <= CHUNK ? "there are no more than 1024 keys" : NULL;
}

static int64_t chunks_of(const attention *a) { return (a->sk + CHUNK - 1) / CHUNK; }

/* A partial result: rows of o, then the maxima and the sums. */
static int64_t partial_floats(const attention *a) { return cpu_round_up(a->sq * a->group * (a->d + 2), 64); }

static size_t partial_bytes(const attention *a) { return (size_t)(a->b * a->hk * chunks_of(a) * partial_floats(a)) * sizeof(float); }

static size_t split_workspace(const trine_call *call) {
    const attention a = attention_of(call);
    const size_t threads = (size_t)most_threads(call, a.b * a.hk * chunks_of(&a));
    return partial_bytes(&a) + threads * (size_t)cpu_round_up((int64_t)(buffer_floats(a.d) * sizeof(float)), 256);
}

static void split_attend(const attention *a, int64_t task, const buffers *w) {
    const int64_t chunks = chunks_of(a), chunk = task % chunks, problem = task / chunks, rows = a->sq * a->group;
    float *to = (float *)a->call->workspace + task * partial_floats(a);
    block b;
    block_init(&b, a, sequence_of(a, problem / a->hk), problem % a->hk, 0, rows, rows <= 2 ? 1 : MR);
    attend(&b, w, chunk * CHUNK, (chunk + 1) * CHUNK < a->sk ? (chunk + 1) * CHUNK : a->sk);
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * a->d, w->o + r * w->ld, (size_t)a->d * sizeof *to);
    memcpy(to + rows * a->d, w->top, (size_t)rows * sizeof *to);
    memcpy(to + rows * (a->d + 1), w->sum, (size_t)rows * sizeof *to);
}

/* Merges the chunks of a problem in order. */
static void split_merge(const attention *a, int64_t problem, const buffers *w) {
    const int64_t chunks = chunks_of(a), rows = a->sq * a->group, size = partial_floats(a);
    const float *from = (const float *)a->call->workspace + problem * chunks * size;
    block b;
    block_init(&b, a, sequence_of(a, problem / a->hk), problem % a->hk, 0, rows, rows <= 2 ? 1 : MR);
    for (int64_t r = 0; r < rows; r++) {
        const float *top = from + rows * a->d + r, *sum = top + rows;
        float most = -INFINITY, *o = w->o + r * w->ld;
        for (int64_t c = 0; c < chunks; c++) most = top[c * size] > most ? top[c * size] : most;
        w->top[r] = most;
        w->sum[r] = 0;
        memset(o, 0, (size_t)w->ld * sizeof *o);
        for (int64_t c = 0; c < chunks; c++) {
            const float factor = vexp(vset(top[c * size] - (most == -INFINITY ? 0 : most)))[0];
            w->sum[r] += factor * sum[c * size];
            for (int64_t k = 0; k < a->d; k++) o[k] += factor * from[c * size + r * a->d + k];
        }
    }
    finish(&b, w);
}

static trine_status split_launch(const trine_call *call) {
    const attention a = attention_of(call);
    const int64_t problems = a.b * a.hk, tasks = problems * chunks_of(&a);
    const int team = cpu_team(call, tasks, problems * a.group * a.sq * a.sk * a.d);
#pragma omp parallel num_threads(team) if (team > 1)
    {
        const buffers w = buffers_at(thread_buffer(&a, partial_bytes(&a)), a.d);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) split_attend(&a, task, &w);
#pragma omp for schedule(dynamic)
        for (int64_t problem = 0; problem < problems; problem++) split_merge(&a, problem, &w);
    }
    return TRINE_OK;
}

CPU_KERNELS(attention) = { { CPU_VARIANT("split"), split_refuse, split_workspace, split_launch, NULL },
                           { CPU_NAME, NULL, workspace, launch, NULL },
                           { 0 } };
