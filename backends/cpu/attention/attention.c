/* SPDX-License-Identifier: Apache-2.0 */
/* attention on the CPU: blocks of rows against blocks of BK keys, with running maxima and sums (FlashAttention-2,
 * algorithm 1).
 *
 * A task is a block of rows of one problem; it packs the keys and values it needs itself. When there are few rows
 * (decoding) the keys are shared out instead, in chunks of fixed length, whose partial results are merged in order:
 * that is the kernel "split". Neither depends on the number of threads. */
#include "attention_dots_rows.h"
#include "attention_same.h"
#include "attention_stream_rows.h"

enum { BK = 128, LDS = BK + 16, CHUNK = 1024 };
enum { GROUP = 24 }; /* rows whose scores are at hand at a time, 14 KB of the first-level cache; a multiple of MR */
enum { SINGLE = 2, FEW = 8 }; /* up to so many rows, tiles have one; keys are not worth transposing */

/* What a thread works on. */
typedef struct buffers {
    float *q, *kt, *v, *o, *s; /* rows x d, d x BK, BK x d, rows x d, GROUP x BK */
    /* rows running maxima; rows x VL sums of exponentials, by lanes, and then as many whole ones */
    float *top, *sum;
    int64_t ld;         /* of q, v and o */
    int64_t rows;       /* that there is memory for */
    const char *packed; /* NULL, or the sequence's blocks of keys */
} buffers;

static attention attention_of(const trine_call *call) {
    const trine_attention_args *args = call->args;
    return ATTENTION_OF(call, args, ATTENTION);
}

static bool by_dots(const attention *a) { return dots_pay() && a->dtype == TRINE_BF16; }

/* Rows of a block: packing keys and values is shared by many, but not so that too few blocks are left to share out. */
enum { ENOUGH = 4 * MAX_ROWS, MANY = 32 * MAX_ROWS };
static int64_t block_rows(const attention *a) {
    const int64_t rows = a->b * a->sq * a->hk * a->group;
    const int64_t few = by_dots(a) ? cpu_round_up(MAX_ROWS / 4, SIDE) : MAX_ROWS / 4;
    return rows >= MANY ? MAX_ROWS : rows >= ENOUGH ? MAX_ROWS / 2 : few;
}

/* Bytes of a thread's memory: of floats, which few rows are in any case, or by dots. */
static size_t buffer_bytes(const attention *a) {
    const int64_t rows = block_rows(a), d = cpu_round_up(a->d, VL);
    int64_t floats = (2 * rows + BK) * leading(d) + d * LDS + GROUP * LDS + rows + rows * VL;
    if (by_dots(a) && dots_floats(rows, a->d) > floats) floats = dots_floats(rows, a->d);
    return (size_t)cpu_round_up(floats * (int64_t)sizeof(float), 256);
}

/* Those of a thread, from `offset` on in the workspace. */
static buffers buffers_of(const attention *a, size_t offset, int thread) {
    const int64_t rows = block_rows(a), d = cpu_round_up(a->d, VL);
    buffers w = { .ld = leading(d), .rows = rows };
    w.q = (float *)(void *)((char *)a->call->workspace + offset + buffer_bytes(a) * (size_t)thread);
    w.o = w.q + rows * w.ld;
    w.v = w.o + rows * w.ld;
    w.kt = w.v + BK * w.ld;
    w.s = w.kt + d * LDS;
    w.sum = w.s + GROUP * LDS;
    w.top = w.sum + rows * VL;
    return w;
}

/* A block of so many rows: its tiles. */
static int64_t step_of(const attention *a, int64_t rows) {
    return by_dots(a) && rows > FEW ? SIDE : rows <= SINGLE ? 1 : MR;
}

