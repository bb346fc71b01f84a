/* SPDX-License-Identifier: Apache-2.0 */
/* What attention by lists and its gradient share: the lists, and tiles of queries and keys that are gathered by them.
 *
 * Heads that have both their list and their keys in common are a bundle, whose rows go together: row number r of a list
 * is query r/bundle of the block and head r%bundle. */
#ifndef TRINE_CPU_ATTENTION_BLOCKS_LISTS_H
#define TRINE_CPU_ATTENTION_BLOCKS_LISTS_H

#include <inttypes.h>

#include "backends/cpu/attention/attention_pack.h"
#include "spec/attention_blocks/lists_places.h"

/* Rows and keys of a tile: multiples of MR, KEYS also of NR; and the distance of rows of scores. */
enum { ROWS = 48, KEYS = 96, LDS = KEYS + 16 };
enum { FAR = 1 << 30 };

typedef struct lists {
    const trine_call *call;
    const trine_tensor *q, *k, *v, *starts, *indices, *bias; /* bias: NULL, absent */
    int64_t b, sq, sk, h, hk, hl, d, blocks, entries;
    int64_t query_block, key_block; /* no larger than need be */
    int64_t bundle, lists;          /* lists: of blocks of queries, those beyond `blocks` too, which are empty */
    int64_t ld;                     /* of packed rows */
    float scale, softcap;
    bool causal;
    trine_dtype T;
} lists;

