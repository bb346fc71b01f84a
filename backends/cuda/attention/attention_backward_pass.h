/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels that find the gradient of attention in one pass share: what comes before, the division into tasks,
 * and rows that are done again, one by one, by what they see alone: those that come out as NaN or Inf, and all if
 * offsets of sequences make no sense. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_PASS_H
#define TRINE_CUDA_ATTENTION_BACKWARD_PASS_H

#include "attention_backward_simt.h"
#include "attention_rows.h"

/* p and ds are found times 2^24, so that what they are multiplied by counts even where p would be less than the
 * smallest normal number. With bf16 the products are of these, and sums are scaled at the end. */
template <class T> struct attention_lift_of {
    static DEVICE float weight() { return 1 / ATTENTION_LIFT; } /* what p as operand is multiplied by */
    static DEVICE float sum() { return 1.0f; }                  /* and sums of it */
};
template <> struct attention_lift_of<bf16> {
    static DEVICE float weight() { return 1.0f; }
    static DEVICE float sum() { return 1 / ATTENTION_LIFT; }
};

/* Do offsets go back, or beyond the last token, or lengths beyond their sequence? Asked by one block. */
DEVICE bool attention_goes_astray(const attention_problem &p) {
    SHARED int astray;
    if (thread_index() == 0)
        astray = p.cu_q && (p.cu_q[0] != 0 || p.cu_k[0] != 0 || p.cu_q[p.nseq] > p.sq || p.cu_k[p.nseq] > p.sk);
    sync_block();
    for (int i = thread_index(); i < (p.cu_q ? p.nseq : p.b); i += ATTENTION_BACKWARD_ENDS) {
        const int queries = p.cu_q ? p.cu_q[i + 1] - p.cu_q[i] : p.sq, keys = p.cu_q ? p.cu_k[i + 1] - p.cu_k[i] : p.sk,
                  used_q = p.used_q ? p.used_q[i] : 0, used_k = p.used_k ? p.used_k[i] : 0;
        if (queries < 0 || keys < 0 || used_q < 0 || used_q > queries || used_k < 0 || used_k > keys) astray = 1;
    }
    sync_block();
    return astray;
}

/* A row for D / 8 threads; heads run fastest. Counters from `turns` on begin at 0, also where there are no rows. */
template <class T, int D, int QUERIES, class Params> DEVICE void attention_gradient_begin(const Params &p) {
    enum { LANES = D / 8 };
    const attention_problem &at = p.call.at;
    const int64_t thread = block_index() * ATTENTION_BACKWARD_ENDS + thread_index(), row = thread / LANES,
                  rows = (int64_t)p.call.tiles * QUERIES;
    for (int64_t i = thread; i < p.ticket - p.turns + 1; i += block_count() * ATTENTION_BACKWARD_ENDS) p.turns[i] = 0;
    if (block_index() == 0) {
        const bool astray = !at.simple && attention_goes_astray(at);
        if (thread_index() == 0) *p.astray = astray;
    }
    if (rows == 0) return;
    const int64_t head = row % at.h, token = row / at.h % rows, batch = row / at.h / rows;
    const bool exists = batch < at.b && token < at.sq;
    float x[VECTOR], y[VECTOR], sum = 0;
    const lane l = { thread % LANES * VECTOR, exists ? at.d : 0, p.call.wide };
    load<T>(x, attention_row<T>(p.call.dout, exists ? batch : 0, exists ? token : 0, head), l);
    load<T>(y, attention_row<T>(p.call.o, exists ? batch : 0, exists ? token : 0, head), l);
#pragma unroll
    for (int i = 0; i < VECTOR; i++) sum = fused(x[i], y[i], sum);
    sum = group_sum<LANES>(sum);
    if (batch >= at.b || thread % LANES != 0) return;
    const float lse = exists ? f32::get(*attention_row<f32>(p.call.lse, batch, token, head)) : -infinity();
    const int64_t to = batch * p.call.delta.batch + head * p.call.delta.head + token;
    p.lift[to] = lse == -infinity()                   ? lse
                 : magnitude(lse) >= ATTENTION_COARSE ? not_a_number() /* its row is done again, and the keys it sees */
                                                      : fused(-lse, LOG2E, 24.0f);
    ((float *)p.call.delta.data)[to] = sum;
}

/* ------------------------------------------------------------------------------------------------------------ tasks */