static void pack_queries(const block *b, const buffers *w) {
    const attention *a = b->a;
    for (int64_t r = 0; r < b->padded; r++) {
        if (r < b->rows)
            pack_scaled(row_at(b, &a->call->tensor[ATTENTION_Q], r), a->d, a->scale, w->q + r * w->ld, a->dtype);
        else
            memset(w->q + r * w->ld, 0, (size_t)a->d * sizeof *w->q);
    }
}

/* A block of keys. */
typedef struct keys {
    span sees;
    int64_t start; /* of the sequence's */
    const char *k; /* the first key */
    bool finite;   /* no value is NaN or Inf */
} keys;

static void keys_init(const block *b, const buffers *w, int64_t start, int64_t end, keys *k) {
    const attention *a = b->a;
    const trine_tensor *tk = &a->call->tensor[ATTENTION_K], *tv = &a->call->tensor[ATTENTION_V];
    k->start = start;
    k->k = token_at(tk, b->seq.batch, b->seq.k + start, b->head);
    if (b->rows > FEW) pack_transposed(k->k, tk->stride[1], end - start, a->d, w->kt, LDS, a->dtype);
    k->finite = pack_rows(token_at(tv, b->seq.batch, b->seq.k + start, b->head), tv->stride[1], end - start, a->d, w->v,
                          w->ld, a->dtype);
    span_init(&k->sees, b, start, end);
}

/* The scores of a few rows with all keys of a block, VL keys at a time: one accumulator for each, transposed at the
 * end. */
static void few_scores(const block *b, const buffers *w, const keys *k) {
    const attention *a = b->a;
    const int64_t step = a->call->tensor[ATTENTION_K].stride[1], size = (int64_t)vsize(a->dtype);
    for (int j = 0; j < k->sees.n; j += VL) {
        const int rows = k->sees.n - j < VL ? k->sees.n - j : VL;
        const char *from = k->k + j * step * size;
        for (int64_t i = VL; j + 2 * VL <= k->sees.n && i < 2 * VL; i++)
            for (int64_t line = 0; line < a->d * size; line += 64) __builtin_prefetch(from + i * step * size + line);
        pack_rows(from, step, rows, a->d, w->kt, w->ld, a->dtype);
        if (rows < VL) memset(w->kt + rows * w->ld, 0, (size_t)((VL - rows) * w->ld) * sizeof *w->kt);
        for (int64_t r = 0; r < b->rows; r++) {
            vf sum[VL] = { 0 };
            for (int64_t c = 0; c < a->d; c += VL) {
                const vf q = get(w->q + r * w->ld + c);
#pragma GCC unroll 16
                for (int i = 0; i < VL; i++) sum[i] = vfma(q, get(w->kt + i * w->ld + c), sum[i]);
            }
            transpose(sum);
#pragma GCC unroll 16
            for (int i = 1; i < VL; i++) sum[0] += sum[i];
            put(w->s + r * LDS + j, sum[0]);
        }
    }
    for (int64_t r = b->rows; r < b->padded; r++) memset(w->s + r * LDS, 0, LDS * sizeof *w->s);
}

/* Rows first .. last-1 of a block, whose scores are the rows of s. */
typedef struct group {
    int64_t first, last;
} group;

INLINE float *scores_at(const buffers *w, const group *g, int64_t r) { return w->s + (r - g->first) * LDS; }

/* s = q k^T where a row of the tile sees a key of it. */
INLINE void scores(const block *b, const buffers *w, const span *k, const group *g, int step) {
    for (int j = 0; j < k->n; j += NR)
        for (int64_t r = g->first; r < g->last; r += step)
            if (k->low[r] < j + NR && k->high[r + step - 1] > j)
                tile(step, 2, b->a->d, w->q + r * w->ld, w->ld, 1, w->kt + j, LDS, scores_at(w, g, r) + j, LDS, SET,
                     NULL);
}

/* The keys of columns j .. j+VL-1 that are among low .. high-1. */
INLINE vf hide(vf x, int j, int low, int high) {
    return j < low || j + VL > high ? vsel((viota() + j >= low) & (viota() + j < high), x, vset(-INFINITY)) : x;
}

