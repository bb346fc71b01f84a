/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention without tensor cores: any type, size and stride, in f32, in a fixed order.
 *
 * Three launches: the products dout.o; dq by blocks that have 64 queries of a head and go over the keys they see; dk
 * and dv by blocks that have 64 keys and go over the queries that see them, in all heads of the group. A block has up
 * to 128 columns.
 *
 * NOTES. Floors: 14 flops for each visible pair and column, since scores and dout.v are found twice (more often with
 * more than 128 columns), where one pass that adds into dq needs 10 but has no fixed order;
 * over 67 TFLOP/s (H200, f32, datasheet). */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_SIMT_H
#define TRINE_CUDA_ATTENTION_BACKWARD_SIMT_H

#include "attention_tile.h"

/* dout.o of one row for each warp; heads run fastest. */
template <class T> DEVICE void attention_delta(const attention_backward_params &p) {
    const int64_t row = block_index() * (ATTENTION_THREADS / WARP) + thread_index() / WARP;
    if (row >= (int64_t)p.at.b * p.at.sq * p.at.h) return;
    const int64_t head = row % p.at.h, token = row / p.at.h % p.at.sq, batch = row / p.at.h / p.at.sq;
    const typename T::bits *const x = attention_row<T>(p.dout, batch, token, head), *const y = attention_row<T>(
                                                                                        p.o, batch, token, head);
    float sum = 0;
    for (int c = thread_index() % WARP; c < p.at.d; c += WARP) sum = fused(T::get(x[c]), T::get(y[c]), sum);
    sum = group_sum<WARP>(sum);
    if (thread_index() % WARP == 0) *attention_row<f32>(p.delta, batch, token, head) = f32::put(sum);
}

/* A query of the gradient: one whose lse is -Inf gives nothing and sees nothing. */
struct attention_query {
    attention_sight sees;
    float lse, delta;
};
DEVICE attention_query attention_query_of(const attention_backward_params &p, int batch, int token, int head) {
    if (token >= p.at.sq) return { { 0, 0 }, 0, 0 };
    const float lse = f32::get(*attention_row<f32>(p.lse, batch, token, head)),
                delta = f32::get(*attention_row<f32>(p.delta, batch, token, head));
    return { lse == -infinity() ? attention_sight{ 0, 0 } : attention_keys_of(p.at, batch, token), lse, delta };
}

/* p, as far as it is kept, but for dropout's scale, and ds of a pair from its products q.k and dout.v; dz: ds
 * without the derivative of softcap. */
struct attention_pair {
    float p, ds, dz;
};
template <class T, bool OPTIONS>
DEVICE attention_pair attention_pair_of(const attention_problem &at, const attention_query &q,
                                        const attention_terms<T, OPTIONS> &terms, bool keeps, int key, float product,
                                        float change) {
    if (!q.sees.has(key)) return { 0, 0, 0 };
    const attention_score s = attention_score_of(at, terms, key, product);
    const float p = attention_lifted(s.z, q.lse);
    float left = p * (1 / ATTENTION_LIFT);
    if constexpr (OPTIONS) left = keeps ? left : 0.0f, change = keeps ? change * at.options.keeps : 0.0f;
    const float dz = p * ((change - q.delta) * (1 / ATTENTION_LIFT));
    return { left, dz * s.slope, dz };
}

/* An element of dbias. */
template <class T> DEVICE void attention_put_bias(const attention_backward_params &p, int64_t to, float dz) {
    if (p.at.options.wide)
        ((float *)p.dbias)[to] = dz;
    else
        ((typename T::bits *)p.dbias)[to] = T::put(dz);
}
DEVICE int64_t attention_bias_row(const attention_backward_params &p, int batch, int head, int token) {
    return batch * p.dbias_batch + head * p.dbias_head + token * p.dbias_query;
}

