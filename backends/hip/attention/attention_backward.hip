/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CDNA devices: dout . o of each query first; then dq by blocks of queries that walk over the
 * keys, and dk and dv by blocks of keys that walk over the queries of their heads, 32 rows for each of four waves,
 * which have a SIMD each (16 in attention_plain.h). Scores are computed in both, and nothing is added by atomics. As in
 * attention, a lane has one row of its own and all products are turned over. What passes goes through LDS twice, by
 * rows and turned.
 *
 * A product goes by beats (attention_beat.h). Beside one, weights are made of the products before it, the operands of
 * the next one are read, and what LDS holds of products that are done with it gives way to the next tile. Two barriers
 * a tile suffice: each part of LDS is written on one side of either, and read on the other. */
#include "attention_backward.h"

#include "attention_beat.h"
#include "attention_plain.h"

template <class T> DEVICE void attention_delta(const attention_backward_params &p) {
    const attention_params &f = p.forward;
    const int64_t row = block_index() * (TILE_THREADS / WARP) + thread_index() / WARP;
    if (row >= f.b * f.h * f.sq) return;
    const int64_t batch = row / (f.h * f.sq), head = row / f.sq - batch * f.h,
                  query = row - (batch * f.h + head) * f.sq;
    const lane l = { thread_index() % WARP * VECTOR, f.d, p.dout.wide && f.o.wide };
    float x[VECTOR], y[VECTOR], sum = 0;
    load<T>(x, attention_row<T>(p.dout, batch, query, head), l);
    load<T>(y, attention_row<T>(f.o, batch, query, head), l);
#pragma unroll
    for (int k = 0; k < VECTOR; k++) sum = fused(x[k], y[k], sum);
    sum = group_sum<WARP>(sum);
    if (thread_index() % WARP == 0) p.delta[row] = sum;
}

