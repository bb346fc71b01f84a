/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention by the tensor cores of sm_80 and later: bf16 and f16, d up to 256, in a fixed order.
 *
 * Three launches, as without tensor cores. A block has 64 queries for dq, or 64 keys and up to 128 columns for dk and dv, in shared memory; each of its 4 warps
 * has 16 of them, and the weights and their changes as left operands. Tiles of the other side are copied into one of two stages while the products of the other
 * go on. p is found as 2^24 p, so that what it is multiplied by counts even where p itself would be less than the smallest normal number.
 *
 * NOTES. Floors: 14 flops for each visible pair and column (18 for d of more than 128), where one pass that adds into dq needs 10 but has no fixed order, over
 * the rate of mma.sync, on an H200 about 62 % of wgmma's.
 * Measured there beside cuDNN 9.19, bf16, 16384 tokens, s 4096, TFLOP/s counted as 10 flops: d 128 113 of 565 full and 109 of 483 causal; causal, d 64 88 of
 * 385, d 256 57 of 373. At d of more than 128, registers spill a little. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_MMA_H
#define TRINE_CUDA_ATTENTION_BACKWARD_MMA_H

#include "attention_backward_simt.h"
#include "attention_mma.h"

/* A query's lse and delta as the weights need them. */
struct attention_statistic {
    float lift, delta; /* 24 - lse in powers of 2; -Inf: it gives nothing */
};
DEVICE attention_statistic attention_statistic_of(const attention_backward_params &p, int batch, int token, int head, bool exists) {
    if (!exists) return { -infinity(), 0 };
    const float lse = f32::get(*attention_row<f32>(p.lse, batch, token, head));
    return { lse == -infinity() ? lse : fused(-lse, LOG2E, 24.0f), f32::get(*attention_row<f32>(p.delta, batch, token, head)) };
}

/* Products q.k and dout.v become p and ds. `statistic_of(i)` is that of element i; `hide`: what rows do not see is to count for nothing. */
template <int N, class Of>
DEVICE void attention_mma_weigh(float (&s)[N], float (&change)[N], const attention_backward_params &p, const attention_rows &rows, int first, bool hide,
                                Of statistic_of) {
    const int column = first + thread_index() % 4 * 2;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const attention_statistic q = statistic_of(i);
        float x = s[i], slope = 1 / ATTENTION_LIFT;
        if (p.bend != 0) x = attention_tanh(x * p.bend), slope *= fused(-x, x, 1.0f);
        const bool hidden = hide && !rows.sees[i / 2 % 2].has(column + i / 4 * 8 + i % 2);
        const float w = hidden ? 0.0f : exp2_approx(fused(x, p.spread, q.lift));
        s[i] = w * (1 / ATTENTION_LIFT);
        change[i] = hidden ? 0.0f : w * ((change[i] - q.delta) * slope);
    }
}

/* Are sums of row r of the thread's NaN or Inf? */
template <int N> DEVICE bool attention_spoilt(const float (&o)[N], int r) {
    float x = 0;
#pragma unroll
    for (int i = 2 * r; i < N; i += 4) x += o[i] * 0.0f + o[i + 1] * 0.0f;
    return x != 0;
}

/* ------------------------------------------------------------------------------------------------------------------------- dq */

