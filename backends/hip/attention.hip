/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CDNA devices. A block has 64 queries of a head, a wave 16 of them, which stay in registers while tiles of keys and values pass through LDS.
 *
 * Everything is computed turned over: scores as k q^T, so that a lane has one query's scores, four keys of every 16; and the output as v^T p^T, whose second
 * operand is then what the lane has already. Maximum, sum and rescaling are the lane's own business, and the output leaves it in vectors. */
#include "attention_tile.h"

template <class T, int D> struct attention_block {
    using bits = typename T::bits;
    static constexpr int DEPTH = TILE_BYTES / sizeof(bits), STEPS = D < 256 ? 2 : 1, KEYS = STEPS * DEPTH, STRIPS = KEYS / 16, PARTS = D / 16;
    using key_tile = row_tile<T, D, KEYS>;
    using value_tile = turned_tile<T, D, KEYS>;
    static constexpr int PIECES = key_tile::PIECES;

    struct lds {
        chunk k[key_tile::SIZE], v[value_tile::SIZE];
        careful_lds careful;
    };

    /* What a lane knows of its query. */
    struct state {
        chunk q[PIECES];
        f32x4 o[PARTS]; /* elements 16 i + 4 (lane / 16) + r */
        float max, sum; /* of the scores; of the lane's own powers */
        attention_span keys;
    };

    /* From products to powers; those of keys that the query does not see are 0, and bits of `unseen`. */
    static DEVICE void soften(f32x4 (&s)[STRIPS], state &me, const attention_params &p, int64_t at, uint32_t *unseen_out) {
        const int64_t key = at + thread_index() % WARP / 16 * 4;
        uint32_t unseen = 0;
        float max = me.max;
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const bool seen = key + j * 16 + r >= me.keys.first && key + j * 16 + r < me.keys.last;
                s[j][r] = seen ? attention_score(p, s[j][r]) : -infinity();
                unseen |= (uint32_t)!seen << (j * 4 + r);
                max = larger(max, s[j][r]);
            }
        max = larger(max, shuffle_xor(max, 16));
        max = larger(max, shuffle_xor(max, 32));
        const float origin = max == -infinity() ? 0 : max, factor = exp2_approx((me.max - origin) * LOG2E);
        me.max = max;
        me.sum *= factor;
#pragma unroll
        for (int i = 0; i < PARTS; i++) me.o[i] *= factor;
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                s[j][r] = exp2_approx((s[j][r] - origin) * LOG2E);
                me.sum += s[j][r];
            }
        *unseen_out = unseen;
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

    static DEVICE void run(const attention_params &p) {
        SHARED lds m;
        const int64_t tiles = (p.sq + ATTENTION_QUERIES - 1) / ATTENTION_QUERIES, row = block_index() / tiles, tile = block_index() - row * tiles;
        const int64_t batch = row / p.h, head = row - batch * p.h, group = head / (p.h / p.hk);
        const int thread = thread_index() % WARP;
        const int64_t query = tile * ATTENTION_QUERIES + thread_index() / WARP * 16 + thread % 16;
        state me = { .max = -infinity(), .keys = attention_seen(p, query, true) };
        load_own<T, key_tile>(me.q, p.q, batch, query, p.sq, head, p.d);
        const attention_span range = attention_range(me.keys);
        for (int64_t at = range.first; at < range.last; at += KEYS) {
            f32x4 s[STRIPS];
            uint32_t unseen;
            key_tile::load(m.k, p.k, batch, at, range.last, group, p.d);
            const bool odd = any_of_block(value_tile::load(m.v, p.v, batch, at, range.last, group, p.d));
            multiply_rows<T, key_tile>(s, m.k, me.q);
            soften(s, me, p, at, &unseen);
            add_rows<T, value_tile>(me.o, s, unseen, m.v, odd, m.careful);
            sync_block();
        }
        write(me, p, batch, query, head);
    }
};

#define ATTENTION(T, D) \
    ENTRY(attention_##T##_##D, TILE_THREADS, attention_params) { attention_block<T, D>::run(p); }
#define ATTENTION_HEADS(T) ATTENTION(T, 64) ATTENTION(T, 128) ATTENTION(T, 256)
ATTENTION_HEADS(f32)
ATTENTION_HEADS(bf16)
ATTENTION_HEADS(f16)