struct attention_gradient_task {
    int plane, tile, last, count; /* plane < 0: no more; tile: of keys; last and count of its tiles of queries */
};

/* The keys that any query of a tile sees, and those between; both ends grow from tile to tile. */
template <class Pipe> DEVICE attention_sight attention_tile_keys(const attention_problem &p, int batch, int tile) {
    return { attention_keys_of(p, batch, tile * Pipe::QUERIES).low,
             attention_keys_of(p, batch, lesser((tile + 1) * Pipe::QUERIES, p.sq) - 1).high };
}

/* The tiles of queries that have any of the keys from `first` on in that range.
 * Where the keys' own sight ends is where the search begins. */
template <class Pipe, class Params>
DEVICE void attention_tiles_of(const Params &p, int batch, int first, attention_gradient_task *task_out) {
    const attention_problem &at = p.call.at;
    const int end = lesser(first + Pipe::KEYS, at.sk);
    int low = lesser(attention_queries_of(at, batch, first).low / Pipe::QUERIES, p.call.tiles),
        high = lesser(attention_queries_of(at, batch, end - 1).high / Pipe::QUERIES, p.call.tiles);
    while (low > 0 && attention_tile_keys<Pipe>(at, batch, low - 1).high > first) low--;
    while (low < p.call.tiles && attention_tile_keys<Pipe>(at, batch, low).high <= first) low++;
    while (high < p.call.tiles && attention_tile_keys<Pipe>(at, batch, high).low < first + Pipe::KEYS) high++;
    while (high > 0 && attention_tile_keys<Pipe>(at, batch, high - 1).low >= first + Pipe::KEYS) high--;
    task_out->last = high - 1, task_out->count = greater(high - low, 0);
}

/* Where a task is: a plane is a part of a group of heads, and of the columns. */
struct attention_gradient_place {
    int batch, head, shared, part; /* head: the first of queries; shared: that of keys; part: of the columns */
};
template <class Pipe, class Params>
DEVICE attention_gradient_place attention_gradient_place_of(const Params &p, int plane) {
    const int heads = p.call.at.h / p.share, part = plane / Pipe::SPLIT, group = part % heads;
    return { part / heads, group * p.share, group / p.parts, plane % Pipe::SPLIT };
}