/* The largest score of a row, by lanes, after softcap and mask. NaN never is the largest, but comes out of the
 * exponential. */
INLINE vf largest(float *s, int first, int last, int low, int high, float softcap) {
    vf most = vset(-INFINITY);
    for (int j = first; j < last; j += VL) {
        vf x = get(s + j);
        if (softcap > 0) x = softcap * vtanh(x / softcap);
        if (softcap > 0 || j < low || j + VL > high) put(s + j, x = hide(x, j, low, high));
        most = vmax(x, most);
    }
    return most;
}

/* n vectors of scores become exponentials; returns `sum` and all of them. */
INLINE vf exponentials(float *s, int n, float base, vf sum) {
    vf x[4];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) x[i] = get(s + i * VL) - base;
    exp_negative(x, n);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) put(s + i * VL, x[i]);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* Softmax of at most VL rows of a tile: their scores become exponentials relative to the new maxima, and factor[] what
 * earlier sums are to be multiplied by. */
INLINE void normalize_rows(const buffers *w, const span *k, float *s, int64_t r, int rows, int first, int last,
                           float softcap, float *factor) {
    vf most[VL];
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++)
        most[i] =
            i < rows ? largest(s + i * LDS, first, last, k->low[r + i], k->high[r + i], softcap) : vset(-INFINITY);
    transpose(most);
    const vf before = rows == VL ? get(w->top + r) : vloadn(w->top, TRINE_F32, r, rows, 0);
    vf now = before;
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) now = vmax(most[i], now);
    const vf base = vsel(now == vset(-INFINITY), vzero(), now);
    put(factor, vexp(before - base));
    vstoren(w->top, TRINE_F32, r, rows, now);
    for (int i = 0; i < rows; i++) {
        float *to = w->sum + (r + i) * VL;
        vf sum = get(to) * factor[i];
        int j = first;
        for (; j + 4 * VL <= last; j += 4 * VL) sum = exponentials(s + i * LDS + j, 4, base[i], sum);
        for (; j < last; j += VL) sum = exponentials(s + i * LDS + j, 1, base[i], sum);
        put(to, sum);
    }
}

/* The scores of row r, after softcap, and what is added to them. */
static void add_to_scores(const block *b, float *s, int64_t r, int64_t key, int first, int last) {
    const addend t = addend_of(b, r, key);
    const float softcap = b->a->softcap;
    for (int j = first; j < last; j += VL) {
        const vf x = get(s + j);
        put(s + j, addend_add(&t, j, softcap > 0 ? softcap * vtanh(x / softcap) : x));
    }
}

static void drop_weights(const block *b, float *s, int64_t r, int64_t key, int n) {
    int32_t buffer[DROPOUT_BUFFER];
    const int32_t *keep = kept_keys(b, r, key, n, buffer);
    for (int j = 0; j < n; j += VL) put(s + j, (vf)((vi)get(s + j) & *(const vi_any *)(keep + j)));
}

INLINE void normalize(const block *b, const buffers *w, const keys *keys, float *s, int64_t r, int step,
                      float *factor) {
    const span *k = &keys->sees;
    const int first = k->low[r] / VL * VL, last = k->high[r + step - 1];
    if (adds(b->a))
        for (int i = 0; i < step && r + i < b->rows; i++)
            add_to_scores(b, s + i * LDS, r + i, keys->start, first, last);
    for (int i = 0; i < step; i += VL) {
        const int rows = step - i < VL ? step - i : VL;
        if (b->a->softcap > 0 && !adds(b->a))
            normalize_rows(w, k, s + i * LDS, r + i, rows, first, last, b->a->softcap, factor + i);
        else
            normalize_rows(w, k, s + i * LDS, r + i, rows, first, last, 0, factor + i);
    }
    if (b->a->drops)
        for (int i = 0; i < step && r + i < b->rows; i++) drop_weights(b, s + i * LDS, r + i, keys->start, k->n);
}