/* One query's dq, by a warp, from what it sees alone. */
template <class T, int D> DEVICE void attention_redo_query(const attention_backward_params &p, int batch, int head, int token) {
    const int lane = thread_index() % WARP, shared = head / p.at.group;
    const attention_query query = attention_query_of(p, batch, token, head);
    const typename T::bits *const q = attention_row<T>(p.q, batch, token, head), *const dout = attention_row<T>(p.dout, batch, token, head);
    float dq[D / WARP] = {};
#pragma unroll 1
    for (int key = query.sees.low; key < query.sees.high; key++) {
        const typename T::bits *const k = attention_row<T>(p.k, batch, key, shared), *const v = attention_row<T>(p.v, batch, key, shared);
        float product = 0, change = 0;
        for (int c = lane; c < p.at.d; c += WARP) product = fused(T::get(q[c]), T::get(k[c]), product), change = fused(T::get(dout[c]), T::get(v[c]), change);
        const float ds = attention_pair_of(p.at, query, key, group_sum<WARP>(product), group_sum<WARP>(change)).ds;
#pragma unroll
        for (int i = 0; i < D / WARP; i++)
            if (lane + i * WARP < p.at.d) dq[i] = fused(ds, T::get(k[lane + i * WARP]), dq[i]);
    }
    typename T::bits *const to = attention_row<T>(p.dq, batch, token, head);
    sync_warp();
#pragma unroll
    for (int i = 0; i < D / WARP; i++)
        if (lane + i * WARP < p.at.d) to[lane + i * WARP] = T::put(query.sees.bad() ? not_a_number() : dq[i] * p.at.scale);
}

template <class T, int D, int KEYS> DEVICE void attention_mma_queries(const attention_backward_params &p) {
    enum { ROWS_BYTES = ATTENTION_SIDE * 2 * D, TILE = KEYS * 2 * D };
    char *const q = launch_memory(), *const dout = q + ROWS_BYTES, *const stages = dout + ROWS_BYTES;
    const attention_place at = attention_place_of(p.at, p.tiles, p.columns, ATTENTION_SIDE, D, p.at.h);
    const int row = at.first + thread_index() / WARP * 16 + thread_index() % WARP / 4, head = at.head / p.at.group, count = p.at.sq - at.first;
    const attention_sight first = attention_keys_of(p.at, at.first), last = attention_keys_of(p.at, at.first + lesser(count, ATTENTION_SIDE) - 1);
    const attention_rows rows = attention_rows_of(p.at, row);
    const attention_statistic statistic[2] = { attention_statistic_of(p, at.batch, row, at.head, row < p.at.sq),
                                               attention_statistic_of(p, at.batch, row + 8, at.head, row + 8 < p.at.sq) };
    attention_left_operand<D, ATTENTION_SIDE, 1, D <= 64> left_q(q), left_dout(dout);
    float dq[1][D / 2] = {};
    const int tiles = (greater(last.high - first.low, 0) + KEYS - 1) / KEYS;
    const attention_copies<T, D, KEYS> keys(p.k, at.batch, head, p.at.d, p.wide), values(p.v, at.batch, head, p.at.d, p.wide);
    const auto copy = [&](int tile) {
        const int key = first.low + tile * KEYS;
        char *const to = stages + tile % 2 * 2 * TILE;
        if (tile < tiles) keys.copy(to, key, last.high - key), values.copy(to + TILE, key, last.high - key);
        copy_commit();
    };
    if (tiles > 0) {
        attention_copies<T, D, ATTENTION_SIDE>(p.q, at.batch, at.head, p.at.d, p.wide).copy(q, at.first, count);
        attention_copies<T, D, ATTENTION_SIDE>(p.dout, at.batch, at.head, p.at.d, p.wide).copy(dout, at.first, count);
    }
    copy(0);
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        const int key = first.low + tile * KEYS;
        const char *const k = stages + tile % 2 * 2 * TILE;
        float s[1][KEYS / 2], change[1][KEYS / 2];
        copy_wait<0>();
        sync_block();
        if (tile == 0) left_q.load(), left_dout.load();
        copy(tile + 1);
        attention_mma_scores<T, D, KEYS>(s, left_q, k);
        attention_mma_scores<T, D, KEYS>(change, left_dout, k + TILE);
        attention_mma_weigh(s[0], change[0], p, rows, key, key < last.low || key + KEYS > first.high, [&](int i) { return statistic[i / 2 % 2]; });
        attention_mma_values<T, D, KEYS>(dq, change, k);
    }
    bool again[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int token = row + r * 8;
        const bool exists = token < p.at.sq;
        attention_write_row<T, D>(attention_row<T>(p.dq, at.batch, exists ? token : 0, at.head), dq[0], r, p.at.scale, false, p.at.d, exists, p.wide);
        again[r] = exists && (rows.sees[r].bad() || attention_spoilt(dq[0], r));
    }
    if (!any_of_warp(again[0] || again[1])) return;
    sync_warp();
