/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention for which beats (attention_beat.h) have no registers or no LDS: of float32, and of heads
 * beyond 128. A wave has 16 rows; what passes goes through LDS twice, by rows and then turned, either on its way from
 * memory while the other is multiplied. */
#ifndef TRINE_HIP_ATTENTION_PLAIN_H
#define TRINE_HIP_ATTENTION_PLAIN_H

#include "attention_backward.h"
#include "attention_tile.h"

/* By wave: 16 rows of weights for each of 16 lanes, and which of a lane's own are unseen. */
template <int THREADS> struct careful_lds {
    float weight[THREADS / WARP][16][16];
    uint32_t unseen[THREADS / WARP][WARP];
};

/* Adds turned rows times weights to a lane's sums, row by row in float, those it does not see left out: a weight of 0
 * would not hide Inf or NaN. Seldom needed, and so written for few registers. */
template <class Tile, int PARTS, int STRIPS, int THREADS>
DEVICE void add_carefully(f32x4 (&sums)[PARTS], const f32x4 (&weight)[STRIPS], uint32_t unseen, const chunk *tile,
                          careful_lds<THREADS> &m) {
    const int thread = thread_index() % WARP, wave = thread_index() / WARP, lane = thread % 16;
    m.unseen[wave][thread] = unseen;
#pragma unroll
    for (int j = 0; j < STRIPS; j++) {
#pragma unroll
        for (int r = 0; r < 4; r++) m.weight[wave][thread / 16 * 4 + r][lane] = weight[j][r];
        sync_warp();
#pragma unroll 1
        for (int row = 0; row < 16; row++) {
            if (m.unseen[wave][row / 4 * 16 + lane] >> (j * 4 + row % 4) & 1) continue;
            const float w = m.weight[wave][row][lane];
#pragma unroll
            for (int i = 0; i < PARTS; i++) {
                const int first = afresh(i * 16 + thread / 16 * 4), at = afresh(j * 16 + row);
#pragma unroll
                for (int r = 0; r < 4; r++) sums[i][r] = fused(w, Tile::element(tile, first + r, at), sums[i][r]);
            }
        }
        sync_warp();
    }
}

/* The one instead of the other where rows are `odd` or a weight does not fit T: weights are 0 afterwards, so that the
 * matrix unit may follow in any case, which costs no copies of the sums. Bit 4 j + r of `unseen`: weight[j][r] is 0
 * because it must not count. */
template <class T, class Tile, int PARTS, int STRIPS, int THREADS>
DEVICE void add_odd_rows(f32x4 (&sums)[PARTS], f32x4 (&weight)[STRIPS], uint32_t unseen, const chunk *tile, bool odd,
                         careful_lds<THREADS> &m) {
    float most = 0;
#pragma unroll
    for (int n = 0; n < STRIPS * 4; n++) most = larger(most, magnitude(sum_of(weight, n)));
    if (!any_of_warp(odd || rounded<T>(most) == infinity())) return;
    add_carefully<Tile>(sums, weight, unseen, tile, m);
#pragma unroll
    for (int j = 0; j < STRIPS; j++) weight[j] = f32x4{};
}

/* From products to p = exp(z - lse) in s, as far as it is kept, but for dropout's scale, and ds = p (dp - delta) dz/ds
 * in dp; with OPTIONS also dz, ds without the derivative. What is subtracted comes negated, by strips: there is a
 * packed addition. */
template <bool OPTIONS, int STRIPS, class Columns, class Options>
DEVICE void attention_weigh(f32x4 (&s)[STRIPS], f32x4 (&dp)[STRIPS], f32x4 (&dz)[STRIPS], const attention_params &f,
                            const Columns &minus, const Options &options) {
    uint32_t keeps = ~0u;
    if constexpr (OPTIONS) keeps = options.template keeps<STRIPS>();
#pragma unroll
    for (int j = 0; j < STRIPS; j++) {
        s[j] *= f.scale;
#pragma unroll
        for (int r = 0; OPTIONS && r < 4; r++) dp[j][r] = keeps >> (j * 4 + r) & 1 ? dp[j][r] * f.options.keeps : 0.0f;
        dp[j] += minus.delta(j);
        if (OPTIONS) dz[j] = dp[j];
    }
    if (f.cap > 0) {
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const float t = tanh_of(s[j][r] / f.cap);
                s[j][r] = f.cap * t;
                dp[j][r] *= (1 - t) * (1 + t);
            }
    }