/* o = factor o + p v for a tile of rows, from column c on. */
INLINE void values(const buffers *w, int64_t d, const float *p, int64_t r, int step, int low, int high, int64_t c,
                   const float *factor) {
    float *o = w->o + r * w->ld + c;
    const float *v = w->v + low * w->ld + c;
    if (d - c > VL)
        tile(step, 2, high - low, p + low, LDS, 1, v, w->ld, o, w->ld, SCALE, factor);
    else
        tile(step, 1, high - low, p + low, LDS, 1, v, w->ld, o, w->ld, SCALE, factor);
}

/* A group of rows against one block of keys. Where a tile's rows do not all see the same keys, exponentials that are
 * zero would meet values that the row must not see: if one of those is not finite the rows go one by one. */
INLINE void step_group(const block *b, const buffers *w, const keys *keys, const group *g, int step) {
    const span *k = &keys->sees;
    float factor[GROUP + VL];
    if (b->rows <= FEW)
        few_scores(b, w, keys);
    else
        scores(b, w, k, g, step);
    for (int64_t r = g->first; r < g->last; r += step)
        if (span_any(k, r, step)) normalize(b, w, keys, scores_at(w, g, r), r, step, factor + (r - g->first));
    for (int64_t c = 0; c < b->a->d; c += NR)
        for (int64_t r = g->first; r < g->last; r += step) {
            const float *p = scores_at(w, g, r), *f = factor + (r - g->first);
            if (!span_any(k, r, step)) continue;
            if (keys->finite || span_same(k, r, step))
                values(w, b->a->d, p, r, step, k->low[r], k->high[r + step - 1], c, f);
            else
                for (int i = 0; i < step; i++)
                    values(w, b->a->d, p + i * LDS, r + i, 1, k->low[r + i], k->high[r + i], c, f + i);
        }
}

/* The block's rows against keys from `start` to `end`: w->o, top and sum. */
static void attend(const block *b, buffers *w, int64_t start, int64_t end) {
    keys k;
    if (b->step == SIDE) {
        dots_buffers x = dots_buffers_at(w->q, w->rows, b->a->d);
        x.shared = w->packed, x.step = b->a->hk * dots_block_of(b->a->d).bytes;
        w->o = x.o, w->top = x.top, w->sum = x.sum, w->ld = x.ld;
        dots_attend(b, &x, start, end);
        return;
    }
    pack_queries(b, w);
    memset(w->o, 0, (size_t)(b->padded * w->ld) * sizeof *w->o);
    for (int64_t r = 0; r < b->padded; r++) w->top[r] = -INFINITY;
    memset(w->sum, 0, (size_t)(b->padded * VL) * sizeof *w->sum);
    if (start < b->low[0]) start = b->low[0];
    if (end > b->high[b->padded - 1]) end = b->high[b->padded - 1];
    for (int64_t j = start; j < end; j += BK) {
        keys_init(b, w, j, j + BK < end ? j + BK : end, &k);
        for (group g = { 0, GROUP }; g.first < b->padded; g.first = g.last, g.last += GROUP) {
            if (g.last > b->padded) g.last = b->padded;
            if (b->step == 1)
                step_group(b, w, &k, &g, 1);
            else
                step_group(b, w, &k, &g, MR);
        }
    }
    for (int64_t r = 0; r < b->rows; r++) w->sum[r] = vhsum(get(w->sum + r * VL));
}

