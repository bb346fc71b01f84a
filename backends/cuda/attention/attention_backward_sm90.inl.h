/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention for sm_90a: copies of boxes, products of warpgroups, sums of dq in memory that blocks add
 * to in turns.
 *
 * A block has 128 keys and goes over the tiles of queries that see any of them, in all heads of the group or in one.
 * Each of two consumers has 64 of the keys, with its sums of dk and dv; scores and dout.v are found with keys as rows,
 * so that p and ds are left operands where they are. ds goes to shared memory besides, for the tile's dq, which
 * consumers divide between them. A writer adds it to the sums in memory, once the block of the keys before has; so the
 * order is fixed. Blocks take tasks by a counter, keys in ascending order and queries in descending order: under a
 * causal mask the longest come first, and a block waits only for those that began before it, which are a tile of
 * queries ahead. With more than 128 columns, two blocks have the same keys and halves of the columns.
 *
 * NOTES. Floors: 10 flops for each visible pair and column, 14 at d of more than 128, since both blocks find scores and
 * dout.v; 4096 a clock and SM. L2 adds 512 floats for each query, key tile and head of 128.
 * What was learned:
 * - One pass and dq in turns, where two passes without turns would need 14 flops: waiting costs little, since a block
 * that comes later stays a tile behind. - Products into sums that nothing was written to take their registers as
 * inputs, and so hold them from the loop's beginning on: then there are too few, and
 *   the compiler puts each product behind the one before. wgmma_first has no such inputs.
 * - At d 64, scores of 128 queries and dout.v of 64 at a time leave room for all products to be in flight.
 * - Adding a tile of dq, from the wait for the turn to passing it on, takes about as long as the products of a tile:
 * with one writer, products wait for it. Two
 *   writers that take tiles in turns gained 6 to 14 % at d 128; polls that acquire, which empty the first-level cache
 *     each time, and writers of halves lost 5.
 * - compute-sanitizer's racecheck calls the copies of lift and delta races with the reads of the tile whose place they
 * take. They are none: all threads of both
 *   consumers meet (sync_some) between those reads and the arrival of the one among them that the copy waits for, which
 *     the tool does not follow.
 * - Measured on an H200 beside cuDNN 9.19, bf16, 16384 tokens, s 16384, TFLOP/s: d 64 464 of 438 full, 476 of 417
 * causal; d 128 532 of 512 and 582 of 538;
 *   d 256 315 of 339 and 338 of 392. There q, dout and dq share what shared memory is left beside 128 keys,
 *     and tiles wait for dout. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_SM90_INL_H
#define TRINE_CUDA_ATTENTION_BACKWARD_SM90_INL_H

#include "attention_backward_sm90_ends.inl.h"
#include "attention_backward_sm90_feed.inl.h"

/* -------------------------------------------------------------------------------------------------------- consumers */

