/* SPDX-License-Identifier: Apache-2.0 */
/* What attention and its gradient share: sequences and masks, what is added to scores, and dropout.
 *
 * The query heads of a group share their keys and values, so the rows of a problem are (query, head of the group), the
 * head running fastest; a problem is one sequence and one key-value head. All packed matrices are row-major with a
 * leading dimension that is a multiple of 64 bytes but not of 4096, since 8 lines a page apart would fill their cache
 * set. */
#ifndef TRINE_CPU_ATTENTION_H
#define TRINE_CPU_ATTENTION_H

#include <inttypes.h>

#include "attention_pack.h"
#include "backends/cpu/core/philox.h"
#include "spec/attention/attention_places.h"

/* ---------------------------------------------------------------------------------------------- sequences and masks */

/* The parameters of a call, the same for all its problems. */
typedef struct attention {
    const trine_call *call;
    const trine_tensor *cu_q, *cu_k;                    /* NULL: b sequences of sq and sk */
    const trine_tensor *used_q, *used_k;                /* NULL: all tokens of a sequence count */
    const trine_tensor *bias, *slopes, *sinks, *philox; /* NULL: absent */
    int64_t sequences, b, sq, sk, hk, group, d;
    float scale, softcap;
    bool causal, drops;
    int64_t before, after; /* the windows to the left and to the right; INT64_MAX: none */
    dropout dropout;
    trine_dtype dtype;
} attention;

/* Where an op has the tensors that both have. */
typedef struct attention_places {
    int q, cu_q, cu_k, used_q, used_k, bias, slopes, sinks, philox;
} attention_places;
#define ATTENTION_PLACES_OF(OP) \
    (attention_places) { \
        OP##_Q, OP##_CU_SEQLENS_Q, OP##_CU_SEQLENS_K, OP##_SEQUSED_Q, OP##_SEQUSED_K, OP##_BIAS, OP##_ALIBI_SLOPES, \
            OP##_SINKS, OP##_PHILOX \
    }

/* The call of an op; `args` are its arguments, whose parameters have the same names in both. */
#define ATTENTION_OF(call, args, OP) \
    attention_made((attention){ .call = (call), \
                                .scale = (args)->scale, \
                                .softcap = (args)->softcap, \
                                .causal = (args)->causal, \
                                .before = attention_window((args)->window, (args)->window_left), \
                                .after = attention_window((args)->window, (args)->window_right), \
                                .drops = (args)->dropout > 0, \
                                .dropout = dropout_of((args)->dropout, (args)->seed, (args)->offset) }, \
                   ATTENTION_PLACES_OF(OP))

static inline int64_t attention_window(int64_t a, int64_t b) {
    if (a == 0) a = INT64_MAX;
    return b > 0 && b < a ? b : a;
}

static inline attention attention_made(attention a, attention_places at) {
    const trine_call *call = a.call;
    const int64_t *dim = call->dim;
    a.b = a.sequences = dim[ATTENTION_DIM_B], a.sq = dim[ATTENTION_DIM_SQ], a.sk = dim[ATTENTION_DIM_SK];
    a.hk = dim[ATTENTION_DIM_HK], a.group = dim[ATTENTION_DIM_H] / a.hk, a.d = dim[ATTENTION_DIM_D];
    if (a.scale == 0) a.scale = (float)(1 / sqrt((double)a.d));
    a.dtype = call->tensor[at.q].dtype;
    const struct {
        const trine_tensor **to;
        int place;
    } optional[] = {
        { &a.cu_q, at.cu_q }, { &a.cu_k, at.cu_k },     { &a.used_q, at.used_q }, { &a.used_k, at.used_k },
        { &a.bias, at.bias }, { &a.slopes, at.slopes }, { &a.sinks, at.sinks },   { &a.philox, at.philox }
    };
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        if (call->present >> optional[i].place & 1) *optional[i].to = &call->tensor[optional[i].place];
    if (a.cu_q) a.sequences = dim[ATTENTION_DIM_NSEQ];
    return a;
}