template <class T, int D> struct attention_backward_block {
    using beats = attention_beats<T, D>;
    using own = typename beats::own;
    using sums = typename beats::sums;
    using scores = typename beats::scores;
    using weights = typename beats::weights;
    using operands = typename beats::operands;
    using row_tiles = typename beats::row_tiles;
    using part = typename beats::turned_tiles::part;
    using weighing = attention_weighing<T, D>;
    static constexpr int THREADS = beats::THREADS, EDGE = beats::EDGE, OWN = THREADS / WARP * EDGE, ROWS = beats::ROWS,
                         STRIPS = beats::STRIPS, PARTS = beats::PARTS;
    static constexpr int SCORES = beats::SCORES, BEATS = beats::BEATS, LATER = BEATS / 2;

    /* NaN is one that pair_of_weights() keeps. */
    static DEVICE float kept(float x) { return x == x ? x : not_a_number(); }

    /* Is it too coarse for p? (spec/attention/attention.h) */
    static DEVICE bool is_coarse(float lse) {
        return magnitude(lse) >= ATTENTION_COARSE && magnitude(lse) < infinity();
    }

    /* Is this the beat for a quarter of what there is to do in the second half, in which no operands are read? */
    static constexpr DEVICE bool at(int beat, int quarter) { return beat == LATER + quarter * LATER / 4; }

    struct lds {
        chunk rows[2][row_tiles::SIZE], turned[2][row_tiles::SIZE];
        typename beats::careful_lds careful;
        f32x4 column[THREADS / WARP][2][8]; /* by wave: -lse log2(e) and -delta of the queries that pass */
        uint32_t odd[2][THREADS / WARP];    /* by wave: it brought Inf or NaN to a turned tile */
    };

    /* Where a lane's own row is, of so many tiles in each head. */
    struct place {
        int64_t batch, head, row;
    };
    static DEVICE place place_of(const attention_params &f, int64_t rows, int64_t heads) {
        const auto [batch, head, tile] = attention_place_of(f, heads, (rows + OWN - 1) / OWN);
        return { batch, head, tile * OWN + thread_index() / WARP * EDGE + own::lane() };
    }

    /* The rows that pass: those of `range`, of which a lane's own sees `mine`.
     * All of the block's own see some whole tiles. */
    struct walk {
        attention_span mine, range;
        int first_whole, past_whole;
        DEVICE walk(const attention_span &seen, bool there) : mine(seen), range(attention_range<THREADS>(seen)) {
            if (!there) mine = range;
            const attention_span whole = attention_common<THREADS>(mine);
            first_whole = (int)((whole.first - range.first + ROWS - 1) / ROWS);
            past_whole = whole.last > range.first ? (int)((whole.last - range.first) / ROWS) : 0;
        }
        DEVICE int64_t at(int tile) const { return range.first + (int64_t)tile * ROWS; }
        DEVICE bool in_sight(int tile) const { return (tile >= first_whole) & (tile < past_whole); }
        DEVICE bool fits() const { return range.last - range.first < INT32_MAX / 2; }
    };

    /* A tensor whose rows pass, a tile at a time on its way from memory. FITS: as load_fitting() wants it. */
    template <bool FITS> struct passing : part {
        const walk &w;
        const typename T::bits *begin;
        DEVICE passing(const walk &walk_, const attention_rows &r, int64_t batch, int64_t head, int64_t d)
            : part(r, batch, head, d), w(walk_), begin(this->head + w.range.first * r.row) {}
        DEVICE void fetch(int tile) {
            if constexpr (FITS)
                this->load_fitting(begin, tile * ROWS, (int)(w.range.last - w.range.first));
            else
                this->load(w.at(tile), w.range.last);
        }
        DEVICE void store_rows(chunk *tile) const { part::template store_rows<row_tiles>(tile); }
    };

    static DEVICE void note_odd(const part &x, uint32_t *odd) { odd[thread_index() / WARP] = any_of_warp(x.odd()); }
    static DEVICE uint32_t is_odd(const uint32_t *odd) { return odd[thread_index() % (THREADS / WARP)]; }

    /* The gradient of a lane's own query. While scores of a tile are made, the weights of the one before become what dq
     * is made of; while dp is, exponents. */
    template <bool FITS> struct query_walk {
        lds &m;
        const walk &keys;
        bool coarse; /* the lse of any query of the wave; minus_lse is of powers of 2 otherwise */
        float minus_lse, minus_delta;
        typename beats::row q, dout;
        sums (&dq)[PARTS];
        passing<FITS> k, v;
        part turned; /* of k what is in LDS by rows only */
        weighing w;
        scores p;
        operands x, y; /* of the first product, and of dp */
        uint32_t unseen;
        uint32_t odd;

        DEVICE query_walk(lds &m_, const walk &keys_, const attention_backward_params &b, const place &me, float lse,
                          float delta, sums (&dq_)[PARTS])
            : m(m_), keys(keys_), coarse(any_of_warp(is_coarse(lse))), minus_lse(kept(-lse * (coarse ? 1 : LOG2E))),
              minus_delta(kept(-delta)), dq(dq_),
              k(keys_, b.forward.k, me.batch, me.head / (b.forward.h / b.forward.hk), b.forward.d),
              v(keys_, b.forward.v, me.batch, me.head / (b.forward.h / b.forward.hk), b.forward.d), turned(k),
              w(b.forward) {
            const attention_params &f = b.forward;
            load_own<T, row_tiles>(q, f.q, me.batch, me.row, f.sq, me.head, f.d);
            load_own<T, row_tiles>(dout, b.dout, me.batch, me.row, f.sq, me.head, f.d);
            beats::settle(q);
            beats::settle(dout);
        }
        DEVICE void add(operands &z, weights &ds) {
            beats::add_odd_rows(dq, w.dp, w.most, unseen, m.turned[0], odd, m.careful, z, ds);
            beats::add(dq, z, ds, [&](int beat) { beats::read_rows(y, m.rows[1], beat); });
        }
        DEVICE void weigh(operands &z, weights &ds, int beat) {
            if (beat == 0) odd = is_odd(m.odd[0]);
            beats::read_turned(z, m.turned[0], beat);
            beats::each_pair(beat, [&](int n) { w.put_ds(ds, p, n); });
        }
        /* Scores and weights of a tile; and dq of the one before, if ADD. */
        template <bool ADD> DEVICE void step(int tile) {
            operands z;
            weights ds;
            chunk later[part::COUNT];
            w.most = 0;
#pragma unroll
            for (int j = 0; j < STRIPS; j++) w.s[j] = sums{};
            beats::multiply(w.s, x, q, [&](int beat) {
                if (ADD) weigh(z, ds, beat);
                if (!ADD) beats::read_rows(y, m.rows[1], beat);
                if (at(beat, 0)) k.store_rows(m.rows[0]);
                if (!at(beat, 3)) return;
                k.give(later);
                k.fetch(tile + 2);
            });
            if (ADD) add(z, ds);
            sync_block();
            w.limit();
            float minus = minus_lse;
            if (__builtin_expect(coarse, false)) {
                w.hold([&](int) { return minus_lse; });
                minus = 0;
            }
#pragma unroll
            for (int j = 0; j < STRIPS; j++) w.dp[j] = sums{} + minus_delta;
            beats::multiply(w.dp, y, dout, [&](int beat) {
                beats::read_rows(x, m.rows[0], beat);
                beats::each_pair(beat, [&](int n) { w.exponent(p, n, { minus, minus }); });
                if (at(beat, 0)) v.store_rows(m.rows[1]);
                if (at(beat, 1)) turned.store(m.turned[0]);
                if (at(beat, 2)) note_odd(turned, m.odd[0]);
                if (at(beat, 3)) v.fetch(tile + 2);
            });
            turned.take(later);
            unseen = 0;
            if (__builtin_expect(!keys.in_sight(tile) | w.capped, false))
                unseen = w.hide(p, keys.mine, keys.at(tile), [](int) { return false; });
            sync_block();
        }
        DEVICE void run() {
            const int tiles = (int)((keys.range.last - keys.range.first + ROWS - 1) / ROWS);
            k.fetch(0);
            v.fetch(0);
            k.store_rows(m.rows[0]);
            v.store_rows(m.rows[1]);
            turned.take(k.held);
            k.fetch(1);
            v.fetch(1);
            sync_block();
#pragma unroll
            for (int beat = 0; beat < LATER; beat++) beats::read_rows(x, m.rows[0], beat);
            sync_block();
            step<false>(0);
            for (int tile = 1; tile < tiles; tile++) step<true>(tile);
            operands z;
            weights ds;
            w.most = 0;
#pragma unroll
            for (int beat = 0; beat < BEATS; beat++) weigh(z, ds, beat);
            add(z, ds);
        }
    };

    static DEVICE void queries(const attention_backward_params &p) {
        SHARED lds m;
        const attention_params &f = p.forward;
        const place me = place_of(f, f.sq, f.h);
        const bool there = me.row < f.sq;
        const float lse = there ? f.lse.data[me.batch * f.lse.batch + me.head * f.lse.head + me.row] : infinity();
        const float delta = there ? p.delta[(me.batch * f.h + me.head) * f.sq + me.row] : 0;
        attention_span seen = attention_seen(f, me.batch, me.row, true);
        if (lse == -infinity()) seen = { 0, 0 };
        const walk keys(seen, there);
        sums dq[PARTS] = {};
        if (keys.range.first < keys.range.last) {
            if (keys.fits() && part::fits(f.k, f.d) && part::fits(f.v, f.d))
                query_walk<true>(m, keys, p, me, lse, delta, dq).run();
            else
                query_walk<false>(m, keys, p, me, lse, delta, dq).run();
        }
        if (there) store_own<T>(dq, f.scale, p.dq, me.batch, me.row, me.head, f.d);
    }

    /* What a wave needs of the queries that pass: half of its lanes bring each -lse log2(e), half -delta. */
    struct column {
        uint32_t last;
        const float *from;
        float factor, x;
        /* there are queries among them that see nothing; or whose lse is coarse: then it is not in powers of 2; an x of
         * what size may mean so */
        bool silent, coarse;
        float seldom;
        DEVICE column(const walk &w, const attention_backward_params &p, int64_t batch, int64_t head)
            : last((uint32_t)(w.range.last - w.range.first - 1)) {
            const attention_column &lse = p.forward.lse;
            const bool first = thread_index() % WARP < 32;
            from = (first ? lse.data + batch * lse.batch + head * lse.head
                          : p.delta + (batch * p.forward.h + head) * p.forward.sq) +
                   w.range.first;
            factor = first ? -LOG2E : -1;
            seldom = first ? ATTENTION_COARSE : infinity();
        }
        DEVICE void fetch(int tile) {
            const uint32_t query = (uint32_t)tile * ROWS + thread_index() % 32;
            x = from[query < last ? query : last];
        }
        DEVICE void store(lds &m) {
            float y = x * factor;
            silent = coarse = false;
            if (__builtin_expect(any_of_warp(magnitude(x) >= seldom), false)) {
                coarse = any_of_warp(thread_index() % WARP < 32 && is_coarse(x));
                y = coarse ? -x : y;
                silent = any_of_warp(y == infinity());
            }
            ((float *)m.column[thread_index() / WARP])[thread_index() % WARP] = kept(y);
        }
    };

    /* What a head's queries say of a lane's own key. While dp is made, exponents are; while dv is, ds. */
    template <bool FITS> struct key_walk {
        lds &m;
        const walk &queries;
        const typename beats::row &k, &v;
        sums (&dk)[PARTS], (&dv)[PARTS];
        passing<FITS> q, dout;
        part turned; /* of q what is in LDS by rows only */
        column c;
        weighing w;
        operands x, y; /* of the first product and the third, of the others */

        DEVICE key_walk(lds &m_, const walk &queries_, const attention_backward_params &b, const place &me,
                        int64_t head, const typename beats::row &k_, const typename beats::row &v_, sums (&dk_)[PARTS],
                        sums (&dv_)[PARTS])
            : m(m_), queries(queries_), k(k_), v(v_), dk(dk_), dv(dv_),
              q(queries_, b.forward.q, me.batch, head, b.forward.d),
              dout(queries_, b.dout, me.batch, head, b.forward.d), turned(q), c(queries_, b, me.batch, head),
              w(b.forward) {}
        DEVICE void put_p(weights &p, int n) { w.put(p, n, sum_of(w.s, n), sum_of(w.s, n + 1)); }
        DEVICE void of_queries(scores &x, int which) const {
#pragma unroll
            for (int n = 0; n < SCORES; n++)
                beats::score(x, n) = m.column[thread_index() / WARP][which][beats::row_of(n) / 4 + own::group()][n % 4];
        }
        DEVICE void step(int tile) {
            weights p, ds;
            scores minus;
            uint32_t odd;
            w.most = 0;
#pragma unroll
            for (int j = 0; j < STRIPS; j++) w.s[j] = sums{};
            beats::multiply(w.s, x, k, [&](int beat) {
                beats::read_rows(y, m.rows[1], beat);
                if (at(beat, 0)) q.store_rows(m.rows[0]);
                if (at(beat, 1)) turned.store(m.turned[0]);
                if (at(beat, 2)) {
                    note_odd(turned, m.odd[0]);
                    of_queries(w.dp, 1);
                }
                if (at(beat, 3)) {
                    turned.take(q.held);
                    q.fetch(tile + 2);
                    of_queries(minus, 0);
                }
            });
            w.limit();
            if (__builtin_expect(c.coarse, false)) {
                w.hold([&](int n) { return sum_of(minus, n); });
#pragma unroll
                for (int n = 0; n < SCORES; n++) beats::score(minus, n) = 0;
            }
            beats::multiply(w.dp, y, v, [&](int beat) {
                if (beat == 0) odd = is_odd(m.odd[1]);
                beats::read_turned(x, m.turned[1], beat);
                beats::each_pair(beat, [&](int n) {
                    w.exponent(w.s, n, { sum_of(minus, n), sum_of(minus, n + 1) });
                    put_p(p, n);
                });
            });
            uint32_t unseen = 0;
            if (__builtin_expect(!queries.in_sight(tile) | c.silent | w.capped, false)) {
                of_queries(minus, 0);
                unseen =
                    w.hide(w.s, queries.mine, queries.at(tile), [&](int n) { return sum_of(minus, n) == infinity(); });
                w.most = 0;
#pragma unroll
                for (int n = 0; n < SCORES; n += 2) put_p(p, n);
            }
            beats::add_odd_rows(dv, w.s, w.most, unseen, m.turned[1], odd, m.careful, x, p);
            w.most = 0;
            sync_block();
            beats::add(dv, x, p, [&](int beat) {
                if (beat == 0) odd = is_odd(m.odd[0]);
                beats::read_turned(y, m.turned[0], beat);
                beats::each_pair(beat, [&](int n) { w.put_ds(ds, w.s, n); });
                if (at(beat, 0)) dout.store_rows(m.rows[1]);
                if (at(beat, 2)) c.store(m);
            });
            beats::add_odd_rows(dk, w.dp, w.most, unseen, m.turned[0], odd, m.careful, y, ds);
            beats::add(dk, y, ds, [&](int beat) {
                beats::read_rows(x, m.rows[0], beat);
                if (at(beat, 0)) dout.store(m.turned[1]);
                if (at(beat, 1)) note_odd(dout, m.odd[1]);
                if (at(beat, 2)) dout.fetch(tile + 2);
                if (at(beat, 3)) c.fetch(tile + 2);
            });
            sync_block();
        }
        DEVICE void run() {
            const int tiles = (int)((queries.range.last - queries.range.first + ROWS - 1) / ROWS);
            q.fetch(0);
            dout.fetch(0);
            c.fetch(0);
            q.store_rows(m.rows[0]);
            dout.store_rows(m.rows[1]);
            dout.store(m.turned[1]);
            note_odd(dout, m.odd[1]);
            c.store(m);
            turned.take(q.held);
            q.fetch(1);
            dout.fetch(1);
            c.fetch(1);
            sync_block();
#pragma unroll
            for (int beat = 0; beat < LATER; beat++) beats::read_rows(x, m.rows[0], beat);
            sync_block();
            for (int tile = 0; tile < tiles; tile++) step(tile);
        }
    };

    static DEVICE void keys(const attention_backward_params &p) {
        SHARED lds m;
        const attention_params &f = p.forward;
        const place me = place_of(f, f.sk, f.hk);
        typename beats::row k, v;
        load_own<T, row_tiles>(k, f.k, me.batch, me.row, f.sk, me.head, f.d);
        load_own<T, row_tiles>(v, f.v, me.batch, me.row, f.sk, me.head, f.d);
        beats::settle(k);
        beats::settle(v);
        sums dk[PARTS] = {}, dv[PARTS] = {};
        const walk queries(attention_seen(f, me.batch, me.row, false), me.row < f.sk);
        const int64_t group = f.h / f.hk;
        const bool fits = queries.fits() && part::fits(f.q, f.d) && part::fits(p.dout, f.d),
                   some = queries.range.first < queries.range.last;
        for (int64_t head = me.head * group; fits && some && head < (me.head + 1) * group; head++)
            key_walk<true>(m, queries, p, me, head, k, v, dk, dv).run();
        for (int64_t head = me.head * group; !fits && some && head < (me.head + 1) * group; head++)
            key_walk<false>(m, queries, p, me, head, k, v, dk, dv).run();
        if (me.row >= f.sk) return;
        store_own<T>(dk, f.scale, p.dk, me.batch, me.row, me.head, f.d);
        store_own<T>(dv, 1, p.dv, me.batch, me.row, me.head, f.d);
    }
};