/* Where an op has the tensors that both have. */
typedef struct lists_places {
    int q, k, v, starts, indices, bias;
} lists_places;
#define LISTS_OF(call, args, OP) \
    lists_made((lists){ .call = (call), \
                        .scale = (args)->scale, \
                        .softcap = (args)->softcap, \
                        .causal = (args)->causal, \
                        .query_block = (args)->query_block, \
                        .key_block = (args)->key_block }, \
               (lists_places){ OP##_Q, OP##_K, OP##_V, OP##_STARTS, OP##_INDICES, OP##_BIAS })

static inline int64_t lists_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t lists_most(int64_t a, int64_t b) { return a > b ? a : b; }

static inline lists lists_made(lists a, lists_places at) {
    const int64_t *dim = a.call->dim;
    const trine_tensor *t = a.call->tensor;
    a.q = &t[at.q], a.k = &t[at.k], a.v = &t[at.v], a.starts = &t[at.starts], a.indices = &t[at.indices];
    a.bias = trine_call_given(a.call, at.bias);
    a.b = dim[ATTENTION_BLOCKS_DIM_B], a.sq = dim[ATTENTION_BLOCKS_DIM_SQ], a.sk = dim[ATTENTION_BLOCKS_DIM_SK];
    a.h = dim[ATTENTION_BLOCKS_DIM_H], a.hk = dim[ATTENTION_BLOCKS_DIM_HK], a.hl = dim[ATTENTION_BLOCKS_DIM_HL];
    a.d = dim[ATTENTION_BLOCKS_DIM_D], a.blocks = dim[ATTENTION_BLOCKS_DIM_BLOCKS];
    a.entries = dim[ATTENTION_BLOCKS_DIM_ENTRIES];
    a.query_block = lists_least(a.query_block, lists_most(a.sq, 1));
    a.key_block = lists_least(a.key_block, lists_most(a.sk, 1));
    a.lists = (a.sq + a.query_block - 1) / a.query_block;
    int64_t other = a.h / a.hl;
    a.bundle = a.h / a.hk;
    while (other > 0) {
        const int64_t rest = a.bundle % other;
        a.bundle = other, other = rest;
    }
    if (a.bundle < 1) a.bundle = 1;
    a.ld = leading(cpu_round_up(a.d, VL));
    if (a.scale == 0) a.scale = (float)(1 / sqrt((double)a.d));
    a.T = a.q->dtype;
    return a;
}

static inline const int32_t *starts_of(const lists *a, int64_t n, int64_t l) {
    return (const int32_t *)a->starts->data + n * a->starts->stride[0] + l * a->starts->stride[1];
}
static inline const int32_t *indices_of(const lists *a, int64_t n, int64_t l) {
    return (const int32_t *)a->indices->data + n * a->indices->stride[0] + l * a->indices->stride[1];
}
static inline const float *bias_of(const lists *a, int64_t n, int64_t l) {
    return a->bias ? (const float *)a->bias->data + n * a->bias->stride[0] + l * a->bias->stride[1] : NULL;
}

/* Before a launch: reads what the host side of a call must not. */
static inline trine_status lists_check(const lists *a) {
    for (int64_t list = 0; list < a->b * a->hl; list++) {
        const int32_t *at = starts_of(a, list / a->hl, list % a->hl);
        for (int64_t r = 0; r <= a->blocks; r++) {
            if (at[r] < 0 || at[r] > a->entries)
                return a->call->host->error(
                    TRINE_ERR_ARGUMENT, "%s: starts[%" PRId64 ",%" PRId64 ",%" PRId64 "] is %d, of %" PRId64 " entries",
                    a->call->plan->spec->name, list / a->hl, list % a->hl, r, (int)at[r], a->entries);
            if (r > 0 && at[r] < at[r - 1])
                return a->call->host->error(
                    TRINE_ERR_ARGUMENT, "%s: starts[%" PRId64 ",%" PRId64 ",%" PRId64 "] is %d, below the one before",
                    a->call->plan->spec->name, list / a->hl, list % a->hl, r, (int)at[r]);
        }
    }
    return TRINE_OK;
}

/* The keys [first, last) of an entry, as far as there are such. */
static inline void keys_of(const lists *a, int32_t block, int64_t *first, int64_t *last) {
    const bool there = block >= 0 && block <= (a->sk - 1) / a->key_block && a->sk > 0;
    *first = there ? block * a->key_block : 0;
    *last = there ? lists_least(*first + a->key_block, a->sk) : 0;
}

/* Element 0 of row (token, head) of a tensor b s h d. */
static inline char *token_at(const trine_tensor *t, int64_t n, int64_t token, int64_t head) {
    return (char *)t->data +
           (n * t->stride[0] + token * t->stride[1] + head * t->stride[2]) * (int64_t)trine_dtype_size(t->dtype);
}
static inline float *statistic_at(const trine_tensor *t, int64_t n, int64_t head, int64_t token) {
    return (float *)t->data + n * t->stride[0] + head * t->stride[1] + token * t->stride[2];
}

/* The queries of a tile, and the keys: which they are, and what stands for them in comparisons. Row r sees key j if
 * at[j] <= limit[r]. */
typedef struct tile_rows {
    int count;
    int64_t query[ROWS], head[ROWS];
    float bias[ROWS]; /* of the entry by which a row was gathered */
    int32_t limit[ROWS];
} tile_rows;
typedef struct tile_keys {
    int count;
    int64_t key[KEYS], entry[KEYS];
    float bias[KEYS];
    int32_t at[KEYS];
} tile_keys;

/* The last key that a query may see. */
static inline int64_t limit_of(const lists *a, int64_t i) {
    return a->causal ? lists_least(i + a->sk - a->sq, a->sk - 1) : a->sk - 1;
}
static inline int32_t lists_near(int64_t x) { return (int32_t)(x < -FAR ? -FAR : x > FAR ? FAR : x); }

/* Rows are limited relative to a key; those behind the last see nothing. */
static inline void limit_rows(const lists *a, tile_rows *rows, int64_t base) {
    for (int r = 0; r < ROWS; r++)
        rows->limit[r] = r < rows->count ? lists_near(limit_of(a, rows->query[r]) - base) : INT32_MIN;
}
static inline void place_keys(tile_keys *keys, int64_t base) {
    for (int j = 0; j < KEYS; j++) keys->at[j] = j < keys->count ? lists_near(keys->key[j] - base) : INT32_MAX;
}

/* Rows from number `first` on of list r and a bundle of heads. */
static inline void rows_of(const lists *a, int64_t r, int64_t bundle, int64_t first, tile_rows *rows) {
    const int64_t queries = lists_least(a->query_block, a->sq - r * a->query_block),
                  last = lists_least(first + ROWS, queries * a->bundle);
    rows->count = 0;
    for (int64_t row = first; row < last; row++) {
        rows->query[rows->count] = r * a->query_block + row / a->bundle;
        rows->head[rows->count] = bundle * a->bundle + row % a->bundle;
        rows->bias[rows->count++] = 0;
    }
    if (rows->count > 0) limit_rows(a, rows, limit_of(a, rows->query[0]));
}

/* Where a list's keys are being read. */
typedef struct cursor {
    int64_t entry, end; /* the next entry */
    int64_t key, last;  /* of the current one */
} cursor;

static inline cursor cursor_of(const lists *a, int64_t n, int64_t l, int64_t r) {
    const int32_t *starts = starts_of(a, n, l);
    cursor c = { 0 };
    if (r < a->blocks) c.entry = starts[r], c.end = starts[r + 1];
    return c;
}

/* The next keys of a list that one of the rows sees; false if there are none. */
static inline bool next_keys(const lists *a, int64_t n, int64_t l, const tile_rows *rows, cursor *c, tile_keys *keys) {
    const int32_t *indices = indices_of(a, n, l);
    const float *bias = bias_of(a, n, l);
    const int64_t most = limit_of(a, rows->query[rows->count - 1]);
    keys->count = 0;
    while (keys->count < KEYS) {
        if (c->key >= c->last) {
            if (c->entry >= c->end) break;
            keys_of(a, indices[c->entry++], &c->key, &c->last);
            c->last = lists_least(c->last, most + 1);
            continue;
        }
        keys->key[keys->count] = c->key++;
        keys->entry[keys->count] = c->entry - 1;
        keys->bias[keys->count++] = bias ? bias[c->entry - 1] : 0;
    }
    place_keys(keys, limit_of(a, rows->query[0]));
    for (int j = keys->count; j < KEYS; j++) keys->bias[j] = 0;
    return keys->count > 0;
}

/* ---------------------------------------------------------------------------------------------------------- packing */

/* Rows of a tensor b s h d times `factor`, zeros up to a multiple of MR. All finite? */
static inline bool pack_queries(const lists *a, const trine_tensor *t, int64_t n, const tile_rows *rows, float factor,
                                float *to) {
    bool finite = true;
    for (int r = 0; r < rows->count; r++)
        finite &= pack_scaled(token_at(t, n, rows->query[r], rows->head[r]), a->d, factor, to + r * a->ld, a->T);
    for (int r = rows->count; r < cpu_round_up(rows->count, MR); r++)
        memset(to + r * a->ld, 0, (size_t)a->ld * sizeof *to);
    return finite;
}

/* Rows of keys or values of a group; `across`, if not NULL, gets them transposed. All finite? */
static inline bool pack_keys(const lists *a, const trine_tensor *t, int64_t n, int64_t g, const tile_keys *keys,
                             float *to, float *across) {
    bool finite = true;
    for (int j = 0; j < keys->count; j++)
        finite &= pack_scaled(token_at(t, n, keys->key[j], g), a->d, 1, to + j * a->ld, a->T);
    if (across) pack_transposed(to, a->ld, keys->count, a->d, across, LDS, TRINE_F32);
    return finite;
}

/* s = rows times keys. */
static inline void products(const lists *a, const tile_rows *rows, const tile_keys *keys, const float *q,
                            const float *kt, float *s) {
    for (int j = 0; j < keys->count; j += NR)
        for (int r = 0; r < rows->count; r += MR)
            tile(MR, 2, a->d, q + r * a->ld, a->ld, 1, kt + j, LDS, s + r * LDS + j, LDS, SET, NULL);
}

/* to (mr x d) = to, or that times factor, + weights (mr x n) from (n x d). */
INLINE void gather(int mr, int64_t d, int64_t n, const float *weights, int64_t wr, int64_t wk, const float *from,
                   float *to, int64_t ld, tile_mode mode, const float *factor) {
    int64_t c = 0;
    for (; d - c > VL; c += NR) tile(mr, 2, n, weights, wr, wk, from + c, ld, to + c, ld, mode, factor);
    if (c < d) tile(mr, 1, n, weights, wr, wk, from + c, ld, to + c, ld, mode, factor);
}

/* Of a softcap the capped scores, and in *slope its derivative. */
INLINE vf capped(vf x, float softcap, vf *slope) {
    *slope = vset(1.0f);
    if (!(softcap > 0)) return x;
    const vf t = vtanh(x / softcap);
    *slope = vfma(-t, t, *slope);
    return softcap * t;
}

#endif