#pragma unroll
    for (int j = 0; j < STRIPS; j++) {
        if constexpr (OPTIONS)
#pragma unroll
            for (int r = 0; r < 4; r++) s[j][r] = options.add(j * 16 + r, s[j][r]);
        s[j] = (s[j] + minus.lse(j)) * LOG2E;
#pragma unroll
        for (int r = 0; r < 4; r++) s[j][r] = exp2_approx(s[j][r] > 0 ? 0 : s[j][r]); /* of a coarse lse */
        dp[j] *= s[j];
        if (OPTIONS) dz[j] *= s[j];
#pragma unroll
        for (int r = 0; OPTIONS && r < 4; r++) s[j][r] = keeps >> (j * 4 + r) & 1 ? s[j][r] : 0.0f;
    }
}

/* The options of a lane's own query, and of the keys from `at` on that pass. */
template <class T> struct attention_options_of_query {
    const attention_params &f;
    const simt_dropout &dropout;
    const attention_terms<T, true> &terms;
    int64_t at;
    DEVICE float add(int row, float z) const { return terms.add(f.options, at + row, z); }
    template <int STRIPS> DEVICE uint32_t keeps() const {
        uint32_t bits = 0;
#pragma unroll
        for (int j = 0; j < STRIPS; j++) bits |= (terms.template keeps_run<4>(dropout, at + j * 16) & 15) << (4 * j);
        return bits;
    }
};
/* Of a lane's own key, and of the queries of a head from `at` on that pass. */
template <class T> struct attention_options_of_rows {
    const attention_params &f;
    const simt_dropout &dropout;
    int64_t batch, head, at, key;
    DEVICE attention_terms<T, true> terms(int row) const {
        const int64_t query = at + row;
        return attention_terms_of<T, true>(f, batch, head, query < f.sq ? query : f.sq - 1);
    }
    DEVICE float add(int row, float z) const { return terms(row).add(f.options, key, z); }
    template <int STRIPS> DEVICE uint32_t keeps() const {
        uint32_t bits = 0;
        if (!(dropout.p > 0)) return ~0u;
#pragma unroll 1
        for (int n = 0; n < 4 * STRIPS; n++) bits |= (uint32_t)terms(n / 4 * 16 + n % 4).keeps(dropout, key) << n;
        return bits;
    }
};

/* An element of dbias. */
template <class T> DEVICE void attention_put_bias(const attention_backward_params &p, int64_t to, float dz) {
    if (p.forward.options.wide)
        ((float *)p.dbias)[to] = dz;
    else
        ((typename T::bits *)p.dbias)[to] = T::put(dz);
}
DEVICE int64_t attention_bias_row(const attention_backward_params &p, int64_t batch, int64_t head, int64_t query) {
    return batch * p.dbias_batch + head * p.dbias_head + query * p.dbias_query;
}

/* dbias becomes 0, a row for each block. */
template <class T> DEVICE void attention_clear(const attention_backward_params &p) {
    const int64_t sq = p.forward.sq, row = block_index(), plane = row / sq, batch = plane / p.forward.h;
    const int64_t to = attention_bias_row(p, batch, plane - batch * p.forward.h, row - plane * sq);
    for (int64_t j = thread_index(); j < p.forward.sk; j += TILE_THREADS) attention_put_bias<T>(p, to + j, 0.0f);
}

/* dsinks, a head for each block: what queries say of their sinks, each thread of every so many. */
template <class T> DEVICE void attention_sum_sinks(const attention_backward_params &p) {
    const attention_params &f = p.forward;
    const int64_t head = block_index();
    const float sink = attention_sink_of<T>(f.options, head);
    double sum = 0;
    for (int64_t i = thread_index(); i < f.b * f.sq; i += TILE_THREADS) {
        const int64_t batch = i / f.sq, query = i - batch * f.sq;
        const float lse = f.lse.data[batch * f.lse.batch + head * f.lse.head + query],
                    delta = p.delta[(batch * f.h + head) * f.sq + query], z = (sink - lse) * LOG2E;
        if (lse == -infinity() || !attention_sequence_of(f, batch, query, true).counts) continue;
        sum -= (double)exp2_approx(z > 0 ? 0 : z) * delta;
    }
    sum = group_sum<TILE_THREADS>(sum);
    if (thread_index() != 0) return;
    if (f.options.wide_sinks)
        ((float *)p.dsinks)[head] = (float)sum;
    else
        ((typename T::bits *)p.dsinks)[head] = T::put((float)sum);
}

