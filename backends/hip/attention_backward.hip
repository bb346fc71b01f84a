/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CDNA devices: dout . o of each query first; then dq by blocks of 64 queries that walk over the keys, and dk and dv by blocks of 64 keys
 * that walk over the queries of their heads. Scores are computed in both, and nothing is added by atomics. As in attention, a lane has one row of its own and
 * all products are turned over. */
#include "attention_backward.h"

#include "attention_tile.h"

template <class T> DEVICE void attention_delta(const attention_backward_params &p) {
    const attention_params &f = p.forward;
    const int64_t row = block_index() * (TILE_THREADS / WARP) + thread_index() / WARP;
    if (row >= f.b * f.h * f.sq) return;
    const int64_t batch = row / (f.h * f.sq), head = row / f.sq - batch * f.h, query = row - (batch * f.h + head) * f.sq;
    const lane l = { thread_index() % WARP * VECTOR, f.d, p.dout.wide && f.o.wide };
    float x[VECTOR], y[VECTOR], sum = 0;
    load<T>(x, attention_row<T>(p.dout, batch, query, head), l);
    load<T>(y, attention_row<T>(f.o, batch, query, head), l);
#pragma unroll
    for (int k = 0; k < VECTOR; k++) sum = fused(x[k], y[k], sum);
    sum = group_sum<WARP>(sum);
    if (thread_index() % WARP == 0) p.delta[row] = sum;
}

/* p = exp(z - lse) of a pair that counts, and ds = p (dp - delta) dz/ds. */
struct attention_weights {
    float p, ds;
};
DEVICE attention_weights attention_weigh(const attention_params &f, float product, float dp, float lse, float delta) {
    const float s = product * f.scale, t = f.cap > 0 ? tanh_of(s / f.cap) : 0, z = f.cap > 0 ? f.cap * t : s;
    const float p = exp2_approx((z - lse) * LOG2E);
    return { p, p * (dp - delta) * ((1 - t) * (1 + t)) };
}

