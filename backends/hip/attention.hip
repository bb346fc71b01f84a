/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CDNA devices. A wave has EDGE queries of a head, which stay in registers while tiles of keys and values pass through LDS; a block has four waves
 * or eight.
 *
 * Everything is computed turned over: scores as k q^T, so that a lane has one query's scores, four keys of every 16 or 8; and the output as v^T p^T, whose
 * second operand is then what the lane has already. Maximum, sum and rescaling are the lane's own business, and the output leaves it in vectors.
 *
 * NOTES. bfloat16, heads of 128, a tile of 64 keys, waves of 32 queries: 64 matrix instructions of 32 cycles (gfx942) and about 300 others of 4, of which each
 * of the 32 scores of a lane costs 5 to 6: difference and product packed, maximum by threes, exp2, sum packed, rounding, half a permutation. Reading LDS takes
 * half of the matrix unit's time, with waves of 16 queries all of it. */
#include "attention_tile.h"

template <class T, int D, int EDGE> struct attention_block {
    using bits = typename T::bits;
    using own = square<EDGE>;
    using sums = typename own::sums;
    static constexpr int THREADS = ATTENTION_THREADS(sizeof(bits), D), QUERIES = THREADS / WARP * EDGE;
    static constexpr int DEPTH = TILE_BYTES / sizeof(bits), KEYS = (D < 256 ? 2 : 1) * DEPTH, STRIPS = KEYS / EDGE, PARTS = D / EDGE;
    using key_tile = row_tile<T, D, KEYS, THREADS, EDGE>;
    using value_tile = turned_tile<T, D, KEYS, THREADS, EDGE>;

    struct lds {
        chunk k[key_tile::SIZE], v[value_tile::SIZE];
        uint64_t infinite[THREADS][2]; /* what else a lane's o has, a bit for each element: Inf, and -Inf; NaN is both */
        bool odd[THREADS / WARP];      /* by wave: it brought a value that is Inf or NaN */
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

    /* Scores of keys that the query does not see become -Inf, and are bits of the result. */
    static DEVICE uint32_t hide(sums (&s)[STRIPS], const state &me, int64_t at) {
        const int64_t key = at + own::group() * 4;
        const int first = within_tile<KEYS>(me.keys.first - key), last = within_tile<KEYS>(me.keys.last - key);
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

    /* From s to powers, exp2(unit (s - max)). The maximum follows what is larger by a factor of 2^8 only: in most tiles the sums need not be touched. */
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

    /* A weight of 0 would not hide Inf or NaN from those who do not see it: they are taken out of the tile, and whose o they reach is noted. Seldom needed, and
     * so written for little code and few registers. */
    static DEVICE void take_out(const sums (&s)[STRIPS], uint32_t unseen, lds &m) {
        uint64_t above = 0, below = 0;
        static_assert(PARTS * own::COUNT <= 64, "a bit for each element");
#pragma unroll 1
        for (int d = 0; d < D; d++) {
            int found = 0;
#pragma unroll
            for (int n = 0; n < STRIPS * own::COUNT; n++) {
                const float x = value_tile::element(m.v, d, n / own::COUNT * EDGE + own::row(n % own::COUNT) + own::group() * 4), y = x * sum_of(s, n);
                if (!(magnitude(x) < infinity()) && !(unseen >> n & 1)) found |= y == infinity() ? 1 : y == -infinity() ? 2 : 3;
            }
#pragma unroll
            for (int mask = EDGE; mask < WARP; mask *= 2) found |= shuffle_xor(found, mask);
            if (d / 4 % own::GROUPS != own::group()) continue;
            above |= (uint64_t)(found & 1) << (d / (4 * own::GROUPS) * 4 + d % 4);
            below |= (uint64_t)(found >> 1) << (d / (4 * own::GROUPS) * 4 + d % 4);
        }
        m.infinite[thread_index()][0] |= above;
        m.infinite[thread_index()][1] |= below;
        make_finite<T, THREADS>(m.v);
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
        if (sum == 0)
            store_own<T>((const sums[PARTS]){}, 0, p.o, batch, query, head, p.d);
        else
            store_own<T>(me.o, 1 / sum, p.o, batch, query, head, p.d);
        if (p.lse.data && own::group() == 0)
            p.lse.data[batch * p.lse.batch + head * p.lse.head + query] = me.max * (p.cap > 0 ? 1 : magnitude(p.scale)) + log_of(sum);
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

    /* The tile at `at`. EDGE_TILE: some query of the block does not see all of it; otherwise Inf and NaN are like any value. */
    template <bool EDGE_TILE> static DEVICE void step(state &me, passing &next, const attention_params &p, float unit, int64_t at, int64_t last, lds &m) {
        const int thread = thread_index() % WARP;
        sums s[STRIPS];
        next.k.store(m.k);
        next.v.store(m.v);
        if constexpr (EDGE_TILE) {
            const bool odd = any_of_warp(next.v.odd());
            if (thread == 0) m.odd[thread_index() / WARP] = odd;
        }
        sync_block();
        next.load(at + KEYS, last);
        multiply_rows<T, key_tile>(s, m.k, me.q);
        if (p.cap > 0) limit(s, p);
        uint32_t unseen = 0;
        if constexpr (EDGE_TILE) unseen = hide(s, me, at);
        soften(s, me, unit);
        if (EDGE_TILE && any_of_warp(m.odd[thread % (THREADS / WARP)])) take_out(s, unseen, m);
        add_turned<T, value_tile>(me.o, s, m.v);
        sync_block();
    }

    static DEVICE void run(const attention_params &p) {
        SHARED lds m;
        const int64_t tiles = (p.sq + QUERIES - 1) / QUERIES, row = block_index() / tiles, tile = block_index() - row * tiles;
        const int64_t batch = row / p.h, head = row - batch * p.h, group = head / (p.h / p.hk);
        const int64_t query = tile * QUERIES + thread_index() / WARP * EDGE + own::lane();
        const float unit = p.cap > 0 ? LOG2E : -larger(-magnitude(p.scale) * LOG2E, -f32::largest());
        state me = { .max = -infinity(), .keys = attention_seen(p, query, true) };
        load_own<T, key_tile>(me.q, p.q, batch, query, p.sq, head, p.d);
        if (p.scale < 0) negate(me.q);
        const attention_span range = attention_range<THREADS>(me.keys);
        if (query >= p.sq) me.keys = range;
        const attention_span whole = attention_common<THREADS>(me.keys);
        m.infinite[thread_index()][0] = m.infinite[thread_index()][1] = 0;
        passing next = { { p.k, batch, group, p.d }, { p.v, batch, group, p.d } };
        next.load(range.first, range.last);
        for (int64_t at = range.first; at < range.last; at += KEYS) {
            for (; at >= whole.first && at + KEYS <= whole.last; at += KEYS) step<false>(me, next, p, unit, at, range.last, m);
            if (at < range.last) step<true>(me, next, p, unit, at, range.last, m);
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
    ENTRY(attention_##T##_##D, ATTENTION_THREADS(sizeof(T::bits), D), attention_params) { attention_block<T, D, 16>::run(p); }
#define ATTENTION_BOTH(T, D) \
    ATTENTION(T, D) \
    ENTRY(attention_wide_##T##_##D, ATTENTION_THREADS(sizeof(T::bits), D), attention_params) { attention_block<T, D, 32>::run(p); }
ATTENTION(f32, 64)
ATTENTION(f32, 128)
ATTENTION(f32, 256)
ATTENTION_BOTH(bf16, 64)
ATTENTION_BOTH(bf16, 128)
ATTENTION(bf16, 256)
ATTENTION_BOTH(f16, 64)
ATTENTION_BOTH(f16, 128)
ATTENTION(f16, 256)