#define ROWS(T) \
    ENTRY(attention_backward_delta_##T, TILE_THREADS, attention_backward_params) { attention_delta<T>(p); } \
    ENTRY(attention_backward_clear_##T, TILE_THREADS, attention_backward_params) { attention_clear<T>(p); } \
    ENTRY(attention_backward_sinks_##T, TILE_THREADS, attention_backward_params) { attention_sum_sinks<T>(p); }
#define STEPS(text, T, D, ...) \
    ENTRY(attention_backward_##text##queries_##T##_##D, TILE_THREADS, attention_backward_params) { \
        __VA_ARGS__::queries(p); \
    } \
    ENTRY(attention_backward_##text##keys_##T##_##D, TILE_THREADS, attention_backward_params) { __VA_ARGS__::keys(p); }
#define BACKWARD(block, T, D) STEPS(, T, D, block<T, D>)
#define OPTIONS(T, D) STEPS(options_, T, D, attention_plain_block<T, D, true>)
#define BACKWARD_HEADS(block, T) \
    ROWS(T) \
    BACKWARD(block, T, 64) \
    BACKWARD(block, T, 128) BACKWARD(attention_plain_block, T, 256) OPTIONS(T, 128) OPTIONS(T, 256)
BACKWARD_HEADS(attention_plain_block, f32)
BACKWARD_HEADS(attention_backward_block, bf16)
BACKWARD_HEADS(attention_backward_block, f16)
