/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CDNA devices. A wave has EDGE queries of a head, which stay in registers while tiles of keys and values
 * pass through LDS; a block has four waves or eight.
 *
 * Everything is computed turned over: scores as k q^T, so that a lane has one query's scores, four keys of every 16 or
 * 8; and the output as v^T p^T, whose second operand is then what the lane has already. Maximum, sum and rescaling are
 * the lane's own business, and the output leaves it in vectors.
 *
 * NOTES. bfloat16, heads of 128, a tile of 32 keys, waves of 32 queries: 32 matrix instructions of 32 cycles (gfx942)
 * and about 220 others of 4, of which each of the 16 scores of a lane costs 5 to 6: difference and product packed,
 * maximum by threes, exp2, sum packed, rounding, half a permutation. Reading LDS takes half of the matrix unit's time,
 * with waves of 16 queries all of it. */
#include "attention_tile.h"

/* OPTIONS: of bias, slopes, sinks and dropout, with waves of 16 queries. */
template <class T, int D, int EDGE, bool OPTIONS = false> struct attention_block {
    using bits = typename T::bits;
    using own = square<EDGE>;
    using sums = typename own::sums;
    static constexpr int THREADS = ATTENTION_THREADS(sizeof(bits), D), QUERIES = THREADS / WARP * EDGE;
    /* Two waves of a SIMD take turns where a matrix instruction takes half a chunk: where it takes a whole one, which
     * is where memory fills LDS by itself, making weights takes longer than multiplying, and small tiles longer
     * still. */
    static constexpr bool TURNS = THREADS > 4 * WARP &&EDGE == 32 && direct<T>::STAGES == 0;
    static constexpr int TILES = TURNS ? 3 : 1, DEPTH = TILE_BYTES / sizeof(bits);
    static constexpr int KEYS = (D < (TURNS ? 128 : 256) ? 2 : 1) * DEPTH, STRIPS = KEYS / EDGE, PARTS = D / EDGE;
    using key_tile = row_tile<T, D, KEYS, THREADS, EDGE>;
    using value_tile = turned_tile<T, D, KEYS, THREADS, EDGE>;

    struct lds {
        chunk k[TILES][key_tile::SIZE], v[TILES][value_tile::SIZE];
        /* what else a lane's o has, a bit for each element: Inf, and -Inf; NaN is both */
        uint64_t infinite[THREADS][2];
        int sight[TURNS ? THREADS : 1][2]; /* which keys a lane's query sees */
        bool odd[TILES][THREADS / WARP];   /* by wave: it brought a value that is Inf or NaN */
    };

    /* Which query a lane has. */
    struct place {
        int64_t batch, head, query;
    };

    /* What a lane knows of its query. */
    struct state {
        chunk q[key_tile::WIDTH / own::GROUPS]; /* negated if the scale is */
        sums o[PARTS];
        float max; /* of the products, or of the capped scores */
        f32x4 sum; /* of the lane's own powers, by r % 4 */
        attention_span keys;
    };

    /* From products to scores, cap tanh(s scale / cap), if there is a cap. */
    static DEVICE void limit(sums (&s)[STRIPS], const attention_params &p) {
        const float scale = magnitude(p.scale);
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < own::COUNT; r++) s[j][r] = p.cap * tanh_of(s[j][r] * scale / p.cap);
    }

    /* What is added to scores, and which weights are dropped: of a lane's query and its keys from `at` on. */
    struct options {
        const attention_params &p;
        const simt_dropout dropout;
        const attention_terms<T, true> terms;
        DEVICE options(const attention_params &params, int64_t batch, int64_t head, int64_t query)
            : p(params), dropout(attention_dropout_of<true>(params.options)),
              terms(attention_terms_of<T, true>(params, batch, head, query < params.sq ? query : params.sq - 1)) {}
        DEVICE void add(sums (&s)[STRIPS], int64_t at) const {
            const float scale = p.cap > 0 ? 1.0f : magnitude(p.scale);
#pragma unroll
            for (int j = 0; j < STRIPS; j++)
#pragma unroll
                for (int r = 0; r < own::COUNT; r++)
                    s[j][r] = terms.add(p.options, at + j * EDGE + own::row(r), s[j][r] * scale);
        }
        DEVICE void drop(sums (&s)[STRIPS], int64_t at) const {
            if (!(dropout.p > 0)) return;
#pragma unroll
            for (int j = 0; j < STRIPS; j++)
#pragma unroll
                for (int four = 0; four < own::COUNT; four += 4) {
                    const uint32_t keeps = terms.template keeps_run<4>(dropout, at + j * EDGE + own::row(four));
#pragma unroll
                    for (int r = 0; r < 4; r++) s[j][four + r] = keeps >> r & 1 ? s[j][four + r] : 0.0f;
                }
        }
    };

    /* Scores of keys that the query does not see, of a lane's those before `first` and from `last` on, become -Inf, and
     * are bits of the result. */
    static DEVICE uint32_t hide(sums (&s)[STRIPS], int first, int last) {
        uint32_t unseen = 0;
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < own::COUNT; r++) {
                const int row = j * EDGE + own::row(r);
                const bool seen = row >= first && row < last;
                s[j][r] = seen ? s[j][r] : -infinity();
                unseen |= (uint32_t)!seen << (j * own::COUNT + r);
            }
        return unseen;
    }

    /* From s to powers, exp2(unit (s - max)). The maximum follows what is larger by a factor of 2^8 only: in most tiles
     * the sums need not be touched. */
    static DEVICE void soften(sums (&s)[STRIPS], state &me, float unit) {
        float max = me.max;
#pragma unroll
        for (int n = 0; n < STRIPS * own::COUNT; n++) max = larger(max, sum_of(s, n));
#pragma unroll
        for (int mask = EDGE; mask < WARP; mask *= 2) max = larger(max, shuffle_xor(max, mask));
        const bool grown = max > me.max && !((max - me.max) * unit <= 8);
        if (any_of_warp(grown)) {
            const float factor = grown ? exp2_approx((me.max - max) * unit) : 1; /* rows do not depend on each other */
            if (grown) me.max = max;
            me.sum *= factor;
#pragma unroll
            for (int i = 0; i < PARTS; i++) me.o[i] *= factor;
        }
        const float minus = me.max == -infinity() ? 0 : -me.max; /* there is a packed addition, but no difference */
#pragma unroll
        for (int j = 0; j < STRIPS; j++) {
            s[j] = (s[j] + minus) * unit;
#pragma unroll
            for (int r = 0; r < own::COUNT; r++) s[j][r] = exp2_approx(s[j][r]);
#pragma unroll
            for (int r = 0; r < own::COUNT; r += 4) me.sum += f32x4{ s[j][r], s[j][r + 1], s[j][r + 2], s[j][r + 3] };
        }
    }

    /* A weight of 0 would not hide Inf or NaN from those who do not see it: whose o they reach is noted, before they
     * are taken out. Seldom needed, and so written for little code and few registers. */
    static DEVICE void take_out(const sums (&s)[STRIPS], uint32_t unseen, const chunk *values, lds &m) {
        uint64_t above = 0, below = 0;
        static_assert(PARTS * own::COUNT <= 64, "a bit for each element");
#pragma unroll 1
        for (int d = 0; d < D; d++) {
            int found = 0;
#pragma unroll
            for (int n = 0; n < STRIPS * own::COUNT; n++) {
                const float x = value_tile::element(
                                values, d, n / own::COUNT * EDGE + own::row(n % own::COUNT) + own::group() * 4),
                            y = x * sum_of(s, n);
                if (!(magnitude(x) < infinity()) && !(unseen >> n & 1))
                    found |= y == infinity() ? 1 : y == -infinity() ? 2 : 3;
            }
#pragma unroll
            for (int mask = EDGE; mask < WARP; mask *= 2) found |= shuffle_xor(found, mask);
            if (d / 4 % own::GROUPS != own::group()) continue;
            above |= (uint64_t)(found & 1) << (d / (4 * own::GROUPS) * 4 + d % 4);
            below |= (uint64_t)(found >> 1) << (d / (4 * own::GROUPS) * 4 + d % 4);
        }
        m.infinite[thread_index()][0] |= above;
        m.infinite[thread_index()][1] |= below;
    }

    static DEVICE void put_back(state &me, const lds &m) {
        const uint64_t above = m.infinite[thread_index()][0], below = m.infinite[thread_index()][1];
        if (!any_of_warp((above | below) != 0)) return;
#pragma unroll
        for (int n = 0; n < PARTS * own::COUNT; n++) {
            float &x = ((float *)&me.o[n / own::COUNT])[n % own::COUNT];
            if (above >> n & 1) x += infinity();
            if (below >> n & 1) x -= infinity();
        }
    }

    static DEVICE void write(const state &me, const attention_params &p, int64_t batch, int64_t query, int64_t head) {
        float sum = (me.sum[0] + me.sum[1]) + (me.sum[2] + me.sum[3]);
#pragma unroll
        for (int mask = EDGE; mask < WARP; mask *= 2) sum += shuffle_xor(sum, mask);
        if (query >= p.sq) return;
        const float top = me.max * (p.cap > 0 || OPTIONS ? 1 : magnitude(p.scale));
        attention_total total = { sum, 1, top + log_of(sum), false };
        if constexpr (OPTIONS) {
            const float sink = attention_sink<T>(p, batch, head, query);
            total = attention_total_of(top, top == -infinity() ? top : top * LOG2E, sum, sink);
            total.factor *= p.options.keeps;
        }
        if (total.sum == 0)
            store_own<T>((const sums[PARTS]){}, 0, p.o, batch, query, head, p.d);
        else
            store_own<T>(me.o, total.factor / total.sum, p.o, batch, query, head, p.d);
        if (p.lse.data && own::group() == 0) p.lse.data[batch * p.lse.batch + head * p.lse.head + query] = total.lse;
    }

    /* What passes through LDS, a tile ahead in registers. */
    struct passing {
        typename key_tile::part k;
        typename value_tile::part v;
        DEVICE void load(int64_t at, int64_t last) {
            k.load(at, last);
            v.load(at, last);
        }
    };

    static DEVICE void note_odd(const passing &next, lds &m, int place) {
        const bool odd = any_of_warp(next.v.odd());
        if (thread_index() % WARP == 0) m.odd[place][thread_index() / WARP] = odd;
    }
    static DEVICE bool any_odd(const lds &m, int place) {
        return any_of_warp(m.odd[place][thread_index() % (THREADS / WARP)]);
    }

    /* The tile at `at`. EDGE_TILE: some query of the block does not see all of it;
     * otherwise Inf and NaN are like any value. */
    template <bool EDGE_TILE>
    static DEVICE void step(state &me, passing &next, const attention_params &p, const place &here, float unit,
                            int64_t at, int64_t last, lds &m) {
        sums s[STRIPS];
        next.k.store(m.k[0]);
        next.v.store(m.v[0]);
        if constexpr (EDGE_TILE) note_odd(next, m, 0);
        sync_block();
        next.load(at + KEYS, last);
        multiply_rows<T, key_tile>(s, m.k[0], me.q);
        if (p.cap > 0) limit(s, p);
        if constexpr (OPTIONS) options(p, here.batch, here.head, here.query).add(s, at + own::group() * 4);
        uint32_t unseen = 0;
        if constexpr (EDGE_TILE) {
            const int64_t key = at + own::group() * 4;
            unseen = hide(s, within_tile<KEYS>(me.keys.first - key), within_tile<KEYS>(me.keys.last - key));
        }
        soften(s, me, unit);
        if constexpr (OPTIONS) options(p, here.batch, here.head, here.query).drop(s, at + own::group() * 4);
        if (EDGE_TILE && any_odd(m, 0)) {
            take_out(s, unseen, m.v[0], m);
            make_finite<T, THREADS>(m.v[0]);
        }
        add_turned<T, value_tile>(me.o, s, m.v[0]);
        sync_block();
    }

    /* The same by two waves of a SIMD in turns: while the one has the matrix unit, for a tile's output and the next
     * one's scores, the other, which is a turn late, makes weights of its scores. */
    struct turns {
        static constexpr int WEIGHTS = STRIPS * own::COUNT * sizeof(bits) / CHUNK, WIDE = key_tile::WIDTH / own::GROUPS;
        sums s[STRIPS];
        chunk weight[WEIGHTS], value[WEIGHTS][PARTS];
        const bits *k, *v;      /* the first keys and values */
        int number, place;      /* of the tile whose turn it is: among the others, and where it lies */
        int keys, seen, hidden; /* so many; tiles from `seen` to `hidden` are in sight of all queries of the block */

        DEVICE turns(const passing &next, const attention_params &p, const attention_span &range,
                     const attention_span &whole)
            : k(next.k.head + range.first * p.k.row), v(next.v.head + range.first * p.v.row), number(0), place(0),
              keys((int)(range.last - range.first)), seen((int)((whole.first - range.first + KEYS - 1) / KEYS)),
              hidden(whole.last > range.first ? (int)((whole.last - range.first) / KEYS) : 0) {}
        /* Of the lane's own keys. */
        DEVICE int within(int64_t key) const { return (key < 0 ? 0 : key < keys ? (int)key : keys) - own::group() * 4; }
        DEVICE bool at_edge(int tile) const { return tile < seen || tile >= hidden; }

        /* Not seen through: else addresses would be made of the number of turns. */
        static DEVICE int after(int place) {
            int next = place == TILES - 1 ? 0 : place + 1;
            asm volatile("" : "+s"(next));
            return next;
        }

        /* The turn of the matrix unit: the output of a tile, if ADD, and the scores of the next, if SCORE. */
        template <bool ADD, bool SCORE> DEVICE void multiply(state &me, const chunk *keys) {
            chunk key[STRIPS][WIDE];
#pragma unroll
            for (int j = 0; SCORE && j < STRIPS; j++)
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    key[j][i] = keys[key_tile::place(j * EDGE + own::lane(), i * own::GROUPS + own::group())];
            one_after_another();
            favour_warp(true);
#pragma unroll
            for (int n = 0; ADD && n < WEIGHTS; n++)
#pragma unroll
                for (int i = 0; i < PARTS; i++) unit<T>::multiply(me.o[i], value[n][i], weight[n]);
            one_after_another(); /* the keys are on their way meanwhile */
#pragma unroll
            for (int j = 0; SCORE && j < STRIPS; j++) {
                s[j] = sums{};
#pragma unroll
                for (int i = 0; i < WIDE; i++) unit<T>::multiply(s[j], key[j][i], me.q[i]);
            }
            favour_warp(false);
            end_turn();
        }

        /* The other turn: from scores to weights, which wait with their values for the next; and what comes goes to
         * LDS, the values one tile ahead, the keys two. */
        DEVICE void weigh(state &me, passing &next, const attention_params &p, float unit, lds &m) {
            const int second = after(place), third = after(second);
            const chunk *const values = m.v[place];
#pragma unroll
            for (int n = 0; n < WEIGHTS; n++)
#pragma unroll
                for (int i = 0; i < PARTS; i++)
                    value[n][i] = values[value_tile::place(i * EDGE + own::lane(), n * own::GROUPS + own::group())];
            next.v.store(m.v[second]);
            next.k.store(m.k[third]);
            if (at_edge(number + 1)) note_odd(next, m, second);
            next.v.load_fitting(v, (number + 2) * KEYS, keys);
            next.k.load_fitting(k, (number + 3) * KEYS, keys);
            if (p.cap > 0) limit(s, p);
            uint32_t unseen = 0;
            if (at_edge(number))
                unseen =
                    hide(s, m.sight[thread_index()][0] - number * KEYS, m.sight[thread_index()][1] - number * KEYS);
            soften(s, me, unit);
            if (at_edge(number) && any_odd(m, place)) {
                take_out(s, unseen, values, m);
#pragma unroll
                for (int n = 0; n < WEIGHTS; n++)
#pragma unroll
                    for (int i = 0; i < PARTS; i++) value[n][i] = finite<T>(value[n][i]);
            }
#pragma unroll
            for (int n = 0; n < WEIGHTS; n++) weight[n] = chunk_of_weights<T>(s, n * CHUNK / sizeof(bits));
            end_turn();
        }
    };
    static DEVICE void steps_in_turns(state &me, passing &next, const attention_params &p, float unit,
                                      const attention_span &range, const attention_span &whole, lds &m) {
        if (range.first >= range.last) return;
        turns t(next, p, range, whole);
        m.sight[thread_index()][0] = t.within(me.keys.first - range.first);
        m.sight[thread_index()][1] = t.within(me.keys.last - range.first);
        next.v.load_fitting(t.v, 0, t.keys);
        next.k.load_fitting(t.k, 0, t.keys);
        next.v.store(m.v[0]);
        next.k.store(m.k[0]);
        if (t.at_edge(0)) note_odd(next, m, 0);
        next.v.load_fitting(t.v, KEYS, t.keys);
        next.k.load_fitting(t.k, KEYS, t.keys);
        sync_block();
        const bool late = late_warp<THREADS / WARP>();
        if (late) end_turn();
        next.k.store(m.k[1]);
        next.k.load_fitting(t.k, 2 * KEYS, t.keys);
        t.template multiply<false, true>(me, m.k[0]);
        t.weigh(me, next, p, unit, m);
        while (++t.number * KEYS < t.keys) {
            t.place = t.after(t.place);
            t.template multiply<true, true>(me, m.k[t.place]);
            t.weigh(me, next, p, unit, m);
        }
        t.template multiply<true, false>(me, nullptr);
        if (!late) end_turn();
    }

    static DEVICE void run(const attention_params &p) {
        SHARED lds m;
        const auto [batch, head, tile] = attention_place_of(p, p.h, (p.sq + QUERIES - 1) / QUERIES);
        const int64_t group = head / (p.h / p.hk), query = tile * QUERIES + thread_index() / WARP * EDGE + own::lane();
        const place here = { batch, head, query };
        float unit = p.cap > 0 || OPTIONS ? LOG2E : -larger(-magnitude(p.scale) * LOG2E, -f32::largest());
        if (TURNS) unit = uniform(unit); /* no vector register is left */
        state me = { .max = -infinity(), .keys = attention_seen(p, batch, query, true) };
        load_own<T, key_tile>(me.q, p.q, batch, query, p.sq, head, p.d);
        if (p.scale < 0) negate(me.q);
        const attention_span range = attention_range<THREADS>(me.keys);
        if (query >= p.sq) me.keys = range;
        const attention_span whole = attention_common<THREADS>(me.keys);
        m.infinite[thread_index()][0] = m.infinite[thread_index()][1] = 0;
        passing next = { { p.k, batch, group, p.d }, { p.v, batch, group, p.d } };
        if (TURNS && next.k.fits() && next.v.fits() && range.last - range.first < INT32_MAX / 2) {
            if constexpr (TURNS) steps_in_turns(me, next, p, unit, range, whole, m);
        } else {
            next.load(range.first, range.last);
            for (int64_t at = range.first; at < range.last; at += KEYS) {
                for (; !TURNS && at >= whole.first && at + KEYS <= whole.last; at += KEYS)
                    step<false>(me, next, p, here, unit, at, range.last, m);
                if (at < range.last) step<true>(me, next, p, here, unit, at, range.last, m);
            }
        }
        put_back(me, m);
        write(me, p, batch, query, head);
    }

    template <int N> static DEVICE void negate(chunk (&x)[N]) {
        constexpr uint32_t sign = sizeof(bits) == 2 ? 0x80008000u : 0x80000000u;
#pragma unroll
        for (int i = 0; i < N; i++) x[i] ^= sign;
    }
};