/* dbias becomes 0, a row for each block. */
template <class T> DEVICE void attention_clear_bias(const attention_backward_params &p) {
    const int64_t row = block_index(), token = row % p.at.sq, plane = row / p.at.sq;
    const int64_t to = attention_bias_row(p, (int)(plane / p.at.h), (int)(plane % p.at.h), (int)token);
    for (int j = thread_index(); j < p.at.sk; j += ATTENTION_THREADS) attention_put_bias<T>(p, to + j, 0.0f);
}

/* dsinks, a head for each block: what queries say of their sinks, each thread of every so many. */
template <class T> DEVICE void attention_sum_sinks(const attention_backward_params &p) {
    const int head = (int)block_index();
    const float sink = attention_sink_of<T>(p.at.options, head);
    double sum = 0;
    for (int64_t i = thread_index(); i < (int64_t)p.at.b * p.at.sq; i += ATTENTION_THREADS) {
        const int batch = (int)(i / p.at.sq), token = (int)(i % p.at.sq);
        const float lse = f32::get(*attention_row<f32>(p.lse, batch, token, head)),
                    delta = f32::get(*attention_row<f32>(p.delta, batch, token, head));
        if (lse != -infinity() && attention_counts(p.at, batch, token))
            sum -= (double)(attention_lifted(sink, lse) * (1 / ATTENTION_LIFT)) * delta;
    }
    sum = group_sum<ATTENTION_THREADS>(sum);
    if (thread_index() != 0) return;
    if (p.at.options.wide_sinks)
        ((float *)p.dsinks)[head] = (float)sum;
    else
        ((typename T::bits *)p.dsinks)[head] = T::put((float)sum);
}

template <class T, int D>
DEVICE void attention_store(const attention_tensor &to, int batch, int head, int first, int end, int column,
                            int columns, const float (&sum)[D / 64][4][4], float factor,
                            const attention_sight (&sees)[4]) {
    const int row0 = first + thread_index() / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (row0 + i >= end) continue;
        typename T::bits *const row = attention_row<T>(to, batch, row0 + i, head);
#pragma unroll
        for (int c = 0; c < D / 64; c++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int at = column + c * 64 + thread_index() % 16 * 4 + j;
                if (at < columns) row[at] = T::put(sees[i].bad() ? not_a_number() : sum[c][i][j] * factor);
            }
    }
}

template <class T, int D, bool OPTIONS> DEVICE void attention_queries(const attention_backward_params &p) {
    SHARED float buffer[ATTENTION_BUFFER], weights[ATTENTION_WEIGHTS];
    const attention_place at = attention_place_of(p.at, p.tiles, p.columns, ATTENTION_SIDE, D, p.at.h);
    const int row0 = at.first + thread_index() / 16 * 4, head = at.head / p.at.group,
              rows = lesser(ATTENTION_SIDE, p.at.sq - at.first);
    attention_query query[4];
    attention_sight sees[4];
#pragma unroll
    for (int i = 0; i < 4; i++) query[i] = attention_query_of(p, at.batch, row0 + i, at.head), sees[i] = query[i].sees;
    const attention_span span = attention_span_over(sees, row0, p.at.sq);
    const simt_dropout dropout = attention_dropout_of<OPTIONS>(p.at.options);
    float dq[D / 64][4][4] = {};
    for (int key = span.any.low; key < span.any.high; key += ATTENTION_SIDE) {
        const int keys = lesser(ATTENTION_SIDE, span.any.high - key);
        const attention_lanes<T> q(p.q, at.batch, at.first, rows, at.head),
            dout(p.dout, at.batch, at.first, rows, at.head), k(p.k, at.batch, key, keys, head),
            v(p.v, at.batch, key, keys, head);
        float product[4][4] = {}, change[4][4] = {};
        attention_product(product, q, k, p.at.d, buffer);
        attention_product(change, dout, v, p.at.d, buffer);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int token = lesser(row0 + i, p.at.sq - 1);
            const auto terms = attention_terms_of<T, OPTIONS>(p.at, at.batch, at.head, token);
            const uint32_t keeps = terms.template keeps_run<4>(dropout, key + thread_index() % 16 * 4);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int column = key + thread_index() % 16 * 4 + j;
                const attention_pair pair =
                    attention_pair_of(p.at, query[i], terms, keeps >> j & 1, column, product[i][j], change[i][j]);
                change[i][j] = pair.ds;
                if (OPTIONS && p.dbias && at.column == 0 && query[i].sees.has(column))
                    attention_put_bias<T>(p, attention_bias_row(p, at.batch, at.head, token) + column, pair.dz);
            }
        }
        attention_put<true>(weights, change);
        const bool whole = span.all.low <= key && key + ATTENTION_SIDE <= span.all.high;
        attention_gather<D>(dq, weights, k, key, whole, sees, at.column, p.at.d, buffer);
    }
    attention_store<T, D>(p.dq, at.batch, at.head, at.first, p.at.sq, at.column, p.at.d, dq, p.at.scale, sees);
}