template <class Pipe> struct attention_gradient_consumer {
    using T = typename Pipe::T;
    enum { D = Pipe::D, WIDTH = Pipe::WIDTH, QUERIES = Pipe::QUERIES, HALVES = QUERIES / 64, LANES = 2 * WARPGROUP };
    const attention_backward_sm90_params &p;
    Pipe &pipe;
    int group;    /* 0, 1 */
    int part = 0; /* of the columns */

    /* The first panel of the block's columns. */
    DEVICE int panel() const { return Pipe::SPLIT > 1 ? part * Pipe::OWN : 0; }

    /* sum (+)= own rows of k or v by COUNT queries of q or dout, over so many panels of both. */
    template <int COUNT, int COLUMN_PANELS, bool FIRST>
    DEVICE void multiply(float (&s)[COUNT / 2], uint32_t keys, uint32_t queries) const {
        const uint64_t left = wgmma_operand(keys + group * 8192, Pipe::KEY_PANEL),
                       right = wgmma_operand(queries, Pipe::QUERY_PANEL);
        if constexpr (FIRST) wgmma_first<T, COUNT, false, false>::multiply(s, left, right);
#pragma unroll
        for (int i = FIRST; i < COLUMN_PANELS * 4; i++)
            wgmma<T, COUNT, false, false>::multiply(s, left + (i / 4 * Pipe::KEY_PANEL + i % 4 * 32) / 16,
                                                    right + (i / 4 * Pipe::QUERY_PANEL + i % 4 * 32) / 16, 1);
    }
    /* The tile's scores. */
    DEVICE void scores(float (&s)[QUERIES / 2]) const {
        multiply<QUERIES, Pipe::OWN, true>(s, pipe.memory + panel() * Pipe::KEY_PANEL, pipe.query());
        if constexpr (Pipe::SPLIT > 1) {
            barrier_wait(pipe.others_full(), pipe.slot_parity());
            wgmma_begin();
            multiply<QUERIES, Pipe::OWN, false>(s, pipe.memory + (Pipe::OWN - panel()) * Pipe::KEY_PANEL,
                                                pipe.memory + Pipe::OTHERS);
        }
        wgmma_commit();
    }
    /* And dout.v of 64 queries. */
    DEVICE void products(float (&c)[32], int half) const {
        multiply<64, Pipe::PANELS, true>(c, pipe.memory + Pipe::VALUE, pipe.dout() + half * 8192);
        wgmma_commit();
    }
    /* sum += weights by 64 queries of the block's columns of q or dout. */
    DEVICE void gather(float (&sum)[WIDTH / 2], const uint32_t (&w)[16], uint32_t queries) const {
        const uint64_t right = wgmma_operand(queries, Pipe::QUERY_PANEL);
#pragma unroll
        for (int i = 0; i < 4; i++) wgmma_rows<T, WIDTH>::multiply(sum, w + 4 * i, right + i * 2048 / 16, 1);
    }
    /* The consumer's 64 by 64 of dq: other queries, or other columns. */
    DEVICE void change(float (&dq)[32]) const {
        const uint32_t changes = pipe.changes() + (QUERIES == 128 ? group * 8192 : 0),
                       keys = pipe.memory + (WIDTH == 128 ? panel() + group : 0) * Pipe::KEY_PANEL;
        const uint64_t left = wgmma_operand(changes, Pipe::QUERY_PANEL), right = wgmma_operand(keys, Pipe::KEY_PANEL);
        wgmma_first<T, 64, false, true>::multiply(dq, left, right);
#pragma unroll
        for (int i = 1; i < Pipe::KEYS / 16; i++)
            wgmma<T, 64, false, true>::multiply(dq, left + (i / 4 * Pipe::QUERY_PANEL + i % 4 * 32) / 16,
                                                right + i * 2048 / 16, 1);
        wgmma_commit();
    }

    DEVICE void release(uint32_t empty) const {
        if (thread_index_now() % WARPGROUP == 0) barrier_arrive_here(empty);
    }

    /* Scores of 64 queries from `first` on become 2^24 p, and `w` what dv is summed with. */
    DEVICE void weigh(float *s, uint32_t (&w)[16], uint32_t lifts, const attention_rows &rows, int first,
                      bool hide) const {
        lifts += thread_index_now() % 4 * 8;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float lift[2];
            shared_load(lift, lifts + 32 * j);
#pragma unroll
            for (int e = 0; e < 4; e++) s[4 * j + e] = exp2_approx(fused(s[4 * j + e], p.call.spread, lift[e % 2]));
        }
        if (hide) conceal(s, rows, first);
#pragma unroll
        for (int i = 0; i < 16; i++)
            w[i] = T::pair(s[2 * i] * attention_lift_of<T>::weight(), s[2 * i + 1] * attention_lift_of<T>::weight());
    }
    /* With them, dout.v becomes changes of scores, and what dk and dq are summed with. */
    DEVICE void differ(const float *s, float (&c)[32], uint32_t (&x)[16], uint32_t deltas, const attention_rows &rows,
                       int first, bool hide) const {
        deltas += thread_index_now() % 4 * 8;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float delta[2];
            shared_load(delta, deltas + 32 * j);
#pragma unroll
            for (int e = 0; e < 4; e++)
                c[4 * j + e] = s[4 * j + e] * ((c[4 * j + e] - delta[e % 2]) * attention_lift_of<T>::weight());
        }
        if (hide) conceal(c, rows, first);
#pragma unroll
        for (int i = 0; i < 16; i++) x[i] = T::pair(c[2 * i], c[2 * i + 1]);
    }
    DEVICE void conceal(float *x, const attention_rows &rows, int first) const {
        const int column = first + thread_index_now() % 4 * 2;
#pragma unroll
        for (int i = 0; i < 32; i++) x[i] = rows.sees[i / 2 % 2].has(column + i / 4 * 8 + i % 2) ? x[i] : 0.0f;
    }
    /* Both at once, with a softcap. */
    DEVICE void bend(float *s, float (&c)[32], uint32_t (&w)[16], uint32_t (&x)[16], uint32_t lifts, uint32_t deltas,
                     const attention_rows &rows, int first, bool hide) const {
        const float factor = attention_lift_of<T>::weight();
        const int place = thread_index_now() % 4, column = first + place * 2;
        lifts += place * 8, deltas += place * 8;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float lift[2], delta[2];
            shared_load(lift, lifts + 32 * j);
            shared_load(delta, deltas + 32 * j);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float &z = s[4 * j + e], &d = c[4 * j + e];
                const bool hidden = hide && !rows.sees[e / 2].has(column + 8 * j + e % 2);
                const float t = attention_tanh(z * p.call.bend),
                            weight = exp2_approx(fused(t, p.call.spread, lift[e % 2]));
                d = hidden ? 0.0f : weight * ((d - delta[e % 2]) * (fused(-t, t, 1.0f) * factor));
                z = hidden ? 0.0f : weight;
            }
