/* SPDX-License-Identifier: Apache-2.0 */
/* Attention for sm_90a: copies of boxes, products of warpgroups, weights that stay in registers.
 *
 * A block is a producer warpgroup, one thread of which keeps copies on their way, and one to three consumers, each with
 * 64 queries of a tile: their sums of o, a tile of scores, and the weights of the tile before as the left operand of
 * their product with v. Consumers take turns in starting products, so that one's exponentials go on while the tensor
 * cores have another's products; and each starts the scores of the next keys before it turns to the exponentials of
 * these. Keys go from the last to the first. Blocks stay, and take tiles in turns of alternating direction: the first
 * scores of a tile are started with the last values of the one before, and half of their exponentials come before that
 * one's o is written. The producer finds the tiles. Which tiles a call is cut into the host predicts
 * (attention_sm90.c); blocks of one consumer share an SM with one or two others.
 *
 * NOTES. Floors: 4 flops for each visible pair and column, 4096 a clock and SM, and an exponential for each pair, 16 a
 * clock and SM: the same time at d = 64, half of it at 128. What was learned:
 * - Left to itself the compiler moves the wait for the product that exponentials are to overlap with in front of them,
 * over votes too. It does not move it over
 *   the release of a stage, whose address is therefore made to depend on the weights' sums (attention_after).
 * - An operand's address that the compiler knows to be the same in all lanes needs no moves: 140 instructions from one
 * turn to the next became 76 (d 128). - These two, and tiles that follow each other without a gap: 5 % (d 64), 7 (128),
 * 11 (256). Tiles found by the producer, and stores of o without a branch to
 *   each: 1 to 2 % more, 3 to 6 at s 1024.
 * - Under a causal mask with s 1024 heads are so many that blocks share no keys, which memory then reads for each tile.
 * In bunches of whole rounds: 11 % (d
 *   128, 256). Rounds that straddle bunches cost 40 % at s 16384, where some blocks get the largest tile of each. Tiles
 *     of 192 queries lose 3 to 14 % by bunches.
 * - Lost: groups that pass over keys that none of their queries sees (192 queries: 3 %, by registers); tiles of 160 and
 * 176 keys at d 128 (4 to 16 % at s 1024,
 *   while s 16384 gains 3 to 6). More in docs/learned.md.
 * - Measured on an H200 beside cuDNN 9.19, bf16, 16384 tokens, full and causal, TFLOP/s: s 1024 d 64 359 of 460 and 273
 * of 323, d 128 506 of 621 and 421 of
 *   426, d 256 566 of 635 and 414 of 437; s 16384 529 of 526 and 479 of 505, 655 of 683 and 663 of 598, 805 of 740 and
 *     792 of 649.
 * - Copies of boxes trap where box and tensor do not begin at 16 bytes: such tensors are moved by hand, since results
 * must not depend on addresses. */
#ifndef TRINE_CUDA_ATTENTION_SM90_INL_H
#define TRINE_CUDA_ATTENTION_SM90_INL_H

#include "attention_rows.h"
#include "attention_sm90.h"
#include "backends/cuda/tile/rows.h"

/* Of the stages of keys, or of values, one; and how often all have been filled. */
struct attention_stage {
    int number;
    uint32_t parity;
};

