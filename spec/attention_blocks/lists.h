/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of attention by lists share: the keys that a query sees, as a problem of attention of one row. */
#ifndef TRINE_SPEC_ATTENTION_BLOCKS_LISTS_H
#define TRINE_SPEC_ATTENTION_BLOCKS_LISTS_H

#include <stdlib.h>
#include <string.h>

#include "spec/attention/attention.h"

/* The parameters, which are alike in both ops. */
#define LISTS_PARAMS \
    PARAM(scale, F32, .values = "0 0.3 -1", .unset = "1/sqrt(d)", .doc = "of the scores"), \
        PARAM(softcap, F32, .values = "0 1 30", .min = 0, .doc = "c: scores become c tanh(score/c); 0: they do not"), \
        PARAM(causal, BOOL, .values = "0 1", .doc = "1: query i sees key j only if j <= i + sk - sq"), \
        PARAM(query_block, I64, .values = "64 1 3 16 100", .min = 1, .doc = "queries that share a list"), \
        PARAM(key_block, I64, .values = "64 1 3 16 100", .min = 1, .doc = "keys of a block")

/* What they say to the references. */
#define LISTS_OF(ref, args) \
    lists_of(ref, (args)->scale, (args)->softcap, (args)->causal, (args)->query_block, (args)->key_block)

typedef struct lists {
    attention row; /* one query, with the keys that it sees behind each other */
    int64_t b, sq, sk, h, hk, hl, d, blocks, entries, query_block, key_block;
    const double *q, *k, *v, *starts, *indices, *bias;
    bool causal;
    double *keys, *values, *added; /* of the row */
    int64_t *key, *entry;          /* which they are: rows of k without heads, elements of indices */
    int64_t room;
} lists;

static inline lists lists_of(const trine_ref *ref, double scale, double softcap, bool causal, int64_t query_block,
                             int64_t key_block) {
    lists l = { .causal = causal, .query_block = query_block, .key_block = key_block };
    l.b = trine_ref_dim(ref, "b"), l.sq = trine_ref_dim(ref, "sq"), l.sk = trine_ref_dim(ref, "sk");
    l.h = trine_ref_dim(ref, "h"), l.hk = trine_ref_dim(ref, "hk"), l.hl = trine_ref_dim(ref, "hl");
    l.d = trine_ref_dim(ref, "d"), l.blocks = trine_ref_dim(ref, "blocks"), l.entries = trine_ref_dim(ref, "entries");
    l.q = trine_ref_value(ref, "q"), l.k = trine_ref_value(ref, "k"), l.v = trine_ref_value(ref, "v");
    l.starts = trine_ref_value(ref, "starts"), l.indices = trine_ref_value(ref, "indices");
    l.bias = trine_ref_value(ref, "bias");
    const trine_dtype T = trine_ref_type(ref, "T");
    l.row = (attention){ .b = 1, .sq = 1, .h = 1, .hk = 1, .d = l.d, .softcap = softcap };
    l.row.scale = scale != 0 ? scale : 1 / sqrt((double)l.d);
    l.row.lost = fmax(FLUSH, trine_smallest_normal(T) * trine_unit_roundoff(T));
    return l;
}

static inline void lists_free(lists *l) {
    free(l->keys), free(l->values), free(l->added), free(l->key), free(l->entry);
}

static inline void lists_grow(lists *l) {
    l->room = 2 * l->room + 64;
    l->keys = realloc(l->keys, sizeof(double) * (size_t)(l->room * l->d));
    l->values = realloc(l->values, sizeof(double) * (size_t)(l->room * l->d));
    l->added = realloc(l->added, sizeof(double) * (size_t)l->room);
    l->key = realloc(l->key, sizeof(int64_t) * (size_t)l->room);
    l->entry = realloc(l->entry, sizeof(int64_t) * (size_t)l->room);
}

/* Sets the row to query i of a head, and the keys to those that it sees. */
static inline void lists_see(lists *l, int64_t n, int64_t i, int64_t head) {
    const int64_t list = n * l->hl + head / (l->h / l->hl), group = head / (l->h / l->hk), r = i / l->query_block;
    const double *starts = l->starts + list * (l->blocks + 1);
    l->row.q = l->q + ((n * l->sq + i) * l->h + head) * l->d;
    l->row.sk = 0;
    for (int64_t e = r < l->blocks ? (int64_t)starts[r] : 0; r < l->blocks && e < (int64_t)starts[r + 1]; e++) {
        const int64_t at = list * l->entries + e, block = (int64_t)l->indices[at];
        const int64_t first = block >= 0 && block <= l->sk / l->key_block ? block * l->key_block : l->sk;
        for (int64_t j = first; j < l->sk && j - first < l->key_block; j++) {
            if (l->causal && j > i + l->sk - l->sq) continue;
            if (l->row.sk == l->room) lists_grow(l);
            const int64_t to = l->row.sk++, from = ((n * l->sk + j) * l->hk + group) * l->d;
            memcpy(l->keys + to * l->d, l->k + from, sizeof(double) * (size_t)l->d);
            memcpy(l->values + to * l->d, l->v + from, sizeof(double) * (size_t)l->d);
            l->added[to] = l->bias ? l->bias[at] : 0;
            l->key[to] = n * l->sk + j, l->entry[to] = at;
        }
    }
    l->row.k = l->keys, l->row.v = l->values, l->row.bias = l->bias ? l->added : NULL;
}

#endif