#pragma unroll
            for (int i = 2 * j; i < 2 * j + 2; i++)
                w[i] = T::pair(s[2 * i] * factor, s[2 * i + 1] * factor), x[i] = T::pair(c[2 * i], c[2 * i + 1]);
        }
    }

    /* Changes as rows of queries, a panel for each consumer's keys. */
    DEVICE void spread(uint32_t changes, const uint32_t (&x)[16]) const {
        const int thread = thread_index_now(), lane = thread % WARP,
                  piece = thread % WARPGROUP / WARP * 2 + lane / 8 % 2;
        const uint32_t to =
            changes + group * Pipe::QUERY_PANEL + (lane / 16 * 8 + lane % 8) * 128 + ((piece ^ lane % 8) << 4);
#pragma unroll
        for (int i = 0; i < 4; i++) store_matrices_across(to + i * 2048, x + 4 * i);
    }

    DEVICE void send(const float (&dq)[32]) {
        const int thread = thread_index_now();
        const uint32_t to = pipe.sum(group) + thread % WARPGROUP * 16;
        if constexpr (Pipe::DEEP)
            barrier_wait(pipe.sum_empty(group), pipe.slot_parity() ^ 1);
        else
            barrier_wait(pipe.dout_empty(), pipe.slot_parity());
#pragma unroll
        for (int i = 0; i < 8; i++)
            shared_store(to + i * WARPGROUP * 16, dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]);
        copies_see();
        sync_warp();
        if (thread % WARP == 0) barrier_arrive_here(pipe.sum_full(group));
    }

    /* A tile of queries. Products are in flight in this order: dk of the tile before; scores;
     * dout.v and dv, by halves; dq, dk. */
    template <bool BENT>
    DEVICE void run_tile(const attention_rows &rows, float (&dk)[WIDTH / 2], float (&dv)[WIDTH / 2], int query,
                         bool hide, bool begins) {
        float s[32 * HALVES], c[HALVES][32], dq[32];
        uint32_t x[HALVES][16];
        barrier_wait(pipe.query_full(), pipe.parity());
        if (begins) barrier_wait(pipe.key_full(), pipe.once());
        wgmma_begin();
        scores(s);
        barrier_wait(pipe.dout_full(), pipe.slot_parity());
        if (begins) barrier_wait(pipe.value_full(), pipe.once());
        wgmma_begin();
        products(c[0], 0);
        wgmma_wait<1>();
        wgmma_settle(s);
        if (!begins) release(pipe.query_before_empty());
        if constexpr (Pipe::SPLIT > 1) release(pipe.others_empty());
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
            uint32_t w[16];
            if constexpr (BENT) {
                wgmma_wait<0>();
                wgmma_settle(c[h]);
                bend(s + 32 * h, c[h], w, x[h], pipe.lifts() + 256 * h, pipe.deltas() + 256 * h, rows, query + 64 * h,
                     hide);
            } else {
                weigh(s + 32 * h, w, pipe.lifts() + 256 * h, rows, query + 64 * h, hide);
            }
            wgmma_begin();
            gather(dv, w, pipe.dout() + panel() * Pipe::QUERY_PANEL + h * 8192);
            wgmma_commit();
            if constexpr (!BENT) {
                wgmma_wait<1>();
                wgmma_settle(c[h]);
                differ(s + 32 * h, c[h], x[h], pipe.deltas() + 256 * h, rows, query + 64 * h, hide);
            }
            if (h + 1 < HALVES) {
                wgmma_begin();
                products(c[h + 1], h + 1);
            }
            spread(pipe.changes() + h * 8192, x[h]);
        }
        copies_see();
        sync_some(1, LANES);
        wgmma_begin();
        change(dq);
