/* SPDX-License-Identifier: Apache-2.0 */
/* Attention for sm_90a: copies of boxes, products of warpgroups, weights that stay in registers.
 *
 * A block is a producer warpgroup, one thread of which keeps copies on their way, and two or three consumers, each with 64 queries of a tile: their sums of o,
 * a tile of scores, and the weights of the tile before as the left operand of their product with v. Consumers take turns in starting products, so that one's
 * exponentials go on while the tensor cores have another's products; and each starts the scores of the next keys before it turns to the exponentials of these.
 * Keys go from the last to the first. Blocks stay, and take tiles in turns of alternating direction; while consumers write a tile, copies for the next one are
 * under way.
 *
 * NOTES. Floors: 4 flops for each visible pair and column, 4096 a clock and processor, and an exponential for each pair, 16 a clock and processor: the same
 * time at d = 64, half of it at 128. What was learned:
 * - Left to itself the compiler moves the exponentials behind the wait for the product that they are to overlap with. The question whether o changes depends on
 *   all of them, and so holds them in front of it; it spares the multiplication of o in most tiles besides.
 * - Measured on an H200 beside cuDNN 9.19, bf16, 16384 tokens, s 16384, TFLOP/s: d 64 448 of 445 full, 442 of 427 causal; d 128 564 of 612 and 594 of 604;
 *   d 256 691 of 695 and 674 of 602. Short sequences lose more: 424 of 476 and 266 of 293 at d 128, s 1024.
 * - Causal tiles by bunches of heads cost 40 % at d 128, s 16384 (373 of 634): turns of alternating direction then give some blocks the largest tile of each
 *   bunch.
 * - Copies of boxes trap where box and tensor do not begin at 16 bytes: such tensors are moved by hand, since results must not depend on addresses. */
#ifndef TRINE_CUDA_ATTENTION_SM90_INL_H
#define TRINE_CUDA_ATTENTION_SM90_INL_H

#include "attention_rows.h"
#include "attention_sm90.h"
#include "tile/rows.h"

template <class Type, int COLUMNS, int TILE_KEYS, int CONSUMERS, int DEPTH> struct attention_pipe {
    using T = Type;
    enum {
        D = COLUMNS,
        KEYS = TILE_KEYS,
        GROUPS = CONSUMERS,
        STAGES = DEPTH,
        ROWS = GROUPS * 64,
        THREADS = (GROUPS + 1) * WARPGROUP,
        PANELS = D / 64, /* of 64 columns, 128 bytes */
        Q_PANEL = ROWS * 128,
        K_PANEL = KEYS * 128,
        TILE = KEYS * 2 * D,
        TILES = ROWS * 2 * D, /* the first stage */
        BARRIERS = TILES + 2 * STAGES * TILE,
    };
    uint32_t memory;
    int stage[2]; /* of k and v */
    uint32_t parity[2], q_parity;

    DEVICE uint32_t q_full() const { return memory + BARRIERS; }
    DEVICE uint32_t q_empty() const { return q_full() + 8; }
    DEVICE uint32_t tile(int which) const { return memory + TILES + (which * STAGES + stage[which]) * TILE; }
    DEVICE uint32_t full(int which) const { return memory + BARRIERS + 16 + (which * STAGES + stage[which]) * 16; }
    DEVICE uint32_t empty(int which) const { return full(which) + 8; }
    DEVICE void advance(int which) {
        stage[which]++;
        if (stage[which] == STAGES) stage[which] = 0, parity[which] ^= 1;
    }

    DEVICE void make_barriers() const {
        barrier_init(q_full(), 1);
        barrier_init(q_empty(), GROUPS);
        for (int i = 0; i < 2 * STAGES; i++) {
            barrier_init(memory + BARRIERS + 16 + i * 16, 1);
            barrier_init(memory + BARRIERS + 16 + i * 16 + 8, GROUPS);
        }
        barriers_made();
    }
};

enum { ATTENTION_KEY, ATTENTION_VALUE };

/* ---------------------------------------------------------------------------------------------------------------------- tiles */