#pragma unroll 1
    for (int r = 0; r < 16; r++)
        if (any_of_warp(thread_index() % WARP / 4 == r % 8 && (r < 8 ? again[0] : again[1])))
            attention_redo_query<T, D>(p, at.batch, at.head, row - thread_index() % WARP / 4 + r);
}

/* ------------------------------------------------------------------------------------------------------------------ dk and dv */

/* COLUMNS of one key's dk and dv, by a warp, from what sees it alone. */
template <class T, int COLUMNS> DEVICE void attention_redo_key(const attention_backward_params &p, const attention_place &at, int key) {
    const int lane = thread_index() % WARP;
    const attention_sight sees = attention_queries_of(p.at, key);
    const typename T::bits *const k = attention_row<T>(p.k, at.batch, key, at.head), *const v = attention_row<T>(p.v, at.batch, key, at.head);
    float dk[COLUMNS / WARP] = {}, dv[COLUMNS / WARP] = {};
#pragma unroll 1
    for (int head = at.head * p.at.group; head < (at.head + 1) * p.at.group; head++)
#pragma unroll 1
        for (int token = sees.low; token < sees.high; token++) {
            const attention_query query = attention_query_of(p, at.batch, token, head);
            const typename T::bits *const q = attention_row<T>(p.q, at.batch, token, head), *const dout = attention_row<T>(p.dout, at.batch, token, head);
            float product = 0, change = 0;
            if (!query.sees.has(key)) continue;
            for (int c = lane; c < p.at.d; c += WARP)
                product = fused(T::get(q[c]), T::get(k[c]), product), change = fused(T::get(dout[c]), T::get(v[c]), change);
            const attention_pair pair = attention_pair_of(p.at, query, key, group_sum<WARP>(product), group_sum<WARP>(change));
#pragma unroll
            for (int i = 0; i < COLUMNS / WARP; i++) {
                const int c = at.column + lane + i * WARP;
                if (c < p.at.d) dk[i] = fused(pair.ds, T::get(q[c]), dk[i]), dv[i] = fused(pair.p, T::get(dout[c]), dv[i]);
            }
        }
    typename T::bits *const to_k = attention_row<T>(p.dk, at.batch, key, at.head), *const to_v = attention_row<T>(p.dv, at.batch, key, at.head);
    sync_warp();
#pragma unroll
    for (int i = 0; i < COLUMNS / WARP; i++) {
        const int c = at.column + lane + i * WARP;
        if (c >= p.at.d) continue;
        to_k[c] = T::put(sees.bad() ? not_a_number() : dk[i] * p.at.scale);
        to_v[c] = T::put(sees.bad() ? not_a_number() : dv[i]);
    }
}

template <class T, int COLUMNS>
DEVICE void attention_keys_end(const attention_backward_params &p, const attention_place &at, int row, const float (&dk)[COLUMNS / 2],
                               const float (&dv)[COLUMNS / 2], const attention_rows &rows) {
    bool again[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int token = row + r * 8, columns = p.at.d - at.column;
        const bool exists = token < p.at.sk;
        attention_write_row<T, COLUMNS>(attention_row<T>(p.dk, at.batch, exists ? token : 0, at.head) + at.column, dk, r, p.at.scale, false, columns, exists,
                                        p.wide);
        attention_write_row<T, COLUMNS>(attention_row<T>(p.dv, at.batch, exists ? token : 0, at.head) + at.column, dv, r, 1.0f, false, columns, exists, p.wide);
        again[r] = exists && (rows.sees[r].bad() || attention_spoilt(dk, r) || attention_spoilt(dv, r));
    }
    if (!any_of_warp(again[0] || again[1])) return;
    sync_warp();
#pragma unroll 1
    for (int r = 0; r < 16; r++)
        if (any_of_warp(thread_index() % WARP / 4 == r % 8 && (r < 8 ? again[0] : again[1])))
            attention_redo_key<T, COLUMNS>(p, at, row - thread_index() % WARP / 4 + r);
}