#define ATTENTION(T, D) \
    ENTRY(attention_##T##_##D, ATTENTION_THREADS(sizeof(T::bits), D), attention_params) { \
        attention_block<T, D, 16>::run(p); \
    }
#define ATTENTION_BOTH(T, D) \
    ATTENTION(T, D) \
    ENTRY(attention_wide_##T##_##D, ATTENTION_THREADS(sizeof(T::bits), D), attention_params) { \
        attention_block<T, D, 32>::run(p); \
    }
#define ATTENTION_OPTIONS(T, D) \
    ENTRY(attention_options_##T##_##D, ATTENTION_THREADS(sizeof(T::bits), D), attention_params) { \
        attention_block<T, D, 16, true>::run(p); \
    }
#define ATTENTION_OPTIONS_EACH(T) ATTENTION_OPTIONS(T, 128) ATTENTION_OPTIONS(T, 256)
ATTENTION_OPTIONS_EACH(f32)
ATTENTION_OPTIONS_EACH(bf16)
ATTENTION_OPTIONS_EACH(f16)
ATTENTION(f32, 64)
ATTENTION(f32, 128)
ATTENTION(f32, 256)
ATTENTION_BOTH(bf16, 64)
ATTENTION_BOTH(bf16, 128)
ATTENTION(bf16, 256)
ATTENTION_BOTH(f16, 64)
ATTENTION_BOTH(f16, 128)
ATTENTION(f16, 256)

#include "backends/simt/attention/attention_same.inl.h"