template <class T, int D, bool OPTIONS> DEVICE void attention_keys(const attention_backward_params &p) {
    SHARED float buffer[ATTENTION_BUFFER], weights[ATTENTION_WEIGHTS];
    SHARED attention_sight rows[ATTENTION_SIDE];
    const attention_place at = attention_place_of(p.at, p.tiles, p.columns, ATTENTION_SIDE, D, p.at.h / p.at.group);
    const int down = thread_index() / 16 * 4, key0 = at.first + thread_index() % 16 * 4,
              keys = lesser(ATTENTION_SIDE, p.at.sk - at.first);
    attention_sight sees[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        sees[i] = at.first + down + i < p.at.sk ? attention_queries_of(p.at, at.batch, at.first + down + i)
                                                : attention_sight{ 0, 0 };
    const attention_span span = attention_span_over(sees, at.first + down, p.at.sk);
    const attention_lanes<T> k(p.k, at.batch, at.first, keys, at.head), v(p.v, at.batch, at.first, keys, at.head);
    const simt_dropout dropout = attention_dropout_of<OPTIONS>(p.at.options);
    float dk[D / 64][4][4] = {}, dv[D / 64][4][4] = {};
    for (int head = at.head * p.at.group; head < (at.head + 1) * p.at.group; head++)
        for (int first = span.any.low; first < span.any.high; first += ATTENTION_SIDE) {
            const int count = lesser(ATTENTION_SIDE, span.any.high - first);
            if (thread_index() < ATTENTION_SIDE)
                rows[thread_index()] = attention_query_of(p, at.batch, first + thread_index(), head).sees;
            attention_query query[4];
#pragma unroll
            for (int i = 0; i < 4; i++) query[i] = attention_query_of(p, at.batch, first + down + i, head);
            sync_block();
            const attention_lanes<T> q(p.q, at.batch, first, count, head, rows),
                dout(p.dout, at.batch, first, count, head, rows);
            float product[4][4] = {}, change[4][4] = {};
            attention_product(product, q, k, p.at.d, buffer);
            attention_product(change, dout, v, p.at.d, buffer);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const auto terms =
                    attention_terms_of<T, OPTIONS>(p.at, at.batch, head, lesser(first + down + i, p.at.sq - 1));
                const uint32_t keeps = terms.template keeps_run<4>(dropout, key0);
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const attention_pair pair =
                        attention_pair_of(p.at, query[i], terms, keeps >> j & 1, key0 + j, product[i][j], change[i][j]);
                    product[i][j] = pair.p, change[i][j] = pair.ds;
                }
            }
            const bool whole = span.all.low <= first && first + ATTENTION_SIDE <= span.all.high;
            attention_put<false>(weights, product);
            attention_gather<D>(dv, weights, dout, first, whole, sees, at.column, p.at.d, buffer);
            attention_put<false>(weights, change);
            attention_gather<D>(dk, weights, q, first, whole, sees, at.column, p.at.d, buffer);
        }
    attention_store<T, D>(p.dk, at.batch, at.head, at.first, p.at.sk, at.column, p.at.d, dk, p.at.scale, sees);
    attention_store<T, D>(p.dv, at.batch, at.head, at.first, p.at.sk, at.column, p.at.d, dv, p.at.options.keeps, sees);
}

#endif