/* One sequence: its place in the batch, and the first query and key with their numbers, of those that count. */
typedef struct sequence {
    int64_t batch, q, k, queries, keys;
} sequence;

static inline sequence sequence_of(const attention *a, int64_t s) {
    sequence r = { s, 0, 0, a->sq, a->sk };
    if (a->cu_q) {
        const int32_t *q = a->cu_q->data, *k = a->cu_k->data;
        r = (sequence){ 0, q[s], k[s], q[s + 1] - q[s], k[s + 1] - k[s] };
    }
    if (a->used_q) r.queries = ((const int32_t *)a->used_q->data)[s];
    if (a->used_k) r.keys = ((const int32_t *)a->used_k->data)[s];
    return r;
}

/* The keys [first, last) of the sequence that its query i sees; both grow with i. */
static inline void visible(const attention *a, const sequence *s, int64_t i, int64_t *first, int64_t *last) {
    const int64_t same = i + s->keys - s->queries;
    *first = i >= s->queries ? s->keys : a->before <= same ? same - a->before + 1 : 0;
    *last = a->causal ? same + 1 : a->after < s->keys - same ? same + a->after : s->keys;
    if (*last > s->keys || i >= s->queries) *last = s->keys;
    if (*last < 0) *last = 0;
    if (*first > *last) *first = *last;
}

static trine_status check_offsets(const attention *a, const trine_tensor *offsets, const char *name, int64_t total) {
    const char *op = a->call->plan->spec->name;
    const int32_t *at = offsets->data;
    if (at[0] != 0)
        return a->call->host->error(TRINE_ERR_ARGUMENT, "%s: %s[0] is %d, but must be 0", op, name, (int)at[0]);
    for (int64_t s = 0; s < a->sequences; s++)
        if (at[s + 1] < at[s])
            return a->call->host->error(TRINE_ERR_ARGUMENT, "%s: %s[%" PRId64 "] is %d, below %s[%" PRId64 "] = %d", op,
                                        name, s + 1, (int)at[s + 1], name, s, (int)at[s]);
    if (at[a->sequences] <= total) return TRINE_OK;
    return a->call->host->error(TRINE_ERR_ARGUMENT, "%s: %s[%" PRId64 "] is %d, but there are %" PRId64 " tokens", op,
                                name, a->sequences, (int)at[a->sequences], total);
}

/* `offsets` may be NULL: every sequence has `all` tokens. */
static trine_status check_used(const attention *a, const trine_tensor *used, const char *name,
                               const trine_tensor *offsets, int64_t all) {
    const int32_t *at = offsets ? offsets->data : NULL;
    for (int64_t s = 0; used && s < a->sequences; s++) {
        const int64_t length = ((const int32_t *)used->data)[s], most = at ? at[s + 1] - at[s] : all;
        if (length < 0 || length > most)
            return a->call->host->error(TRINE_ERR_ARGUMENT,
                                        "%s: %s[%" PRId64 "] is %" PRId64 ", but the sequence has %" PRId64 " tokens",
                                        a->call->plan->spec->name, name, s, length, most);
    }
    return TRINE_OK;
}

/* Before a launch: reads what the host side of a call must not, since data may be absent there. */
static trine_status attention_begin(attention *a) {
    if (a->drops && a->philox) dropout_tell(&a->dropout, a->philox);
    trine_status status = TRINE_OK;
    if (a->cu_q) status = check_offsets(a, a->cu_q, "cu_seqlens_q", a->sq);
    if (a->cu_q && status == TRINE_OK) status = check_offsets(a, a->cu_k, "cu_seqlens_k", a->sk);
    if (status == TRINE_OK) status = check_used(a, a->used_q, "seqused_q", a->cu_q, a->sq);
    if (status == TRINE_OK) status = check_used(a, a->used_k, "seqused_k", a->cu_k, a->sk);
    return status;
}

/* Element 0 of row (token, head) of a tensor b s h d. */
static inline char *token_at(const trine_tensor *t, int64_t batch, int64_t token, int64_t head) {
    return (char *)t->data +
           (batch * t->stride[0] + token * t->stride[1] + head * t->stride[2]) * (int64_t)trine_dtype_size(t->dtype);
}