struct attention_task {
    int first, head, batch;
    int low, count;      /* the first key of the first of so many tiles of keys */
    attention_sight all; /* what all queries of the tile see */
};

/* The block's tile of a round; false if there is none. */
template <class Pipe> DEVICE bool attention_task_of(const attention_sm90_params &p, int round, attention_task *task_out) {
    const int blocks = (int)block_count(), block = (int)block_index(), at = round % 2 ? (round + 1) * blocks - 1 - block : round * blocks + block;
    if (at >= p.planes * p.call.tiles) return false;
    const int section = at / (p.bunch * p.call.tiles), rest = at - section * p.bunch * p.call.tiles, first = section * p.bunch,
              bunch = lesser(p.bunch, p.planes - first), tile = rest / bunch, plane = first + rest - tile * bunch;
    attention_task t = { (p.call.tiles - 1 - tile) * Pipe::ROWS, plane % p.call.at.h, plane / p.call.at.h };
    const attention_sight top = attention_keys_of(p.call.at, t.first), bottom = attention_keys_of(p.call.at, lesser(t.first + Pipe::ROWS, p.call.at.sq) - 1);
    t.low = top.low, t.count = (greater(bottom.high - top.low, 0) + Pipe::KEYS - 1) / Pipe::KEYS, t.all = { bottom.low, top.high };
    *task_out = t;
    return true;
}

/* A tensor that does not begin at 16 bytes, which copies of boxes cannot read: the first THREADS of the block move ROWS tokens element by element, as boxes
 * would. */
template <class T, int D, int ROWS, int THREADS>
DEVICE void attention_move(uint32_t to, const attention_tensor &t, int batch, int first, int end, int head, int columns) {
    const typename T::bits *const from = attention_row<T>(t, batch, first, head);
#pragma unroll 1
    for (int i = thread_index(); i < ROWS * D; i += THREADS) {
        const int row = i / D, column = i % D;
        const uint16_t x = first + row < end && column < columns ? from[row * t.token + column] : 0;
        shared_store(to + column / 64 * ROWS * 128 + row * 128 + ((column % 64 / 8 ^ row % 8) << 4) + column % 8 * 2, x);
    }
}

/* Whoever calls this is one thread, or the warpgroup if anything is moved BY_HAND. */
template <class Pipe, bool BY_HAND> struct attention_producer {
    const attention_sm90_params &p;
    Pipe &pipe;

    /* `moved`: ends what the warpgroup moved; begins what copies bring otherwise. */
    DEVICE bool begin(uint32_t full, int bytes, bool moved) const {
        if (BY_HAND && moved) return false;
        if (!BY_HAND || thread_index() == 0) barrier_expect(full, bytes);
        return !BY_HAND || thread_index() == 0;
    }
    DEVICE void end(uint32_t full) const {
        copies_see();
        sync_some(Pipe::GROUPS + 1, WARPGROUP);
        if (thread_index() == 0) barrier_arrive_here(full);
    }

    DEVICE void queries(const attention_task &t) {
        barrier_wait(pipe.q_empty(), pipe.q_parity ^ 1);
        if (begin(pipe.q_full(), Pipe::TILES, p.moved[0]))
            for (int i = 0; i < Pipe::PANELS * Pipe::GROUPS; i++)
                copy_box(pipe.memory + i / Pipe::GROUPS * Pipe::Q_PANEL + i % Pipe::GROUPS * 8192, &p.q_map, pipe.q_full(), i / Pipe::GROUPS * 64,
                         t.first + i % Pipe::GROUPS * 64, t.head, t.batch);
        if constexpr (BY_HAND)
            if (p.moved[0]) {
                attention_move<typename Pipe::T, Pipe::D, Pipe::ROWS, WARPGROUP>(pipe.memory, p.call.q, t.batch, t.first, p.call.at.sq, t.head, p.call.at.d);
                end(pipe.q_full());
            }
        pipe.q_parity ^= 1;
    }

    DEVICE void keys(int which, const attention_task &t, int tile) {
        const int head = t.head / p.call.at.group, first = t.low + tile * Pipe::KEYS;
        barrier_wait(pipe.empty(which), pipe.parity[which] ^ 1);
        if (begin(pipe.full(which), Pipe::TILE, p.moved[1 + which]))
            for (int i = 0; i < Pipe::PANELS; i++)
                copy_box(pipe.tile(which) + i * Pipe::K_PANEL, which == ATTENTION_KEY ? &p.k_map : &p.v_map, pipe.full(which), i * 64, first, head, t.batch);
        if constexpr (BY_HAND)
            if (p.moved[1 + which]) {
                attention_move<typename Pipe::T, Pipe::D, Pipe::KEYS, WARPGROUP>(pipe.tile(which), which == ATTENTION_KEY ? p.call.k : p.call.v, t.batch, first,
                                                                                 p.call.at.sk, head, p.call.at.d);
                end(pipe.full(which));
            }
        pipe.advance(which);
    }

    DEVICE void run() {
        attention_task t;
#pragma unroll 1
        for (int round = 0; attention_task_of<Pipe>(p, round, &t); round++) {
            if (t.count == 0) continue;
            queries(t);
#pragma unroll 1
            for (int tile = t.count - 1; tile >= 0; tile--) {
                keys(ATTENTION_KEY, t, tile);
                if (tile < t.count - 1) keys(ATTENTION_VALUE, t, tile + 1);
            }
            keys(ATTENTION_VALUE, t, 0);
        }
    }
};