/* The score of a row's sink counts in its sum; returns what o is to be multiplied by. */
static float add_sink(const block *b, const buffers *w, int64_t r) {
    const attention *a = b->a;
    const int64_t row = b->first + r;
    if (a->sinks == NULL || row / a->group >= b->seq.queries) return 1;
    const float sink = sload((const char *)a->sinks->data, a->sinks->dtype, b->head * a->group + row % a->group),
                before = w->top[r], now = sink > before ? sink : before;
    if (now == -INFINITY && sink == now) return 1;
    const vf e = vexp(vset(before - now));
    w->top[r] = now;
    w->sum[r] = w->sum[r] * e[0] + vexp(vset(sink - now))[0];
    return e[0];
}

/* Divides by the sums and writes the block's rows of o and lse. */
static void finish(const block *b, const buffers *w) {
    const attention *a = b->a;
    const trine_tensor *lse = &a->call->tensor[ATTENTION_LSE];
    for (int64_t r = 0; r < b->rows; r++) {
        float *o = w->o + r * w->ld;
        const float factor = add_sink(b, w, r) * (a->drops ? a->dropout.scale : 1);
        const bool none = w->sum[r] == 0;
        if (none) memset(o, 0, (size_t)a->d * sizeof *o);
        store_scaled(o, a->d, none ? 1 : factor / w->sum[r], row_at(b, &a->call->tensor[ATTENTION_O], r), a->dtype);
        if (!(a->call->present >> ATTENTION_LSE & 1)) continue;
        *statistic_at(b, lse, r) = none ? -INFINITY : w->top[r] + vlog(vset(w->sum[r]))[0];
    }
}

/* ------------------------------------------------------------------------------------------------------------ tasks */

/* The most blocks of `size` tokens that sequences can have together, of `tokens` each or, packed, in all. */
static int64_t most_blocks(const attention *a, int64_t tokens, int64_t size) {
    return a->cu_q ? a->sequences + tokens / size : a->sequences * ((tokens + size - 1) / size);
}
static int64_t most_row_blocks(const attention *a) { return most_blocks(a, a->sq * a->group, block_rows(a)); }

/* Keys are packed once for several blocks of rows. */
static bool shares_keys(const attention *a) { return by_dots(a) && a->sq * a->group > block_rows(a); }

/* The workspace: the numbers of blocks of rows and of keys before each sequence; packed blocks of keys; the threads'
 * memory. */
static size_t index_bytes(const attention *a) {
    return (size_t)cpu_round_up(2 * (a->sequences + 1) * (int64_t)sizeof(int64_t), 256);
}
static size_t keys_bytes(const attention *a) {
    return shares_keys(a)
               ? (size_t)cpu_round_up(most_blocks(a, a->sk, DOTS_KEYS) * a->hk * dots_block_of(a->d).bytes, 256)
               : 0;
}

static size_t workspace(const trine_call *call) {
    const attention a = attention_of(call);
    const size_t threads = (size_t)most_threads(call, most_row_blocks(&a) * a.hk);
    return index_bytes(&a) + keys_bytes(&a) + threads * buffer_bytes(&a);
}

typedef struct attend_job {
    const attention *a;
    const int64_t *rows, *keys; /* blocks before each sequence */
    char *packed;               /* NULL, or blocks of keys: by block, then by head */
    int64_t tasks;
} attend_job;

/* The sequence that a block belongs to. */
static int64_t sequence_at(const attention *a, const int64_t *before, int64_t number) {
    int64_t s = 0, above = a->sequences;
    while (above - s > 1) {
        const int64_t middle = s + (above - s) / 2;
        if (before[middle] <= number)
            s = middle;
        else
            above = middle;
    }
    return s;
}

/* Blocks are numbered by sequence, and start from the last: with a causal mask the last rows of a sequence have the
 * most keys. */
static void run_task(const attend_job *job, int64_t task, buffers w) {
    const attention *a = job->a;
    const int64_t number = task / a->hk, head = task % a->hk, s = sequence_at(a, job->rows, number);
    const sequence seq = sequence_of(a, s);
    const int64_t size = block_rows(a), first = (number - job->rows[s]) * size, rows = seq.queries * a->group - first;
    block b;
    block_init(&b, a, seq, head, first, rows < size ? rows : size, step_of(a, rows < size ? rows : size));
    if (job->packed) w.packed = job->packed + (job->keys[s] * a->hk + head) * dots_block_of(a->d).bytes;
    attend(&b, &w, 0, seq.keys);
    finish(&b, &w);
}