template <class Type, int COLUMNS, int QUERIES, int TILE_KEYS, int DEPTH> struct attention_pipe {
    using T = Type;
    enum {
        D = COLUMNS,
        KEYS = TILE_KEYS,
        GROUPS = QUERIES / 64,
        STAGES = DEPTH,
        ROWS = QUERIES,
        PANELS = ATTENTION_SM90_PANELS(D), /* of 64 columns, 128 bytes */
        Q_PANEL = ROWS * 128,
        K_PANEL = KEYS * 128,
        TILE = PANELS * K_PANEL,
        TILES = PANELS * Q_PANEL,          /* the first stage */
        TASKS = TILES + 2 * STAGES * TILE, /* what the queries at hand, and those before and after, are of */
        BARRIERS = TASKS + 32 * ATTENTION_SM90_TASKS,
    };
    uint32_t memory;

    DEVICE uint32_t task(int number) const { return memory + TASKS + number % ATTENTION_SM90_TASKS * 32; }
    DEVICE uint32_t q_full() const { return memory + BARRIERS; }
    DEVICE uint32_t q_empty() const { return q_full() + 8; }
    DEVICE uint32_t tile(int which, attention_stage at) const {
        return memory + TILES + (which * STAGES + at.number) * TILE;
    }
    DEVICE uint32_t full(int which, attention_stage at) const {
        return memory + BARRIERS + 16 + (which * STAGES + at.number) * 16;
    }
    DEVICE uint32_t empty(int which, attention_stage at) const { return full(which, at) + 8; }
    DEVICE static attention_stage after(attention_stage at) {
        return at.number + 1 == STAGES ? attention_stage{ 0, at.parity ^ 1 }
                                       : attention_stage{ at.number + 1, at.parity };
    }
    DEVICE static attention_stage before(attention_stage at) {
        return at.number == 0 ? attention_stage{ STAGES - 1, at.parity ^ 1 }
                              : attention_stage{ at.number - 1, at.parity };
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

/* ------------------------------------------------------------------------------------------------------------ tiles */

struct attention_task {
    int first, head, batch;
    int low, count; /* the first key of the first of so many tiles of keys, one at least */
    bool more;      /* the block has a tile after this */
};

/* The block's slot of a round, and its section: bunches of heads have sections of slots, some of which may be empty. */
struct attention_slot {
    int at, section, rest, bunch;
    DEVICE attention_slot(const attention_sm90_params &p, int round) {
        const int blocks = (int)block_count(), block = (int)block_index();
        at = round % 2 ? (round + 1) * blocks - 1 - block : round * blocks + block;
        section = at / p.span, rest = at - section * p.span, bunch = lesser(p.bunch, p.planes - section * p.bunch);
    }
};

/* The first round from this one on in which the block has a tile; -1 if there is none. */
DEVICE int attention_round(const attention_sm90_params &p, int round) {
    for (;; round++) {
        const attention_slot slot(p, round);
        if (slot.at >= p.slots) return -1;
        if (slot.rest < slot.bunch * p.call.tiles) return round;
    }
}

template <class Pipe> DEVICE attention_task attention_task_of(const attention_sm90_params &p, int round) {
    const attention_slot slot(p, round);
    const int tile = slot.rest / slot.bunch, plane = slot.section * p.bunch + slot.rest - tile * slot.bunch;
    attention_task t = { (p.call.tiles - 1 - tile) * Pipe::ROWS, plane % p.call.at.h, plane / p.call.at.h };
    const attention_sight top = attention_keys_of(p.call.at, t.batch, t.first),
                          bottom =
                              attention_keys_of(p.call.at, t.batch, lesser(t.first + Pipe::ROWS, p.call.at.sq) - 1);
    t.low = top.low, t.count = (greater(bottom.high - top.low, 1) + Pipe::KEYS - 1) / Pipe::KEYS;
    return t;
}

/* The producer finds tasks, since that takes long. */
DEVICE void attention_task_put(uint32_t to, const attention_task &t) {
    shared_store(to, (uint32_t)t.first, (uint32_t)t.head);
    shared_store(to + 8, (uint32_t)t.batch, (uint32_t)t.low);
    shared_store(to + 16, (uint32_t)t.count, (uint32_t)t.more);
}
DEVICE attention_task attention_task_get(uint32_t from) {
    const packed<uint32_t, 4> a = shared_load_piece(from), b = shared_load_piece(from + 16);
    return { (int)shuffle_first(a.v[0]), (int)shuffle_first(a.v[1]), (int)shuffle_first(a.v[2]),
             (int)shuffle_first(a.v[3]), (int)shuffle_first(b.v[0]), shuffle_first(b.v[1]) != 0 };
}

/* A tensor that does not begin at 16 bytes, which copies of boxes cannot read: the first THREADS of the block move ROWS
 * tokens element by element, as boxes would. */
template <class T, int D, int ROWS, int THREADS>
DEVICE void attention_move(uint32_t to, const attention_tensor &t, int batch, int first, int end, int head,
                           int columns) {
    const typename T::bits *const from = attention_row<T>(t, batch, first, head);
#pragma unroll 1
    for (int i = thread_index(); i < ROWS * D; i += THREADS) {
        const int row = i / D, column = i % D;
        const uint16_t x = first + row < end && column < columns ? from[row * t.token + column] : 0;
        shared_store(to + column / 64 * ROWS * 128 + row * 128 + ((column % 64 / 8 ^ row % 8) << 4) + column % 8 * 2,
                     x);
    }
}

/* Whoever calls this is one thread, or the warpgroup if anything is moved by hand. */
template <class Pipe> struct attention_producer {
    const attention_sm90_params &p;
    const Pipe pipe;
    const bool by_hand;
    attention_stage at[2]; /* of keys and values, to be filled next */

    DEVICE bool first() const { return !by_hand || thread_index() == 0; }
    /* Ends what the warpgroup moved. */
    DEVICE void end(uint32_t full) const {
        copies_see();
        sync_some(Pipe::GROUPS + 1, WARPGROUP);
        if (thread_index() == 0) barrier_arrive_here(full);
    }

    DEVICE void queries(const attention_task &t, int number) {
        barrier_wait(pipe.q_empty(), number % 2 ^ 1);
        if (first()) attention_task_put(pipe.task(number), t);
        if (p.moved[0]) {
            attention_move<typename Pipe::T, 64 * Pipe::PANELS, Pipe::ROWS, WARPGROUP>(
                pipe.memory, p.call.q, t.batch, t.first, p.call.at.sq, t.head, p.call.at.d);
            end(pipe.q_full());
        } else if (first()) {
            barrier_expect(pipe.q_full(), Pipe::TILES);
            for (int i = 0; i < Pipe::PANELS * Pipe::GROUPS; i++)
                copy_box(pipe.memory + i / Pipe::GROUPS * Pipe::Q_PANEL + i % Pipe::GROUPS * 8192, &p.q_map,
                         pipe.q_full(), i / Pipe::GROUPS * 64, t.first + i % Pipe::GROUPS * 64, t.head, t.batch);
        }
    }

    DEVICE void keys(int which, const attention_task &t, int tile) {
        const int head = t.head / p.call.at.group, first_key = t.low + tile * Pipe::KEYS;
        const uint32_t to = pipe.tile(which, at[which]), full = pipe.full(which, at[which]);
        barrier_wait(pipe.empty(which, at[which]), at[which].parity ^ 1);
        if (p.moved[1 + which]) {
            attention_move<typename Pipe::T, 64 * Pipe::PANELS, Pipe::KEYS, WARPGROUP>(
                to, which == ATTENTION_KEY ? p.call.k : p.call.v, t.batch, first_key, p.call.at.sk, head, p.call.at.d);
            end(full);
        } else if (first()) {
            barrier_expect(full, Pipe::TILE);
            for (int i = 0; i < Pipe::PANELS; i++)
                copy_box(to + i * Pipe::K_PANEL, which == ATTENTION_KEY ? &p.k_map : &p.v_map, full, i * 64, first_key,
                         head, t.batch);
        }
        at[which] = Pipe::after(at[which]);
    }

    /* In the order in which consumers want them: the last keys of the next tile before the first values of this one. */
    DEVICE void run() {
        int round = attention_round(p, 0);
        if (round < 0) return;
        attention_task t = attention_task_of<Pipe>(p, round);
        keys(ATTENTION_KEY, t, t.count - 1);
#pragma unroll 1
        for (int number = 0;; number++) {
            round = attention_round(p, round + 1), t.more = round >= 0;
            queries(t, number);
            const attention_task next = t.more ? attention_task_of<Pipe>(p, round) : t;
#pragma unroll 1
            for (int tile = t.count - 2; tile >= 0; tile--) {
                keys(ATTENTION_KEY, t, tile);
                keys(ATTENTION_VALUE, t, tile + 1);
            }
            if (t.more) keys(ATTENTION_KEY, next, next.count - 1);
            keys(ATTENTION_VALUE, t, 0);
            if (!t.more) return;
            t = next;
        }
    }
};

/* -------------------------------------------------------------------------------------------------------- consumers */

/* An operand whose address is known to be the same in all lanes, so that where its parts are takes no registers. */
struct attention_operand {
    uint32_t low, high;
    DEVICE attention_operand(uint32_t address, int panel) {
        const uint64_t whole = wgmma_operand(address, panel);
        low = shuffle_first((uint32_t)whole), high = (uint32_t)(wgmma_operand(0, panel) >> 32);
    }
    DEVICE uint64_t at(int bytes) const { return (uint64_t)high << 32 | (low + bytes / 16); }
};

template <class Pipe>
DEVICE void attention_scores(float (&s)[Pipe::KEYS / 2], const attention_operand &q, const attention_operand &k) {
#pragma unroll
    for (int i = 0; i < Pipe::D / 16; i++)
        wgmma<typename Pipe::T, Pipe::KEYS, false, false>::multiply(s, q.at(i / 4 * Pipe::Q_PANEL + i % 4 * 32),
                                                                    k.at(i / 4 * Pipe::K_PANEL + i % 4 * 32), i > 0);
    wgmma_commit();
}

template <class Pipe>
DEVICE void attention_values(float (&o)[Pipe::D / 2], const uint32_t (&w)[Pipe::KEYS / 4], const attention_operand &v) {
#pragma unroll
    for (int i = 0; i < Pipe::KEYS / 16; i++)
        wgmma_rows<typename Pipe::T, Pipe::D>::multiply(o, w + 4 * i, v.at(i * 2048), true);
    wgmma_commit();
}

template <int N> DEVICE void attention_clear(float (&o)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) o[i] = 0;
}

/* The warpgroup is done with what an operand was read from. */
DEVICE void attention_release(uint32_t empty) {
    if (thread_index() % WARPGROUP == 0) barrier_arrive_here(empty);
}

/* An address that counts as known only once the sums of weights are. */
DEVICE uint32_t attention_after(uint32_t address, const attention_rows &rows) {
    asm volatile("{\n.reg .pred p;\nsetp.lt.f32 p, %1, 0f00000000;\n@p add.u32 %0, %0, 1;\nsetp.lt.f32 p, %2, "
                 "0f00000000;\n@p add.u32 %0, %0, 1;\n}"
                 : "+r"(address)
                 : "f"(rows.sum[0]), "f"(rows.sum[1]));
    return address;
}

/* Consumers start products one after the other. */
template <int GROUPS> DEVICE void attention_turn(int group) {
    sync_some(1 + group, GROUPS > 1 ? 2 * WARPGROUP : WARPGROUP);
}
template <int GROUPS> DEVICE void attention_next(int group) {
    if constexpr (GROUPS > 1) arrive_some(1 + (group + 1) % GROUPS, 2 * WARPGROUP);
}

template <class Pipe, bool BENT> struct attention_consumer {
    /* Three consumers have no registers for two tiles' rows, nor for what half of the exponentials leaves: there a tile
     * ends before the next one's exponentials. */
    enum {
        KEYS = Pipe::KEYS,
        FEW = Pipe::GROUPS == 3,
        HALF = FEW ? KEYS / 2 : KEYS / 32 * 8, /* of a thread's scores, whole pieces of 16 keys */
    };
    const attention_sm90_params &p;
    const Pipe pipe;
    const int group;
    int number;         /* of the tile whose weights w has */
    int low;            /* its first key */
    attention_stage at; /* of the next keys; the values for these weights are one behind */
    attention_rows rows;
    attention_sight all; /* what all rows of the warp see */
    float o[Pipe::D / 2], s[KEYS / 2];
    uint32_t w[KEYS / 4];

    DEVICE attention_operand queries() const { return { pipe.memory + group * 8192, Pipe::Q_PANEL }; }
    DEVICE attention_operand tile(int which, attention_stage of) const {
        return { pipe.tile(which, of), Pipe::K_PANEL };
    }
    DEVICE attention_task task(int of) const { return attention_task_get(pipe.task(of)); }
    DEVICE int row_of(const attention_task &t) const {
        return t.first + group * 64 + thread_index() % WARPGROUP / WARP * 16 + thread_index() % WARP / 4;
    }

    /* Rows of a tile. Those beyond the last see what that sees, so that nothing need be hidden for their sake. */
    DEVICE void begin(const attention_task &t) {
        rows = attention_rows_of(p.call.at, t.batch, row_of(t));
        low = t.low;
        all = { most_of_warp(greater(rows.sees[0].low, rows.sees[1].low)),
                least_of_warp(lesser(rows.sees[0].high, rows.sees[1].high)) };
    }
    DEVICE void end(const attention_rows &ended) {
        const attention_task t = task(number);
        attention_end<typename Pipe::T, Pipe::D>(p.call, t.batch, t.head, row_of(t), o, ended);
    }

    DEVICE void end_tile(const attention_rows &ended) {
        if constexpr (FEW) {
            wgmma_wait<0>();
            wgmma_settle(o);
        }
        end(ended);
        attention_clear(o);
        number++;
    }

    /* Scores of a tile of keys, with so many before it: what is hidden goes. */
    DEVICE void bend_and_hide(int before) {
        const int first = low + before * KEYS;
        if constexpr (BENT) attention_bend(s, p.call.bend);
        if (first < all.low || first + KEYS > all.high) attention_hide(s, rows, first);
    }

    /* The weights of the last keys of the first tile, while nothing else is in flight; how many tiles of keys are left.
     */
    DEVICE int start() {
        float factor[2];
        barrier_wait(pipe.q_full(), 0);
        const attention_task t = task(0);
        number = 0, at = { 0, 0 };
        begin(t);
        attention_clear(o);
        barrier_wait(pipe.full(ATTENTION_KEY, at), 0);
        const attention_operand q = queries(), k = tile(ATTENTION_KEY, at);
        wgmma_begin();
        attention_scores<Pipe>(s, q, k);
        wgmma_wait<0>();
        wgmma_settle(s);
        attention_release(pipe.empty(ATTENTION_KEY, at));
        if (t.count == 1) attention_release(pipe.q_empty());
        at = Pipe::after(at);
        bend_and_hide(t.count - 1);
        attention_soften(s, rows, factor, p.call.spread);
        attention_pack<typename Pipe::T>(w, s);
        return t.count - 1;
    }

    /* The last product of the last tile. */
    DEVICE void finish() {
        const attention_stage behind = Pipe::before(at);
        const attention_operand v = tile(ATTENTION_VALUE, behind);
        barrier_wait(pipe.full(ATTENTION_VALUE, behind), behind.parity);
        attention_turn<Pipe::GROUPS>(group);
        wgmma_begin();
        attention_values<Pipe>(o, w, v);
        attention_next<Pipe::GROUPS>(group);
        wgmma_wait<0>();
        wgmma_settle(o);
        end(rows);
    }

    /* Scores of the next keys and values of these, at once; the first keys of the next tile come with the last values
     * of this one, which ends then. Half of the exponentials are for the time that the values' product takes, the other
     * half for what is left to do with its sums. */
    DEVICE void step(int left, bool last) {
        const attention_stage behind = Pipe::before(at);
        const attention_operand q = queries(), k = tile(ATTENTION_KEY, at), v = tile(ATTENTION_VALUE, behind);
        float factor[2], base[2];
        barriers_wait(pipe.full(ATTENTION_KEY, at), at.parity, pipe.full(ATTENTION_VALUE, behind), behind.parity);
        attention_turn<Pipe::GROUPS>(group);
        wgmma_begin();
        attention_scores<Pipe>(s, q, k);
        attention_values<Pipe>(o, w, v);
        attention_next<Pipe::GROUPS>(group);
        wgmma_wait<1>();
        wgmma_settle(s);
        if (left == 0) attention_release(pipe.q_empty());
        const attention_rows ended = rows;
        if (last) {
            if constexpr (FEW) end_tile(rows);
            begin(task(number + !FEW));
        }
        bend_and_hide(left);
        const bool rises = attention_rise_if_far(s, rows, factor, base, p.call.spread);
        attention_weights<0, HALF>(s, rows, base, p.call.spread);
        attention_release(attention_after(pipe.empty(ATTENTION_KEY, at), rows));
        wgmma_wait<0>();
        wgmma_settle(o);
        attention_release(pipe.empty(ATTENTION_VALUE, behind));
        at = Pipe::after(at);
        if (!FEW && last) end_tile(ended);
        attention_pack<typename Pipe::T, 0, HALF>(w, s);
        if (rises) attention_scale(o, factor);
        attention_weights<HALF, KEYS / 2>(s, rows, base, p.call.spread);
        attention_pack<typename Pipe::T, HALF, KEYS / 2>(w, s);
    }

    DEVICE void run() {
        if (attention_round(p, 0) < 0) return;
        int left = start(); /* tiles of keys before that whose weights w has */
#pragma unroll 1
        for (;;) {
            const bool last = left == 0;
            if (last) {
                if (!task(number).more) break;
                barrier_wait(pipe.q_full(), (number + 1) % 2);
                left = task(number + 1).count;
            }
            step(--left, last);
        }
        finish();
    }
};

/* Registers of a thread of HELD blocks to an SM, which all threads begin with; those of the producer, and of consumers,
 * which get what it leaves. */
template <int GROUPS, int HELD> struct attention_registers {
    enum {
        ALL = 65536 / (HELD * (GROUPS + 1) * WARPGROUP) / 8 * 8,
        FEW = GROUPS == 3 ? 32 : 24,
        FREE = ALL + (ALL - FEW) / GROUPS / 8 * 8,
        MANY = FREE < 240 ? FREE : 240
    };
};

template <class Pipe, int HELD, bool BENT> DEVICE void attention_persistent(const attention_sm90_params &p) {
    using registers = attention_registers<Pipe::GROUPS, HELD>;
    const int group = thread_index() / WARPGROUP - 1;
    const Pipe pipe = { shared_address(launch_memory()) };
    if (thread_index() == 0) {
        tensor_map_fetch(&p.q_map);
        tensor_map_fetch(&p.k_map);
        tensor_map_fetch(&p.v_map);
        pipe.make_barriers();
    }
    sync_block();
    if (group < 0) {
        registers_fewer<registers::FEW>();
        const bool by_hand = p.moved[0] || p.moved[1] || p.moved[2];
        if (by_hand || (thread_index() < WARP && elected())) attention_producer<Pipe>{ p, pipe, by_hand }.run();
    } else {
        registers_more<registers::MANY>();
        if (group == Pipe::GROUPS - 1) attention_next<Pipe::GROUPS>(group);
        attention_consumer<Pipe, BENT>{ p, pipe, group }.run();
    }
}

#endif