template <class T, int D, int QUERIES, int COLUMNS> DEVICE void attention_mma_keys(const attention_backward_params &p) {
    enum { ROWS_BYTES = ATTENTION_SIDE * 2 * D, TILE = QUERIES * 2 * D };
    char *const k = launch_memory(), *const v = k + ROWS_BYTES, *const stages = v + ROWS_BYTES;
    attention_statistic *const statistics = (attention_statistic *)(stages + 4 * TILE);
    const attention_place at = attention_place_of(p.at, p.tiles, p.columns, ATTENTION_SIDE, COLUMNS, p.at.h / p.at.group);
    const int row = at.first + thread_index() / WARP * 16 + thread_index() % WARP / 4, count = p.at.sk - at.first;
    const attention_sight first = attention_queries_of(p.at, at.first), last = attention_queries_of(p.at, at.first + lesser(count, ATTENTION_SIDE) - 1);
    attention_rows rows = { { { 0, 0 }, { 0, 0 } }, { 0, 0 }, { 0, 0 }, { 0, 0 } };
#pragma unroll
    for (int r = 0; r < 2; r++)
        if (row + r * 8 < p.at.sk) rows.sees[r] = attention_queries_of(p.at, row + r * 8);
    attention_left_operand<D, ATTENTION_SIDE, 1, false> left_k(k), left_v(v);
    float dk[1][COLUMNS / 2] = {}, dv[1][COLUMNS / 2] = {};
    const int tiles = (greater(last.high - first.low, 0) + QUERIES - 1) / QUERIES, steps = tiles * p.at.group;
    const auto copy = [&](int step) {
        const int token = first.low + step % tiles * QUERIES, head = at.head * p.at.group + step / tiles;
        char *const to = stages + step % 2 * 2 * TILE;
        attention_copies<T, D, QUERIES>(p.q, at.batch, head, p.at.d, p.wide).copy(to, token, last.high - token);
        attention_copies<T, D, QUERIES>(p.dout, at.batch, head, p.at.d, p.wide).copy(to + TILE, token, last.high - token);
        copy_commit();
        if (thread_index() < QUERIES)
            statistics[step % 2 * QUERIES + thread_index()] =
                attention_statistic_of(p, at.batch, token + thread_index(), head, token + thread_index() < last.high);
    };
    if (steps > 0) {
        attention_copies<T, D, ATTENTION_SIDE>(p.k, at.batch, at.head, p.at.d, p.wide).copy(k, at.first, count);
        attention_copies<T, D, ATTENTION_SIDE>(p.v, at.batch, at.head, p.at.d, p.wide).copy(v, at.first, count);
        copy(0);
    }
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const int token = first.low + step % tiles * QUERIES;
        const char *const q = stages + step % 2 * 2 * TILE;
        const attention_statistic *const statistic = statistics + step % 2 * QUERIES + thread_index() % 4 * 2;
        float s[1][QUERIES / 2], change[1][QUERIES / 2];
        copy_wait<0>();
        sync_block();
        if (step + 1 < steps) copy(step + 1);
        attention_mma_scores<T, D, QUERIES>(s, left_k, q);
        attention_mma_scores<T, D, QUERIES>(change, left_v, q + TILE);
        attention_mma_weigh(s[0], change[0], p, rows, token, token < last.low || token + QUERIES > first.high,
                            [&](int i) { return statistic[i / 4 * 8 + i % 2]; });
        const char *const columns = q + at.column / 64 * (QUERIES * 128);
        attention_mma_values<T, COLUMNS, QUERIES>(dv, s, columns + TILE);
        attention_mma_values<T, COLUMNS, QUERIES>(dk, change, columns);
    }
    attention_keys_end<T, COLUMNS>(p, at, row, dk[0], dv[0], rows);
}

#endif