/* Causal rows grow: the longest first. */
static void attend_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const attend_job *job = context;
    const buffers w = buffers_of(job->a, index_bytes(job->a) + keys_bytes(job->a), thread);
    if (by_dots(job->a)) tile_begin(UNIT_BF16);
    for (int64_t i = first; i < last; i++) run_task(job, job->tasks - 1 - i, w);
    if (by_dots(job->a)) tile_end(UNIT_BF16);
}

static void pack_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const attend_job *job = context;
    const attention *a = job->a;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t number = i / a->hk, s = sequence_at(a, job->keys, number),
                      key = (number - job->keys[s]) * DOTS_KEYS;
        const sequence seq = sequence_of(a, s);
        dots_pack_block(a, &seq, i % a->hk, key, seq.keys - key < DOTS_KEYS ? seq.keys - key : DOTS_KEYS,
                        job->packed + i * dots_block_of(a->d).bytes);
    }
}

static trine_status launch(const trine_call *call) {
    attention a = attention_of(call);
    const trine_status status = attention_begin(&a);
    if (status != TRINE_OK) return status;
    int64_t *rows = call->workspace, *keys = rows + a.sequences + 1;
    rows[0] = keys[0] = 0;
    for (int64_t s = 0; s < a.sequences; s++) {
        const sequence seq = sequence_of(&a, s);
        rows[s + 1] = rows[s] + (seq.queries * a.group + block_rows(&a) - 1) / block_rows(&a);
        keys[s + 1] = keys[s] + (seq.keys + DOTS_KEYS - 1) / DOTS_KEYS;
    }
    const int64_t tasks = rows[a.sequences] * a.hk, blocks = keys[a.sequences] * a.hk;
    const attend_job job = { &a, rows, keys, shares_keys(&a) ? (char *)call->workspace + index_bytes(&a) : NULL,
                             tasks };
    if (job.packed) cpu_tasks(call, cpu_team(call, blocks, blocks * DOTS_KEYS * a.d * 4), blocks, pack_tasks, &job);
    const int team = cpu_team(call, tasks, a.b * a.sq * a.hk * a.group * (a.sk + 1) * a.d);
    cpu_tasks(call, team, tasks, attend_tasks, &job);
    clear_others(&a, &call->tensor[ATTENTION_O],
                 call->present >> ATTENTION_LSE & 1 ? &call->tensor[ATTENTION_LSE] : NULL, false);
    return TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------------ split */

enum { SPLIT_ROWS = MAX_ROWS / 4 };

static const char *split_refuse(const trine_call *call) {
    const attention a = attention_of(call);
    if (a.cu_q != NULL) return "the sequences' lengths are data";
    if (a.sq * a.group > SPLIT_ROWS) return "there are more than 48 rows for a head of keys";
    return a.sk <= CHUNK ? "there are no more than 1024 keys" : NULL;
}

static int64_t chunks_of(const attention *a) { return (a->sk + CHUNK - 1) / CHUNK; }

/* A partial result: rows of o, then the maxima and the sums. */
static int64_t partial_floats(const attention *a) { return cpu_round_up(a->sq * a->group * (a->d + 2), 64); }

static size_t partial_bytes(const attention *a) {
    return (size_t)(a->b * a->hk * chunks_of(a) * partial_floats(a)) * sizeof(float);
}

static size_t split_workspace(const trine_call *call) {
    const attention a = attention_of(call);
    const size_t threads = (size_t)most_threads(call, a.b * a.hk * chunks_of(&a));
    return partial_bytes(&a) + threads * buffer_bytes(&a);
}

static void split_attend(const attention *a, int64_t task, buffers w) {
    const int64_t chunks = chunks_of(a), chunk = task % chunks, problem = task / chunks, rows = a->sq * a->group;
    float *to = (float *)a->call->workspace + task * partial_floats(a);
    block b;
    block_init(&b, a, sequence_of(a, problem / a->hk), problem % a->hk, 0, rows, step_of(a, rows));
    attend(&b, &w, chunk * CHUNK, (chunk + 1) * CHUNK < a->sk ? (chunk + 1) * CHUNK : a->sk);
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * a->d, w.o + r * w.ld, (size_t)a->d * sizeof *to);
    memcpy(to + rows * a->d, w.top, (size_t)rows * sizeof *to);
    memcpy(to + rows * (a->d + 1), w.sum, (size_t)rows * sizeof *to);
}