template <class T, int D, bool OPTIONS = false> struct attention_plain_block {
    using bits = typename T::bits;
    static constexpr int THREADS = TILE_THREADS, OWN = THREADS / WARP * 16;
    static constexpr int DEPTH = TILE_BYTES / sizeof(bits), ROWS = (D < 256 ? 2 : 1) * DEPTH, STRIPS = ROWS / 16,
                         PARTS = D / 16;
    using row_tiles = row_tile<T, D, ROWS, THREADS>;
    using turned_tiles = turned_tile<T, D, ROWS, THREADS>;
    using weights = f32x4[STRIPS];
    static constexpr int PIECES = row_tiles::PIECES;
    static_assert(row_tiles::SIZE == turned_tiles::SIZE, "a tile takes the place of another");

    struct lds {
        chunk tile[2][row_tiles::SIZE];
        careful_lds<THREADS> careful;
        f32x4 minus_lse[ROWS / 4], minus_delta[ROWS / 4];
        bool odd[THREADS / WARP]; /* by wave: it brought Inf or NaN */
        bool silent;              /* there are queries among the rows that see nothing */
    };

    /* Where a lane's own row is, of so many tiles in each head. */
    struct place {
        int64_t batch, head, row;
    };
    static DEVICE place place_of(const attention_params &f, int64_t rows, int64_t heads) {
        const auto [batch, head, tile] = attention_place_of(f, heads, (rows + OWN - 1) / OWN);
        return { batch, head, tile * OWN + thread_index() / WARP * 16 + thread_index() % 16 };
    }

    static DEVICE int group() { return thread_index() % WARP / 16; }
    /* Of the first row of a strip that a lane has a weight of. */
    static DEVICE int place_in_strip() { return group() * 4; }

    /* What a lane's row sees of dbias, for keys from `at` on. */
    static DEVICE void put_bias(const weights &dz, const attention_backward_params &p, const place &me,
                                const attention_span &seen, int64_t at) {
        const int64_t to = attention_bias_row(p, me.batch, me.head, me.row);
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                if (at + j * 16 + r >= seen.first && at + j * 16 + r < seen.last)
                    attention_put_bias<T>(p, to + at + j * 16 + r, dz[j][r]);
    }

    /* Weights of rows outside of `seen`, or of queries without an lse, become 0, and are bits of the result. */
    static DEVICE uint32_t hide(weights &s, weights &dp, const attention_span &seen, int64_t at,
                                const f32x4 *minus_lse) {
        const int64_t own = at + group() * 4;
        const int first = within_tile<ROWS>(seen.first - own), last = within_tile<ROWS>(seen.last - own);
        uint32_t unseen = 0;
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int row = j * 16 + r;
                const bool hidden =
                    row < first || row >= last || (minus_lse && minus_lse[j * 4 + group()][r] == infinity());
                s[j][r] = hidden ? 0 : s[j][r];
                dp[j][r] = hidden ? 0 : dp[j][r];
                unseen |= (uint32_t)hidden << (j * 4 + r);
            }
        return unseen;
    }

    /* What is subtracted of a lane's own query, or of the queries of a tile. */
    struct of_query {
        float minus_lse, minus_delta;
        DEVICE f32x4 lse(int) const { return minus_lse; }
        DEVICE f32x4 delta(int) const { return minus_delta; }
    };
    struct of_rows {
        const lds &m;
        DEVICE f32x4 lse(int j) const { return m.minus_lse[j * 4 + group()]; }
        DEVICE f32x4 delta(int j) const { return m.minus_delta[j * 4 + group()]; }
    };

    /* Is the tile at `at` in sight of all rows of the block? */
    static DEVICE bool in_sight(const attention_span &whole, int64_t at) {
        return at >= whole.first && at + ROWS <= whole.last;
    }

    static DEVICE void note_odd(bool odd, lds &m) {
        odd = any_of_warp(odd);
        if (thread_index() % WARP == 0) m.odd[thread_index() / WARP] = odd;
    }
    static DEVICE bool any_odd(const lds &m) { return any_of_warp(m.odd[thread_index() % (THREADS / WARP)]); }

    static DEVICE void queries(const attention_backward_params &p) {
        SHARED lds m;
        const attention_params &f = p.forward;
        const place me = place_of(f, f.sq, f.h);
        const int64_t group = me.head / (f.h / f.hk);
        const bool mine = me.row < f.sq;
        const float lse = mine ? f.lse.data[me.batch * f.lse.batch + me.head * f.lse.head + me.row] : infinity();
        const float delta = mine ? p.delta[(me.batch * f.h + me.head) * f.sq + me.row] : 0;
        attention_span keys = attention_seen(f, me.batch, me.row, true);
        if (lse == -infinity()) keys = { 0, 0 };
        chunk q[PIECES], dout[PIECES];
        load_own<T, row_tiles>(q, f.q, me.batch, me.row, f.sq, me.head, f.d);
        load_own<T, row_tiles>(dout, p.dout, me.batch, me.row, f.sq, me.head, f.d);
        f32x4 dq[PARTS] = {};
        const attention_span range = attention_range<THREADS>(keys);
        if (!mine) keys = range;
        const attention_span whole = attention_common<THREADS>(keys);
        typename row_tiles::part k(f.k, me.batch, group, f.d), v(f.v, me.batch, group, f.d);
        typename turned_tiles::part turned(f.k, me.batch, group, f.d);
        const simt_dropout dropout = attention_dropout_of<OPTIONS>(f.options);
        const auto terms = attention_terms_of<T, OPTIONS>(f, me.batch, me.head, mine ? me.row : f.sq - 1);
        k.load(range.first, range.last);
        v.load(range.first, range.last);
        for (int64_t at = range.first; at < range.last; at += ROWS) {
            weights s, dp, dz;
            uint32_t unseen = 0;
            k.store(m.tile[0]);
            v.store(m.tile[1]);
            sync_block();
            turned.load(at, range.last);
            multiply_rows<T, row_tiles>(s, m.tile[0], q);
            one_after_another();
            multiply_rows<T, row_tiles>(dp, m.tile[1], dout);
            if constexpr (OPTIONS)
                attention_weigh<true>(s, dp, dz, f, of_query{ -lse, -delta },
                                      attention_options_of_query<T>{ f, dropout, terms, at + place_in_strip() });
            else
                attention_weigh<false>(s, dp, dz, f, of_query{ -lse, -delta }, 0);
            if (!in_sight(whole, at)) unseen = hide(s, dp, keys, at, nullptr);
            if (OPTIONS && p.dbias && mine) put_bias(dz, p, me, keys, at + place_in_strip());
            sync_block();
            turned.store(m.tile[0]);
            note_odd(turned.odd(), m);
            sync_block();
            k.load(at + ROWS, range.last);
            v.load(at + ROWS, range.last);
            const bool odd = any_odd(m);
            add_odd_rows<T, turned_tiles>(dq, dp, unseen, m.tile[0], odd, m.careful);
            if (odd) make_finite<T, THREADS>(m.tile[0]);
            add_turned<T, turned_tiles>(dq, dp, m.tile[0]);
            sync_block();
        }
        if (mine) store_own<T>(dq, f.scale, p.dq, me.batch, me.row, me.head, f.d);
    }

    /* What a thread of the first wave brings of the queries: a NaN is one that pair_of_weights() keeps. */
    struct column {
        const float *lse, *delta;
        float l, d;
        DEVICE column(const attention_backward_params &p, const place &me, int64_t head)
            : lse(p.forward.lse.data + me.batch * p.forward.lse.batch + head * p.forward.lse.head),
              delta(p.delta + (me.batch * p.forward.h + head) * p.forward.sq) {}
        DEVICE void load(int64_t at, int64_t end) {
            const int64_t query = at + thread_index();
            const bool there = thread_index() < ROWS && thread_index() < end - at;
            const float x = there ? lse[query] : 0;
            l = x == x ? x : not_a_number();
            d = there ? delta[query] : 0;
        }
        DEVICE void store(lds &m) const {
            if (thread_index() >= WARP) return;
            const bool silent = any_of_warp(l == -infinity());
            if (thread_index() < ROWS)
                ((float *)m.minus_lse)[thread_index()] = -l, ((float *)m.minus_delta)[thread_index()] = -d;
            if (thread_index() == 0) m.silent = silent;
        }
    };

    /* Adds what a head's queries say of the lane's key. */
    static DEVICE void add_head(f32x4 (&dk)[PARTS], f32x4 (&dv)[PARTS], const chunk (&k)[PIECES],
                                const chunk (&v)[PIECES], const attention_backward_params &p, const place &me,
                                int64_t head, const attention_span &seen_by, const attention_span &range,
                                const attention_span &whole, lds &m) {
        const attention_params &f = p.forward;
        const simt_dropout dropout = attention_dropout_of<OPTIONS>(f.options);
        typename row_tiles::part q(f.q, me.batch, head, f.d), dout(p.dout, me.batch, head, f.d);
        typename turned_tiles::part turned_q(f.q, me.batch, head, f.d), turned_dout(p.dout, me.batch, head, f.d);
        column c(p, me, head);
        q.load(range.first, range.last);
        dout.load(range.first, range.last);
        c.load(range.first, range.last);
        for (int64_t at = range.first; at < range.last; at += ROWS) {
            weights s, dp, dz;
            uint32_t unseen = 0;
            q.store(m.tile[0]);
            dout.store(m.tile[1]);
            c.store(m);
            sync_block();
            turned_q.load(at, range.last);
            turned_dout.load(at, range.last);
            multiply_rows<T, row_tiles>(s, m.tile[0], k);
            multiply_rows<T, row_tiles>(dp, m.tile[1], v);
            if constexpr (OPTIONS)
                attention_weigh<true>(s, dp, dz, f, of_rows{ m },
                                      attention_options_of_rows<T>{ f, dropout, me.batch, head, at + place_in_strip(),
                                                                    me.row < f.sk ? me.row : f.sk - 1 });
            else
                attention_weigh<false>(s, dp, dz, f, of_rows{ m }, 0);
            if (!in_sight(whole, at) || any_of_warp(m.silent)) unseen = hide(s, dp, seen_by, at, m.minus_lse);
            sync_block();
            turned_q.store(m.tile[0]);
            turned_dout.store(m.tile[1]);
            note_odd(turned_q.odd() || turned_dout.odd(), m);
            sync_block();
            q.load(at + ROWS, range.last);
            dout.load(at + ROWS, range.last);
            c.load(at + ROWS, range.last);
            const bool odd = any_odd(m);
            add_odd_rows<T, turned_tiles>(dk, dp, unseen, m.tile[0], odd, m.careful);
            add_odd_rows<T, turned_tiles>(dv, s, unseen, m.tile[1], odd, m.careful);
            if (odd) make_finite<T, THREADS>(m.tile[0]), make_finite<T, THREADS>(m.tile[1]);
            add_turned<T, turned_tiles>(dk, dp, m.tile[0]);
            add_turned<T, turned_tiles>(dv, s, m.tile[1]);
            sync_block();
        }
    }

    static DEVICE void keys(const attention_backward_params &p) {
        SHARED lds m;
        const attention_params &f = p.forward;
        const place me = place_of(f, f.sk, f.hk);
        attention_span seen_by = attention_seen(f, me.batch, me.row, false);
        chunk k[PIECES], v[PIECES];
        load_own<T, row_tiles>(k, f.k, me.batch, me.row, f.sk, me.head, f.d);
        load_own<T, row_tiles>(v, f.v, me.batch, me.row, f.sk, me.head, f.d);
        f32x4 dk[PARTS] = {}, dv[PARTS] = {};
        const attention_span range = attention_range<THREADS>(seen_by);
        if (me.row >= f.sk) seen_by = range;
        const attention_span whole = attention_common<THREADS>(seen_by);
        const int64_t group = f.h / f.hk;
        for (int64_t head = me.head * group; head < (me.head + 1) * group; head++)
            add_head(dk, dv, k, v, p, me, head, seen_by, range, whole, m);
        if (me.row >= f.sk) return;
        store_own<T>(dk, f.scale, p.dk, me.batch, me.row, me.head, f.d);
        store_own<T>(dv, f.options.keeps, p.dv, me.batch, me.row, me.head, f.d);
    }
};

#endif
