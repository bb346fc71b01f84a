/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CDNA devices. A block has 64 or 128 queries of a head, a wave 16 of them, which stay in registers while tiles of keys and values pass through LDS.
 *
 * Everything is computed turned over: scores as k q^T, so that a lane has one query's scores, four keys of every 16; and the output as v^T p^T, whose second
 * operand is then what the lane has already. Maximum, sum and rescaling are the lane's own business, and the output leaves it in vectors. */
#include "attention_tile.h"

template <class T, int D> struct attention_block {
    using bits = typename T::bits;
    static constexpr int THREADS = ATTENTION_THREADS(sizeof(bits), D), QUERIES = THREADS / 4;
    static constexpr int DEPTH = TILE_BYTES / sizeof(bits), STEPS = D < 256 ? 2 : 1, KEYS = STEPS * DEPTH, STRIPS = KEYS / 16, PARTS = D / 16;
    using key_tile = row_tile<T, D, KEYS, THREADS>;
    using value_tile = turned_tile<T, D, KEYS, THREADS>;
    static constexpr int PIECES = key_tile::PIECES;

    struct lds {
        chunk k[key_tile::SIZE], v[value_tile::SIZE];
        careful_lds<THREADS> careful;
        bool odd[THREADS / WARP]; /* by wave: it brought a value that is Inf or NaN */
    };

    /* What a lane knows of its query. */
    struct state {
        chunk q[PIECES];
        f32x4 o[PARTS]; /* elements 16 i + 4 (lane / 16) + r */
        float max, sum; /* of the scores; of the lane's own powers */
        attention_span keys;
    };

    /* Scores of keys that the query does not see become -Inf, and are bits of the result. */
    static DEVICE uint32_t hide(f32x4 (&s)[STRIPS], const state &me, int64_t at) {
        const int64_t key = at + thread_index() % WARP / 16 * 4;
        const int first = within_tile(me.keys.first - key), last = within_tile(me.keys.last - key);
        uint32_t unseen = 0;
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const bool seen = j * 16 + r >= first && j * 16 + r < last;
                s[j][r] = seen ? s[j][r] : -infinity();
                unseen |= (uint32_t)!seen << (j * 4 + r);
            }
        return unseen;
    }
    static DEVICE int within_tile(int64_t key) { return key < 0 ? 0 : key < KEYS ? (int)key : (int)KEYS; }

    /* From scores to powers. Most tiles leave the maximum as it is: then the sums need not be touched. */
    static DEVICE void soften(f32x4 (&s)[STRIPS], state &me) {
        float max = me.max;
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) max = larger(max, s[j][r]);
        max = larger(max, shuffle_xor(max, 16));
        max = larger(max, shuffle_xor(max, 32));
        const float origin = max == -infinity() ? 0 : max;
        if (any_of_warp(max != me.max)) {
            const float factor = exp2_approx((me.max - origin) * LOG2E);
            me.max = max;
            me.sum *= factor;
#pragma unroll
            for (int i = 0; i < PARTS; i++) me.o[i] *= factor;
        }
#pragma unroll
        for (int j = 0; j < STRIPS; j++) {
            s[j] = (s[j] - origin) * LOG2E;
#pragma unroll
            for (int r = 0; r < 4; r++) me.sum += s[j][r] = exp2_approx(s[j][r]);
        }
    }

    static DEVICE void write(const state &me, const attention_params &p, int64_t batch, int64_t query, int64_t head) {
        const int thread = thread_index() % WARP;
        float sum = me.sum + shuffle_xor(me.sum, 16);
        sum += shuffle_xor(sum, 32);
        if (query >= p.sq) return;
        if (sum == 0)
            store_own<T>((const f32x4[PARTS]){}, 0, p.o, batch, query, head, p.d);
        else
            store_own<T>(me.o, 1 / sum, p.o, batch, query, head, p.d);
        if (p.lse.data && thread / 16 == 0) p.lse.data[batch * p.lse.batch + head * p.lse.head + query] = me.max + log_of(sum);
    }

    /* The next tile is on its way to registers while one is worked on. */
    static DEVICE void run(const attention_params &p) {
        SHARED lds m;
        const int64_t tiles = (p.sq + QUERIES - 1) / QUERIES, row = block_index() / tiles, tile = block_index() - row * tiles;
        const int64_t batch = row / p.h, head = row - batch * p.h, group = head / (p.h / p.hk);
        const int thread = thread_index() % WARP;
        const int64_t query = tile * QUERIES + thread_index() / WARP * 16 + thread % 16;
        state me = { .max = -infinity(), .keys = attention_seen(p, query, true) };
        load_own<T, key_tile>(me.q, p.q, batch, query, p.sq, head, p.d);
        const attention_span range = attention_range<THREADS>(me.keys);
        if (query >= p.sq) me.keys = range;
        typename key_tile::part k(p.k, batch, group, p.d);
        typename value_tile::part v(p.v, batch, group, p.d);
        if (range.first < range.last) {
            k.load(range.first, range.last);
            v.load(range.first, range.last);
        }
        for (int64_t at = range.first; at < range.last; at += KEYS) {
            f32x4 s[STRIPS];
            uint32_t unseen = 0;
            k.store(m.k);
            const bool odd = any_of_warp(v.store(m.v));
            if (thread == 0) m.odd[thread_index() / WARP] = odd;
            sync_block();
            if (at + KEYS < range.last) {
                k.load(at + KEYS, range.last);
                v.load(at + KEYS, range.last);
            }
            multiply_rows<T, key_tile>(s, m.k, me.q);
            attention_scores(s, p);
            if (any_of_warp(at < me.keys.first || at + KEYS > me.keys.last)) unseen = hide(s, me, at);
            soften(s, me);
            if (any_of_warp(m.odd[thread % (THREADS / WARP)]))
                add_carefully<value_tile>(me.o, s, unseen, m.v, m.careful);
            else
                add_turned<T, value_tile>(me.o, s, m.v, chunk_of_powers<T>);
            sync_block();
        }
        write(me, p, batch, query, head);
    }
};

#define ATTENTION(T, D) \
    ENTRY(attention_##T##_##D, ATTENTION_THREADS(sizeof(T::bits), D), attention_params) { attention_block<T, D>::run(p); }
#define ATTENTION_HEADS(T) ATTENTION(T, 64) ATTENTION(T, 128) ATTENTION(T, 256)
ATTENTION_HEADS(f32)
ATTENTION_HEADS(bf16)
ATTENTION_HEADS(f16)