template <class T, int D> struct attention_backward_block {
    using bits = typename T::bits;
    static constexpr int DEPTH = TILE_BYTES / sizeof(bits), STEPS = D < 256 ? 2 : 1, ROWS = STEPS * DEPTH, STRIPS = ROWS / 16, PARTS = D / 16;
    using row_tiles = row_tile<T, D, ROWS>;
    using turned_tiles = turned_tile<T, D, ROWS>;
    static constexpr int PIECES = row_tiles::PIECES;
    static_assert(row_tiles::SIZE == turned_tiles::SIZE, "a tile takes the place of another");

    struct lds {
        chunk tile[2][row_tiles::SIZE];
        careful_lds careful;
        float lse[ROWS], delta[ROWS];
    };

    /* Where a lane's own row is, of so many tiles in each head. */
    struct place {
        int64_t batch, head, row;
    };
    static DEVICE place place_of(int64_t rows, int64_t heads) {
        const int64_t tiles = (rows + ATTENTION_QUERIES - 1) / ATTENTION_QUERIES, line = block_index() / tiles, tile = block_index() - line * tiles;
        const int64_t batch = line / heads, wave = thread_index() / WARP;
        return { batch, line - batch * heads, tile * ATTENTION_QUERIES + wave * 16 + thread_index() % 16 };
    }

    static DEVICE void queries(const attention_backward_params &p) {
        SHARED lds m;
        const attention_params &f = p.forward;
        const place me = place_of(f.sq, f.h);
        const int64_t group = me.head / (f.h / f.hk);
        const bool mine = me.row < f.sq;
        const float lse = mine ? f.lse.data[me.batch * f.lse.batch + me.head * f.lse.head + me.row] : -infinity();
        const float delta = mine ? p.delta[(me.batch * f.h + me.head) * f.sq + me.row] : 0;
        attention_span keys = attention_seen(f, me.row, true);
        if (lse == -infinity()) keys = { 0, 0 };
        chunk q[PIECES], dout[PIECES];
        load_own<T, row_tiles>(q, f.q, me.batch, me.row, f.sq, me.head, f.d);
        load_own<T, row_tiles>(dout, p.dout, me.batch, me.row, f.sq, me.head, f.d);
        f32x4 dq[PARTS] = {};
        const attention_span range = attention_range(keys);
        for (int64_t at = range.first; at < range.last; at += ROWS) {
            f32x4 s[STRIPS], dp[STRIPS];
            uint32_t unseen = 0;
            row_tiles::load(m.tile[0], f.k, me.batch, at, range.last, group, f.d);
            row_tiles::load(m.tile[1], f.v, me.batch, at, range.last, group, f.d);
            sync_block();
            multiply_rows<T, row_tiles>(s, m.tile[0], q);
            multiply_rows<T, row_tiles>(dp, m.tile[1], dout);
#pragma unroll
            for (int j = 0; j < STRIPS; j++)
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const int64_t key = at + j * 16 + thread_index() % WARP / 16 * 4 + r;
                    const bool seen = key >= keys.first && key < keys.last;
                    unseen |= (uint32_t)!seen << (j * 4 + r);
                    s[j][r] = seen ? attention_weigh(f, s[j][r], dp[j][r], lse, delta).ds : 0.0f;
                }
            sync_block();
            const bool odd = any_of_block(turned_tiles::load(m.tile[0], f.k, me.batch, at, range.last, group, f.d));
            add_rows<T, turned_tiles>(dq, s, unseen, m.tile[0], odd, m.careful);
            sync_block();
        }
        if (mine) store_own<T>(dq, f.scale, p.dq, me.batch, me.row, me.head, f.d);
    }

    /* One head's queries of a tile. */
    static DEVICE void add_queries(f32x4 (&dk)[PARTS], f32x4 (&dv)[PARTS], const chunk (&k)[PIECES], const chunk (&v)[PIECES],
                                   const attention_backward_params &p, const place &me, const attention_span &seen_by, int64_t head, int64_t at, int64_t end,
                                   lds &m) {
        const attention_params &f = p.forward;
        f32x4 s[STRIPS], dp[STRIPS];
        uint32_t unseen = 0;
        row_tiles::load(m.tile[0], f.q, me.batch, at, end, head, f.d);
        row_tiles::load(m.tile[1], p.dout, me.batch, at, end, head, f.d);
        if (thread_index() < ROWS) {
            const int64_t query = at + thread_index();
            m.lse[thread_index()] = query < end ? f.lse.data[me.batch * f.lse.batch + head * f.lse.head + query] : -infinity();
            m.delta[thread_index()] = query < end ? p.delta[(me.batch * f.h + head) * f.sq + query] : 0;
        }
        sync_block();
        multiply_rows<T, row_tiles>(s, m.tile[0], k);
        multiply_rows<T, row_tiles>(dp, m.tile[1], v);
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int row = j * 16 + thread_index() % WARP / 16 * 4 + r;
                const bool seen = at + row >= seen_by.first && at + row < seen_by.last && m.lse[row] != -infinity();
                const attention_weights w = attention_weigh(f, s[j][r], dp[j][r], m.lse[row], m.delta[row]);
                unseen |= (uint32_t)!seen << (j * 4 + r);
                s[j][r] = seen ? w.p : 0.0f;
                dp[j][r] = seen ? w.ds : 0.0f;
            }
        sync_block();
        const bool odd_q = turned_tiles::load(m.tile[0], f.q, me.batch, at, end, head, f.d);
        const bool odd_dout = turned_tiles::load(m.tile[1], p.dout, me.batch, at, end, head, f.d);
        const bool odd = any_of_block(odd_q || odd_dout);
        add_rows<T, turned_tiles>(dk, dp, unseen, m.tile[0], odd, m.careful);
        add_rows<T, turned_tiles>(dv, s, unseen, m.tile[1], odd, m.careful);
        sync_block();
    }

    static DEVICE void keys(const attention_backward_params &p) {
        SHARED lds m;
        const attention_params &f = p.forward;
        const place me = place_of(f.sk, f.hk);
        const attention_span seen_by = attention_seen(f, me.row, false);
        chunk k[PIECES], v[PIECES];
        load_own<T, row_tiles>(k, f.k, me.batch, me.row, f.sk, me.head, f.d);
        load_own<T, row_tiles>(v, f.v, me.batch, me.row, f.sk, me.head, f.d);
        f32x4 dk[PARTS] = {}, dv[PARTS] = {};
        const attention_span range = attention_range(seen_by);
        const int64_t group = f.h / f.hk;
        for (int64_t head = me.head * group; head < (me.head + 1) * group; head++)
            for (int64_t at = range.first; at < range.last; at += ROWS) add_queries(dk, dv, k, v, p, me, seen_by, head, at, range.last, m);
        if (me.row >= f.sk) return;
        store_own<T>(dk, f.scale, p.dk, me.batch, me.row, me.head, f.d);
        store_own<T>(dv, 1, p.dv, me.batch, me.row, me.head, f.d);
    }
};

#define DELTA(T) \
    ENTRY(attention_backward_delta_##T, TILE_THREADS, attention_backward_params) { attention_delta<T>(p); }
#define BACKWARD(T, D) \
    ENTRY(attention_backward_queries_##T##_##D, TILE_THREADS, attention_backward_params) { attention_backward_block<T, D>::queries(p); } \
    ENTRY(attention_backward_keys_##T##_##D, TILE_THREADS, attention_backward_params) { attention_backward_block<T, D>::keys(p); }
#define BACKWARD_HEADS(T) DELTA(T) BACKWARD(T, 64) BACKWARD(T, 128) BACKWARD(T, 256)
BACKWARD_HEADS(f32)
BACKWARD_HEADS(bf16)
BACKWARD_HEADS(f16)