/* Tokens that belong to a sequence but do not count, and those behind the last sequence. Their rows of a tensor b s h d
 * become zero; `lse` b h s, if it is not NULL, becomes -Inf there. */
typedef struct rest {
    const attention *a;
    const trine_tensor *rows, *lse;
    bool of_keys;
} rest;
static void clear_rest(const void *context, int64_t first, int64_t last, int thread) {
    const rest *r = context;
    const attention *a = r->a;
    const trine_tensor *cu = r->of_keys ? a->cu_k : a->cu_q;
    (void)thread;
    for (int64_t s = first; s < last; s++) {
        const int64_t all = r->of_keys ? a->sk : a->sq;
        const bool behind = s == a->sequences; /* of all */
        sequence seq = { 0 };
        if (!behind) seq = sequence_of(a, s);
        int64_t token = r->of_keys ? seq.k + seq.keys : seq.q + seq.queries;
        if (behind) token = cu ? ((const int32_t *)cu->data)[s] : all;
        for (const int64_t end = cu && !behind ? ((const int32_t *)cu->data)[s + 1] : all; token < end; token++)
            for (int64_t head = 0; head < r->rows->shape[2]; head++) {
                memset(token_at(r->rows, seq.batch, token, head), 0, (size_t)a->d * trine_dtype_size(a->dtype));
                if (r->lse)
                    ((float *)r->lse
                         ->data)[seq.batch * r->lse->stride[0] + head * r->lse->stride[1] + token * r->lse->stride[2]] =
                        -INFINITY;
            }
    }
}
static void clear_others(const attention *a, const trine_tensor *rows, const trine_tensor *lse, bool of_keys) {
    if (!a->cu_q && !(of_keys ? a->used_k : a->used_q)) return;
    cpu_shares(a->call, cpu_team(a->call, a->sequences + 1, a->b * (of_keys ? a->sk : a->sq) * a->d), a->sequences + 1,
               clear_rest, &(rest){ a, rows, lse, of_keys });
}

/* Along d: vectors, and columns of register tiles. Along the queries' tokens: so many rows of a group of heads. */
static inline void attention_edges(trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ATTENTION_DIM_D, VL);
    trine_kernel_edge(edges, ATTENTION_DIM_D, NR);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, NR);
}
static inline void attention_row_edge(const trine_call *call, trine_kernel_edges *edges, int64_t rows) {
    const int64_t h = call->dim[ATTENTION_DIM_H], hk = call->dim[ATTENTION_DIM_HK], group = hk > 0 ? h / hk : 1;
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, rows / (group > 0 ? group : 1));
}

/* Rows `first` .. `first`+rows-1 of a problem, in register tiles of `step` rows, and the keys they see; padding rows
 * see what the last row does. */
enum { MAX_ROWS = 192 }; /* a multiple of MR */
typedef struct block {
    const attention *a;
    sequence seq;
    int64_t head, first, rows, step, padded; /* head: of keys and values */
    int64_t low[MAX_ROWS], high[MAX_ROWS];
} block;

static inline void block_init(block *b, const attention *a, sequence seq, int64_t head, int64_t first, int64_t rows,
                              int64_t step) {
    b->a = a, b->seq = seq, b->head = head, b->first = first, b->rows = rows, b->step = step,
    b->padded = cpu_round_up(rows, step);
    for (int64_t r = 0; r < b->padded; r++)
        visible(a, &seq, (first + (r < rows ? r : rows - 1)) / a->group, &b->low[r], &b->high[r]);
}

/* Row r of a block in a tensor b s h d, and in one b h s. */
static inline char *row_at(const block *b, const trine_tensor *t, int64_t r) {
    const int64_t row = b->first + r, group = b->a->group;
    return token_at(t, b->seq.batch, b->seq.q + row / group, b->head * group + row % group);
}
static inline float *statistic_at(const block *b, const trine_tensor *t, int64_t r) {
    const int64_t row = b->first + r, group = b->a->group;
    return (float *)t->data + b->seq.batch * t->stride[0] + (b->head * group + row % group) * t->stride[1] +
           (b->seq.q + row / group) * t->stride[2];
}