#pragma unroll
        for (int h = 0; h < HALVES; h++) gather(dk, x[h], pipe.query() + h * 8192);
        wgmma_commit();
        wgmma_wait<1>();
        wgmma_settle(dq);
        release(pipe.dout_empty());
        send(dq);
        pipe.tiles++;
    }

    template <bool BENT>
    DEVICE void run_task(const attention_gradient_task &t, int batch, const attention_rows &rows,
                         float (&dk)[WIDTH / 2], float (&dv)[WIDTH / 2]) {
        const int first = t.tile * Pipe::KEYS, end = lesser(first + Pipe::KEYS, p.call.at.sk);
        const attention_sight all = { attention_queries_of(p.call.at, batch, end - 1).low,
                                      end == first + Pipe::KEYS ? attention_queries_of(p.call.at, batch, first).high
                                                                : 0 };
        int tile = t.last;
#pragma unroll 1
        for (int step = 0; step < p.share * t.count; step++) {
            const int query = tile * QUERIES;
            run_tile<BENT>(rows, dk, dv, query, query < all.low || query + QUERIES > all.high, step == 0);
            tile = tile > t.last - t.count + 1 ? tile - 1 : t.last;
        }
        wgmma_wait<0>();
        wgmma_settle(dk);
        wgmma_settle(dv);
        release(pipe.query_before_empty());
        release(pipe.keys_empty());
        pipe.full_tasks++;
    }

    /* A part's sums, to be added to those of the others. */
    DEVICE void keep(float *to, const float (&sum)[WIDTH / 2]) const {
#pragma unroll
        for (int i = 0; i < WIDTH / 8; i++)
            store_words(to + (i * WARPGROUP + thread_index() % WARPGROUP) * 4, bits_of_float(sum[4 * i]),
                        bits_of_float(sum[4 * i + 1]), bits_of_float(sum[4 * i + 2]), bits_of_float(sum[4 * i + 3]));
    }

    DEVICE void end(const attention_gradient_task &t, int key, const float (&dk)[WIDTH / 2],
                    const float (&dv)[WIDTH / 2]) const {
        const attention_gradient_place at = attention_gradient_place_of<Pipe>(p, t.plane);
        if (p.parts > 1) {
            float *const to =
                p.dkv + ((int64_t)t.plane * p.call.columns + t.tile) * (2 * Pipe::KEYS * WIDTH) + group * 64 * WIDTH;
            keep(to, dk), keep(to + Pipe::KEYS * WIDTH, dv);
            return;
        }
        const float lift = attention_lift_of<T>::sum();
        const int column = at.part * WIDTH, columns = p.call.at.d - column;
        bool spoilt = false;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int token = key + r * 8;
            const bool exists = token < p.call.at.sk;
            attention_write_row<T, WIDTH>(attention_row<T>(p.call.dk, at.batch, exists ? token : 0, at.shared) + column,
                                          dk, r, p.call.at.scale * lift, false, columns, exists, p.call.wide);
            attention_write_row<T, WIDTH>(attention_row<T>(p.call.dv, at.batch, exists ? token : 0, at.shared) + column,
                                          dv, r, lift, false, columns, exists, p.call.wide);
            spoilt |= exists && (attention_spoilt(dk, r) || attention_spoilt(dv, r));
        }
        if (spoilt) p.spoilt[(int64_t)t.plane * p.call.columns + t.tile] = 1;
    }

    template <bool BENT> DEVICE void run() {
#pragma unroll 1
        for (;;) {
            const attention_gradient_task t = pipe.next_task();
            if (t.plane < 0) return;
            const int key =
                t.tile * Pipe::KEYS + group * 64 + thread_index() % WARPGROUP / WARP * 16 + thread_index() % WARP / 4;
            const int batch = attention_gradient_place_of<Pipe>(p, t.plane).batch;
            attention_rows rows = { { { 0, 0 }, { 0, 0 } }, { 0, 0 }, { 0, 0 }, { 0, 0 } };
#pragma unroll
            for (int r = 0; r < 2; r++)
                if (key + r * 8 < p.call.at.sk) rows.sees[r] = attention_queries_of(p.call.at, batch, key + r * 8);
            float dk[WIDTH / 2] = {}, dv[WIDTH / 2] = {};
            if (Pipe::SPLIT > 1) part = t.plane % Pipe::SPLIT;
            if (t.count > 0) run_task<BENT>(t, batch, rows, dk, dv);
            end(t, key, dk, dv);
        }
    }
};

template <class Pipe, bool BENT> DEVICE void attention_gradient(const attention_backward_sm90_params &p) {
    const int group = thread_index() / WARPGROUP - 1;
    const bool by_hand = p.moved[0] || p.moved[1] || p.moved[2] || p.moved[3];
    Pipe pipe = { shared_address(launch_memory()) };
    if (thread_index() == 0) {
        tensor_map_fetch(&p.q_map);
        tensor_map_fetch(&p.k_map);
        tensor_map_fetch(&p.v_map);
        tensor_map_fetch(&p.dout_map);
        pipe.make_barriers(by_hand ? WARP : 1);
    }
    sync_block();
    if (group < 0) {
        registers_fewer<Pipe::D == 64 ? 40 : 24>();
        if (thread_index() < WARP) {
            if (by_hand)
                attention_gradient_producer<Pipe, true>{ p, pipe }.run();
            else if (elected())
                attention_gradient_producer<Pipe, false>{ p, pipe }.run();
        } else if (thread_index() < 3 * WARP && elected()) {
            attention_gradient_writer(p, pipe, thread_index() / WARP - 1);
        }
    } else {
        registers_more<Pipe::D == 64 ? 232 : 240>();
        attention_gradient_consumer<Pipe>{ p, pipe, group }.template run<BENT>();
    }
}

#endif