/* ------------------------------------------------------------------------------------------------------------------- consumers */

template <class Pipe> DEVICE void attention_scores(float (&s)[Pipe::KEYS / 2], const Pipe &pipe, int group) {
    const uint64_t q = wgmma_operand(pipe.memory + group * 8192, Pipe::Q_PANEL), k = wgmma_operand(pipe.tile(ATTENTION_KEY), Pipe::K_PANEL);
#pragma unroll
    for (int i = 0; i < Pipe::D / 16; i++)
        wgmma<typename Pipe::T, Pipe::KEYS, false, false>::multiply(s, q + (i / 4 * Pipe::Q_PANEL + i % 4 * 32) / 16,
                                                                    k + (i / 4 * Pipe::K_PANEL + i % 4 * 32) / 16, i > 0);
    wgmma_commit();
}

template <class Pipe> DEVICE void attention_values(float (&o)[Pipe::D / 2], const uint32_t (&w)[Pipe::KEYS / 4], const Pipe &pipe, bool add) {
    const uint64_t v = wgmma_operand(pipe.tile(ATTENTION_VALUE), Pipe::K_PANEL);
#pragma unroll
    for (int i = 0; i < Pipe::KEYS / 16; i++) wgmma_rows<typename Pipe::T, Pipe::D>::multiply(o, w + 4 * i, v + i * 2048 / 16, add || i > 0);
    wgmma_commit();
}

/* The warpgroup is done with what an operand was read from. */
DEVICE void attention_release(uint32_t empty) {
    if (thread_index() % WARPGROUP == 0) barrier_arrive_here(empty);
}

/* Consumers start products one after the other. */
template <int GROUPS> DEVICE void attention_turn(int group) { sync_some(1 + group, 2 * WARPGROUP); }
template <int GROUPS> DEVICE void attention_next(int group) { arrive_some(1 + (group + 1) % GROUPS, 2 * WARPGROUP); }

template <class Pipe, bool BENT>
DEVICE void attention_weigh(const attention_sm90_params &p, const attention_task &t, int tile, float (&s)[Pipe::KEYS / 2], attention_rows &rows,
                            float (&factor)[2]) {
    const int first = t.low + tile * Pipe::KEYS;
    if constexpr (BENT) attention_bend(s, p.call.bend);
    if (first < t.all.low || first + Pipe::KEYS > t.all.high) attention_hide(s, rows, first);
    attention_soften(s, rows, factor, p.call.spread);
}