/* `rises`: keys in descending order. */
template <class Pipe, class Params>
DEVICE attention_gradient_task attention_gradient_task_of(const Params &p, int ticket, bool rises = false) {
    const int section = ticket / (p.bunch * p.call.columns), first = section * p.bunch;
    if (*p.astray || first >= p.planes) return { -1, 0, 0, 0 };
    const int rest = ticket - first * p.call.columns, bunch = lesser(p.bunch, p.planes - first);
    if (rest / bunch >= p.call.columns) return { -1, 0, 0, 0 };
    attention_gradient_task t = { first + rest % bunch, rises ? p.call.columns - 1 - rest / bunch : rest / bunch, 0,
                                  0 };
    attention_tiles_of<Pipe>(p, attention_gradient_place_of<Pipe>(p, t.plane).batch, t.tile * Pipe::KEYS, &t);
    return t;
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* Are sums of row r of the thread's NaN or Inf? */
template <int N> DEVICE bool attention_spoilt(const float (&o)[N], int r) {
    float x = 0;
#pragma unroll
    for (int i = 2 * r; i < N; i += 4) x += o[i] * 0.0f + o[i + 1] * 0.0f;
    return x != 0;
}

template <class T, int D>
DEVICE bool attention_gradient_lost(const attention_backward_params &p, int batch, int head, int token) {
    const typename T::bits *const dk = attention_row<T>(p.dk, batch, token, head), *const dv = attention_row<T>(
                                                                                       p.dv, batch, token, head);
    float x = 0;
    for (int c = thread_index() % WARP; c < p.at.d; c += WARP) x += T::get(dk[c]) * 0.0f + T::get(dv[c]) * 0.0f;
    return any_of_warp(x != 0);
}

/* One query's dq, by a warp, from what it sees alone. */
template <class T, int D, bool OPTIONS = false>
DEVICE void attention_redo_query(const attention_backward_params &p, int batch, int head, int token) {
    const int lane = thread_index() % WARP, shared = head / p.at.group;
    const attention_query query = attention_query_of(p, batch, token, head);
    const typename T::bits *const q = attention_row<T>(p.q, batch, token, head), *const dout = attention_row<T>(
                                                                                     p.dout, batch, token, head);
    const auto terms = attention_terms_of<T, OPTIONS>(p.at, batch, head, token);
    const simt_dropout dropout = attention_dropout_of<OPTIONS>(p.at.options);
    float dq[D / WARP] = {};
#pragma unroll 1
    for (int key = query.sees.low; key < query.sees.high; key++) {
        const typename T::bits *const k = attention_row<T>(p.k, batch, key, shared), *const v = attention_row<T>(
                                                                                         p.v, batch, key, shared);
        float product = 0, change = 0;
        for (int c = lane; c < p.at.d; c += WARP)
            product = fused(T::get(q[c]), T::get(k[c]), product), change = fused(T::get(dout[c]), T::get(v[c]), change);
        const attention_pair pair = attention_pair_of(p.at, query, terms, terms.keeps(dropout, key), key,
                                                      group_sum<WARP>(product), group_sum<WARP>(change));
        if (OPTIONS && p.dbias && lane == 0)
            attention_put_bias<T>(p, attention_bias_row(p, batch, head, token) + key, pair.dz);
#pragma unroll
        for (int i = 0; i < D / WARP; i++)
            if (lane + i * WARP < p.at.d) dq[i] = fused(pair.ds, T::get(k[lane + i * WARP]), dq[i]);
    }
    typename T::bits *const to = attention_row<T>(p.dq, batch, token, head);
    sync_warp();
#pragma unroll
    for (int i = 0; i < D / WARP; i++)
        if (lane + i * WARP < p.at.d)
            to[lane + i * WARP] = T::put(query.sees.bad() ? not_a_number() : dq[i] * p.at.scale);
}

/* COLUMNS of one key's dk and dv, by a warp, from what sees it alone. */
template <class T, int COLUMNS, bool OPTIONS = false>
DEVICE void attention_redo_key(const attention_backward_params &p, const attention_place &at, int key) {
    const int lane = thread_index() % WARP;
    const attention_sight sees = attention_queries_of(p.at, at.batch, key);
    const simt_dropout dropout = attention_dropout_of<OPTIONS>(p.at.options);
    const typename T::bits *const k = attention_row<T>(p.k, at.batch, key, at.head), *const v = attention_row<T>(
                                                                                         p.v, at.batch, key, at.head);
    float dk[COLUMNS / WARP] = {}, dv[COLUMNS / WARP] = {};
#pragma unroll 1
    for (int head = at.head * p.at.group; head < (at.head + 1) * p.at.group; head++)
#pragma unroll 1
        for (int token = sees.low; token < sees.high; token++) {
            const attention_query query = attention_query_of(p, at.batch, token, head);
            const typename T::bits *const q = attention_row<T>(p.q, at.batch, token, head), *const dout =
                                                                                                attention_row<T>(
                                                                                                    p.dout, at.batch,
                                                                                                    token, head);
            float product = 0, change = 0;
            if (!query.sees.has(key)) continue;
            for (int c = lane; c < p.at.d; c += WARP)
                product = fused(T::get(q[c]), T::get(k[c]), product),
                change = fused(T::get(dout[c]), T::get(v[c]), change);
            const auto terms = attention_terms_of<T, OPTIONS>(p.at, at.batch, head, token);
            const attention_pair pair = attention_pair_of(p.at, query, terms, terms.keeps(dropout, key), key,
                                                          group_sum<WARP>(product), group_sum<WARP>(change));
#pragma unroll
            for (int i = 0; i < COLUMNS / WARP; i++) {
                const int c = at.column + lane + i * WARP;
                if (c < p.at.d)
                    dk[i] = fused(pair.ds, T::get(q[c]), dk[i]), dv[i] = fused(pair.p, T::get(dout[c]), dv[i]);
            }
        }
    typename T::bits *const to_k = attention_row<T>(p.dk, at.batch, key, at.head), *const to_v = attention_row<T>(
                                                                                       p.dv, at.batch, key, at.head);
    sync_warp();
#pragma unroll
    for (int i = 0; i < COLUMNS / WARP; i++) {
        const int c = at.column + lane + i * WARP;
        if (c >= p.at.d) continue;
        to_k[c] = T::put(sees.bad() ? not_a_number() : dk[i] * p.at.scale);
        to_v[c] = T::put(sees.bad() ? not_a_number() : dv[i] * p.at.options.keeps);
    }
}

#endif