/* ------------------------------------------------------------------------------------ what is added, what is dropped
 * */

/* What is added to the scores of a row with the keys from one on. */
typedef struct addend {
    const char *bias; /* NULL: none */
    trine_dtype dtype;
    bool alike;            /* one element for all keys */
    int64_t count;         /* of elements that there are */
    float slope, distance; /* distance: of the first key from the one that is aligned */
} addend;

/* Of row r of a block and key `key` of its sequence. */
static inline addend addend_of(const block *b, int64_t r, int64_t key) {
    const attention *a = b->a;
    const int64_t row = b->first + r, i = row / a->group, head = b->head * a->group + row % a->group;
    addend t = { .count = a->sk - b->seq.k - key, .distance = (float)(i + b->seq.keys - b->seq.queries - key) };
    if (a->bias) {
        const trine_tensor *bias = a->bias;
        t.dtype = bias->dtype, t.alike = bias->stride[3] == 0;
        t.bias = (const char *)bias->data + (b->seq.batch * bias->stride[0] + head * bias->stride[1] +
                                             (b->seq.q + i) * bias->stride[2] + (b->seq.k + key) * bias->stride[3]) *
                                                (int64_t)vsize(t.dtype);
    }
    if (a->slopes)
        t.slope = ((const float *)a->slopes->data)[b->seq.batch * a->slopes->stride[0] + head * a->slopes->stride[1]];
    return t;
}

/* To the scores x of keys j .. j+VL-1. */
INLINE vf addend_add(const addend *t, int j, vf x) {
    if (t->bias) x += t->alike ? vset(sload(t->bias, t->dtype, 0)) : load_part(t->bias, t->dtype, j, t->count - j);
    if (t->slope != 0) x -= t->slope * vabs(t->distance - __builtin_convertvector(viota() + j, vf));
    return x;
}

static inline bool adds(const attention *a) { return a->bias || a->slopes; }

/* Masks of dropout for the weights of row r of a block with n keys from `key` on. */
static inline const int32_t *kept_keys(const block *b, int64_t r, int64_t key, int n, int32_t *buffer) {
    const attention *a = b->a;
    const int64_t row = b->first + r, head = b->head * a->group + row % a->group,
                  line = (b->seq.batch * a->hk * a->group + head) * a->sq + b->seq.q + row / a->group;
    return dropout_run(&a->dropout, (uint64_t)line * (uint64_t)cpu_round_up(a->sk, 8) + (uint64_t)(b->seq.k + key), n,
                       buffer);
}

/* What the rows of a block see of n keys, relative to the first of these: row r the keys low[r] .. high[r]-1. */
typedef struct span {
    int n, low[MAX_ROWS], high[MAX_ROWS];
} span;

static inline void span_init(span *s, const block *b, int64_t start, int64_t end) {
    s->n = (int)(end - start);
    for (int64_t r = 0; r < b->padded; r++) {
        const int64_t low = b->low[r] > start ? b->low[r] : start, high = b->high[r] < end ? b->high[r] : end;
        s->low[r] = (int)((low < end ? low : end) - start);
        s->high[r] = (int)((high > start ? high : start) - start);
    }
}

/* Do rows r .. r+step-1 see any key? Do all see the same ones? */
INLINE bool span_any(const span *s, int64_t r, int step) { return s->low[r] < s->high[r + step - 1]; }
INLINE bool span_same(const span *s, int64_t r, int step) {
    return s->low[r] == s->low[r + step - 1] && s->high[r] == s->high[r + step - 1];
}

/* The most threads a call can use, for tasks of which there are at most `tasks`. */
static inline int64_t most_threads(const trine_call *call, int64_t tasks) {
    const int64_t threads = ((const cpu_queue *)call->queue)->threads;
    return threads < tasks ? threads : tasks > 0 ? tasks : 1;
}

#endif