/* Sums of o for a tile that sees any keys. */
template <class Pipe, bool BENT>
DEVICE void attention_consume(const attention_sm90_params &p, Pipe &pipe, const attention_task &t, int group, float (&o)[Pipe::D / 2], attention_rows &rows) {
    float s[Pipe::KEYS / 2], factor[2];
    uint32_t w[Pipe::KEYS / 4];
    barrier_wait(pipe.q_full(), pipe.q_parity);
    pipe.q_parity ^= 1;
    barrier_wait(pipe.full(ATTENTION_KEY), pipe.parity[ATTENTION_KEY]);
    wgmma_begin();
    attention_scores(s, pipe, group);
    wgmma_wait<0>();
    wgmma_settle(s);
    attention_release(pipe.empty(ATTENTION_KEY));
    pipe.advance(ATTENTION_KEY);
    attention_weigh<Pipe, BENT>(p, t, t.count - 1, s, rows, factor);
    attention_pack<typename Pipe::T>(w, s);
#pragma unroll 1
    for (int tile = t.count - 2; tile >= 0; tile--) {
        barrier_wait(pipe.full(ATTENTION_KEY), pipe.parity[ATTENTION_KEY]);
        attention_turn<Pipe::GROUPS>(group);
        wgmma_begin();
        attention_scores(s, pipe, group);
        barrier_wait(pipe.full(ATTENTION_VALUE), pipe.parity[ATTENTION_VALUE]);
        attention_values(o, w, pipe, tile < t.count - 2);
        attention_next<Pipe::GROUPS>(group);
        wgmma_wait<1>();
        wgmma_settle(s);
        attention_release(pipe.empty(ATTENTION_KEY));
        pipe.advance(ATTENTION_KEY);
        attention_weigh<Pipe, BENT>(p, t, tile, s, rows, factor);
        /* The wait comes before the answer: with one on either way the compiler makes two loops, and warps of a group must not be in different ones. */
        const bool changes = attention_changes(rows, factor);
        wgmma_wait<0>();
        wgmma_settle(o);
        attention_release(pipe.empty(ATTENTION_VALUE));
        if (changes) attention_scale(o, factor);
        pipe.advance(ATTENTION_VALUE);
        attention_pack<typename Pipe::T>(w, s);
    }
    attention_release(pipe.q_empty());
    barrier_wait(pipe.full(ATTENTION_VALUE), pipe.parity[ATTENTION_VALUE]);
    wgmma_begin();
    attention_values(o, w, pipe, t.count > 1);
    wgmma_wait<0>();
    wgmma_settle(o);
    attention_release(pipe.empty(ATTENTION_VALUE));
    pipe.advance(ATTENTION_VALUE);
}

template <class Pipe, bool BENT> DEVICE void attention_persistent(const attention_sm90_params &p) {
    const int group = thread_index() / WARPGROUP - 1;
    Pipe pipe = { shared_address(launch_memory()) };
    if (thread_index() == 0) {
        tensor_map_fetch(&p.q_map);
        tensor_map_fetch(&p.k_map);
        tensor_map_fetch(&p.v_map);
        pipe.make_barriers();
    }
    sync_block();
    if (group < 0) {
        registers_fewer<Pipe::GROUPS == 2 ? 24 : 32>();
        if (p.moved[0] || p.moved[1] || p.moved[2])
            attention_producer<Pipe, true>{ p, pipe }.run();
        else if (thread_index() < WARP && elected())
            attention_producer<Pipe, false>{ p, pipe }.run();
    } else {
        registers_more<Pipe::GROUPS == 2 ? 240 : 160>();
        if (group == Pipe::GROUPS - 1) attention_next<Pipe::GROUPS>(group);
        attention_task t;
        for (int round = 0; attention_task_of<Pipe>(p, round, &t); round++) {
            const int row = t.first + group * 64 + thread_index() % WARPGROUP / WARP * 16 + thread_index() % WARP / 4;
            attention_rows rows = attention_rows_of(p.call.at, row);
            float o[Pipe::D / 2] = {};
            if (t.count > 0) attention_consume<Pipe, BENT>(p, pipe, t, group, o, rows);
            attention_end<typename Pipe::T, Pipe::D>(p.call, t.batch, t.head, row, o, rows);
        }
    }
}

#endif