/* Merges the chunks of a problem in order. */
static void split_merge(const attention *a, int64_t problem, const buffers *w) {
    const int64_t chunks = chunks_of(a), rows = a->sq * a->group, size = partial_floats(a);
    const float *from = (const float *)a->call->workspace + problem * chunks * size;
    block b;
    block_init(&b, a, sequence_of(a, problem / a->hk), problem % a->hk, 0, rows, rows <= SINGLE ? 1 : MR);
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

static void split_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const attention *a = context;
    const buffers w = buffers_of(a, partial_bytes(a), thread);
    if (by_dots(a)) tile_begin(UNIT_BF16);
    for (int64_t task = first; task < last; task++) split_attend(a, task, w);
    if (by_dots(a)) tile_end(UNIT_BF16);
}
static void merge_problems(const void *context, int64_t first, int64_t last, int thread) {
    const attention *a = context;
    const buffers w = buffers_of(a, partial_bytes(a), thread);
    for (int64_t problem = first; problem < last; problem++) split_merge(a, problem, &w);
}

static trine_status split_launch(const trine_call *call) {
    attention a = attention_of(call);
    const trine_status status = attention_begin(&a);
    if (status != TRINE_OK) return status;
    const int64_t problems = a.b * a.hk, tasks = problems * chunks_of(&a);
    const int team = cpu_team(call, tasks, problems * a.group * a.sq * a.sk * a.d);
    cpu_tasks(call, team, tasks, split_tasks, &a);
    cpu_shares(call, problems < team ? (int)problems : team, problems, merge_problems, &a);
    return TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------------ edges */

static void split_edges(const trine_call *call, trine_kernel_edges *edges) {
    static const int rows[] = { SINGLE, FEW, GROUP, SPLIT_ROWS, MR };
    attention_edges(edges);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, BK);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, DOTS_KEYS);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, CHUNK);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, CHUNK + BK);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * CHUNK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) attention_row_edge(call, edges, rows[i]);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    static const int rows[] = { SINGLE, FEW, GROUP, SIDE, MAX_ROWS / 4, MAX_ROWS / 2, MAX_ROWS, MR };
    const int64_t heads = call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_H];
    attention_edges(edges);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, ENOUGH / (heads > 0 ? heads : 1));
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, MANY / (heads > 0 ? heads : 1));
    trine_kernel_edge(edges, ATTENTION_DIM_SK, BK);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * BK);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * DOTS_KEYS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) attention_row_edge(call, edges, rows[i]);
}

CPU_KERNELS(attention) = { { CPU_VARIANT("few"), rows_refuse, rows_workspace, rows_launch, .edges = rows_edges },
                           { CPU_VARIANT("split"), split_refuse, split_workspace, split_launch, .edges = split_edges },
                           { CPU_NAME, NULL, workspace, launch, .edges = edges },
                           { .name = SAME_NAME,
                             .refuse = attention_same_refuse,
                             .workspace = attention_same_workspace,
                             .launch = attention_same_launch,
                             .edges = edges,
                             .same = true },
                           { 0 } };
