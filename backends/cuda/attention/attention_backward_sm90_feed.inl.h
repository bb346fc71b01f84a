/* SPDX-License-Identifier: Apache-2.0 */
/* What serves the consumers of attention's gradient for sm_90a: shared memory and its barriers, tasks, the producer of
 * tiles, the writer of dq. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_SM90_FEED_INL_H
#define TRINE_CUDA_ATTENTION_BACKWARD_SM90_FEED_INL_H

#include "attention_backward_pass.h"
#include "attention_backward_sm90.h"
#include "attention_sm90.inl.h"
#include "backends/cuda/tile/turns.h"

template <class Type, int COLUMNS, int TILE_QUERIES> struct attention_gradient_pipe {
    using T = Type;
    enum {
        D = COLUMNS,
        WIDTH = ATTENTION_BACKWARD_WIDTH(D), /* of the block's sums */
        SPLIT = D / WIDTH,
        QUERIES = TILE_QUERIES,
        KEYS = ATTENTION_BACKWARD_KEYS,
        OWN = WIDTH / 64, /* panels of 64 columns: the block's */
        PANELS = D / 64,
        STAGES = 2, /* of the block's columns of q; of the others one */
        /* dout has as many stages, and dq two slots of its own; otherwise one, through which dq goes as well */
        DEEP = SPLIT == 1,
        SLOTS = DEEP ? STAGES : 1, /* of dout, ds and dq */
        KEY_PANEL = KEYS * 128,
        QUERY_PANEL = QUERIES * 128,
        KEY_TILE = KEYS * 2 * D,
        DOUT_TILE = QUERIES * 2 * D,
        CHANGE = QUERIES * 2 * KEYS,
        SUM = 64 * 64 * 4,
        VALUE = KEY_TILE,
        QUERY = 2 * KEY_TILE,
        OTHERS = QUERY + STAGES * OWN * QUERY_PANEL,
        DOUT = OTHERS + (PANELS - OWN) * QUERY_PANEL,
        CHANGES = DOUT + SLOTS * DOUT_TILE,
        SUMS = DEEP ? CHANGES + SLOTS * CHANGE : DOUT,
        LIFTS = CHANGES + SLOTS * CHANGE + (DEEP ? 2 * SLOTS * SUM : 0),
        DELTAS = LIFTS + STAGES * 4 * QUERIES,
        TASK = DELTAS + SLOTS * 4 * QUERIES,
        BARRIERS = TASK + 16,
        SUM_BARRIERS = 7, /* pairs of full and empty, behind others: dq of each writer; dout; q */
        DOUT_BARRIERS = SUM_BARRIERS + 4,
        UNIT = DEEP ? 2 * SUM : SUM, /* bytes of dq that a writer adds at once */
        QUERY_BARRIERS = DOUT_BARRIERS + 2 * SLOTS,
        BYTES = BARRIERS + 8 * (QUERY_BARRIERS + 2 * STAGES),
    };
    static_assert(QUERIES * WIDTH == 2 * 64 * 64, "a consumer has 64 by 64 of dq");
    static_assert(DEEP || DOUT_TILE >= 2 * SUM, "dq has room where dout was");
    static_assert((int)BYTES == ATTENTION_BACKWARD_SM90_BYTES(D, QUERIES), "what the launch asks for");
    uint32_t memory;
    uint32_t tiles = 0, tasks = 0, full_tasks = 0; /* gone through; that had any tiles */

    DEVICE int stage() const { return tiles % 2; }
    DEVICE uint32_t parity() const { return tiles / 2 % 2; }
    DEVICE int slot() const { return DEEP ? stage() : 0; }
    DEVICE uint32_t slot_parity() const { return DEEP ? parity() : stage(); }
    DEVICE uint32_t once() const { return full_tasks % 2; }
    DEVICE uint32_t task() const { return memory + TASK; }
    DEVICE uint32_t barrier(int i) const { return memory + BARRIERS + 8 * i; }
    DEVICE uint32_t key_full() const { return barrier(0); }
    DEVICE uint32_t value_full() const { return barrier(1); }
    DEVICE uint32_t keys_empty() const { return barrier(2); }
    DEVICE uint32_t task_full() const { return barrier(3); }
    DEVICE uint32_t task_empty() const { return barrier(4); }
    DEVICE uint32_t others_full() const { return barrier(5); }
    DEVICE uint32_t others_empty() const { return barrier(6); }
    DEVICE uint32_t sum_full(int group) const { return barrier(SUM_BARRIERS + (DEEP ? slot() : group) * 2); }
    DEVICE uint32_t sum_empty(int group) const { return sum_full(group) + 8; }
    DEVICE uint32_t dout_full() const { return barrier(DOUT_BARRIERS + 2 * slot()); }
    DEVICE uint32_t dout_empty() const { return dout_full() + 8; }
    DEVICE uint32_t query_full() const { return barrier(QUERY_BARRIERS + 2 * stage()); }
    DEVICE uint32_t query_empty() const { return query_full() + 8; }
    DEVICE uint32_t query_before_empty() const { return barrier(QUERY_BARRIERS + 2 * (1 - stage()) + 1); }
    DEVICE uint32_t query() const { return memory + QUERY + stage() * OWN * QUERY_PANEL; }
    DEVICE uint32_t dout() const { return memory + DOUT + slot() * DOUT_TILE; }
    DEVICE uint32_t changes() const { return memory + CHANGES + slot() * CHANGE; }
    DEVICE uint32_t sum(int group) const { return memory + SUMS + (slot() * 2 + group) * SUM; }
    DEVICE uint32_t lifts() const { return memory + LIFTS + stage() * 4 * QUERIES; }
    DEVICE uint32_t deltas() const { return memory + DELTAS + slot() * 4 * QUERIES; }
    /* `producers`: threads that fill tiles and tasks. All of those that read a task say that they have. */
    DEVICE void make_barriers(int producers) const {
        barrier_init(key_full(), producers), barrier_init(value_full(), producers), barrier_init(keys_empty(), 2);
        barrier_init(task_full(), producers), barrier_init(task_empty(), 2 * WARPGROUP + 2 + producers);
        barrier_init(others_full(), producers), barrier_init(others_empty(), 2);
        for (int i = SUM_BARRIERS; i < DOUT_BARRIERS; i += 2)
            barrier_init(barrier(i), UNIT / SUM * 4), barrier_init(barrier(i + 1), 1);
        for (int i = DOUT_BARRIERS; i < QUERY_BARRIERS + 2 * STAGES; i += 2)
            barrier_init(barrier(i), producers), barrier_init(barrier(i + 1), 2);
        barriers_made();
    }

    DEVICE attention_gradient_task next_task() {
        barrier_wait(task_full(), tasks % 2);
        tasks++;
        const attention_gradient_task t = { shared_load(task()), shared_load(task() + 4), shared_load(task() + 8),
                                            shared_load(task() + 12) };
        barrier_arrive_here(task_empty());
        return t;
    }
};

/* --------------------------------------------------------------------------------------------------------- producer */

/* Whoever calls this is one thread, or a warp if anything is moved BY_HAND. */
template <class Pipe, bool BY_HAND> struct attention_gradient_producer {
    const attention_backward_sm90_params &p;
    Pipe &pipe;

    DEVICE bool leads() const { return !BY_HAND || thread_index() == 0; }

    /* ROWS tokens and COUNT panels of a tensor, from panel `first_panel` on; `which`: its place in `moved`. `more`:
     * bytes that other copies bring. */
    template <int ROWS, int COUNT>
    DEVICE void tile(uint32_t to, uint32_t full, const tensor_map *map, const attention_tensor &t, int which, int batch,
                     int first, int end, int head, int first_panel, int more) {
        const bool moved = BY_HAND && p.moved[which];
        if constexpr (BY_HAND)
            if (moved) {
                attention_tensor from = t;
                from.data = (typename Pipe::T::bits *)t.data + first_panel * 64;
                attention_move<typename Pipe::T, COUNT * 64, ROWS, WARP>(to, from, batch, first, end, head,
                                                                         p.call.at.d - first_panel * 64);
                copies_see();
            }
        if (!leads()) return barrier_arrive_here(full);
        barrier_expect(full, (moved ? 0 : ROWS * 128 * COUNT) + more);
        for (int i = 0; i < COUNT && !moved; i++)
            copy_box(to + i * ROWS * 128, map, full, (first_panel + i) * 64, first, head, batch);
    }

    DEVICE void keys(const attention_gradient_place &at, int first, bool values) {
        enum { KEYS = Pipe::KEYS, PANELS = Pipe::PANELS };
        if (values)
            tile<KEYS, PANELS>(pipe.memory + Pipe::VALUE, pipe.value_full(), &p.v_map, p.call.v, 3, at.batch, first,
                               p.call.at.sk, at.shared, 0, 0);
        else
            tile<KEYS, PANELS>(pipe.memory, pipe.key_full(), &p.k_map, p.call.k, 2, at.batch, first, p.call.at.sk,
                               at.shared, 0, 0);
    }

    /* lift or delta of the tile's queries, before the tile itself. */
    DEVICE int statistic(uint32_t to, uint32_t full, const float *from) const {
        if constexpr (BY_HAND)
            for (int i = thread_index(); i < Pipe::QUERIES; i += WARP) shared_store(to + 4 * i, bits_of_float(from[i]));
        else
            copy_line(to, from, 4 * Pipe::QUERIES, full);
        return BY_HAND ? 0 : 4 * Pipe::QUERIES;
    }

    DEVICE void queries(const attention_gradient_place &at, int head, int first, const float *lift) {
        enum { QUERIES = Pipe::QUERIES, OWN = Pipe::OWN };
        barrier_wait(pipe.query_empty(), pipe.parity() ^ 1);
        const int bytes = statistic(pipe.lifts(), pipe.query_full(), lift);
        tile<QUERIES, OWN>(pipe.query(), pipe.query_full(), &p.q_map, p.call.q, 1, at.batch, first, p.call.at.sq, head,
                           at.part * OWN, bytes);
        if constexpr (Pipe::SPLIT > 1) {
            barrier_wait(pipe.others_empty(), pipe.slot_parity() ^ 1);
            tile<QUERIES, OWN>(pipe.memory + Pipe::OTHERS, pipe.others_full(), &p.q_map, p.call.q, 1, at.batch, first,
                               p.call.at.sq, head, (1 - at.part) * OWN, 0);
        }
    }
    DEVICE void douts(const attention_gradient_place &at, int head, int first, const float *delta) {
        enum { QUERIES = Pipe::QUERIES };
        if constexpr (Pipe::DEEP)
            barrier_wait(pipe.dout_empty(), pipe.slot_parity() ^ 1);
        else
            barrier_wait(pipe.sum_empty(0), pipe.slot_parity() ^ 1),
                barrier_wait(pipe.sum_empty(1), pipe.slot_parity() ^ 1);
        const int bytes = statistic(pipe.deltas(), pipe.dout_full(), delta);
        tile<QUERIES, Pipe::PANELS>(pipe.dout(), pipe.dout_full(), &p.dout_map, p.call.dout, 0, at.batch, first,
                                    p.call.at.sq, head, 0, bytes);
    }

    DEVICE void run_task(const attention_gradient_task &t) {
        const attention_gradient_place at = attention_gradient_place_of<Pipe>(p, t.plane);
        barrier_wait(pipe.keys_empty(), pipe.once() ^ 1);
        pipe.full_tasks++;
        keys(at, t.tile * Pipe::KEYS, false);
#pragma unroll 1
        for (int head = at.head; head < at.head + p.share; head++) {
            const int64_t row = at.batch * p.call.delta.batch + head * p.call.delta.head;
#pragma unroll 1
            for (int tile = t.last; tile > t.last - t.count; tile--) {
                queries(at, head, tile * Pipe::QUERIES, p.lift + row + tile * Pipe::QUERIES);
                if (head == at.head && tile == t.last) keys(at, t.tile * Pipe::KEYS, true);
                douts(at, head, tile * Pipe::QUERIES, (const float *)p.call.delta.data + row + tile * Pipe::QUERIES);
                pipe.tiles++;
            }
        }
    }

    DEVICE void run() {
#pragma unroll 1
        for (;;) {
            barrier_wait(pipe.task_empty(), (pipe.tasks + 1) % 2);
            if (leads()) {
                const attention_gradient_task t = attention_gradient_task_of<Pipe>(p, counter_next(p.ticket));
                shared_store(pipe.task(), (uint32_t)t.plane, (uint32_t)t.tile);
                shared_store(pipe.task() + 8, (uint32_t)t.last, (uint32_t)t.count);
            }
            barrier_arrive_here(pipe.task_full());
            const attention_gradient_task t = pipe.next_task();
            if (t.plane < 0) return;
            if (t.count > 0) run_task(t);
        }
    }
};

/* ----------------------------------------------------------------------------------------------------------- writer */

/* One thread of two: adds dq of every other tile, or that of one consumer, to the sums in memory;
 * the first to come to a sum writes it. */
template <class Pipe>
DEVICE void attention_gradient_write_one(const attention_backward_sm90_params &p, const Pipe &pipe, int64_t unit,
                                         int turn, int writer) {
    float *const to = p.dq + unit * (Pipe::UNIT / 4);
    turn_wait(p.turns + unit, turn);
    copies_see_memory();
    barrier_wait(pipe.sum_full(writer), pipe.slot_parity());
    if (turn == 0)
        copy_line_out(to, pipe.sum(Pipe::DEEP ? 0 : writer), Pipe::UNIT);
    else
        copy_line_add(to, pipe.sum(Pipe::DEEP ? 0 : writer), Pipe::UNIT);
    copy_box_out_wait<0>();
    barrier_arrive_here(pipe.sum_empty(writer));
    copy_out_done();
    turn_pass(p.turns + unit);
}
template <class Pipe>
DEVICE void attention_gradient_writer(const attention_backward_sm90_params &p, Pipe &pipe, int writer) {
    const attention_problem &at = p.call.at;
#pragma unroll 1
    for (;;) {
        const attention_gradient_task t = pipe.next_task();
        if (t.plane < 0) return;
        const attention_gradient_place place = attention_gradient_place_of<Pipe>(p, t.plane);
#pragma unroll 1
        for (int head = place.head; head < place.head + p.share; head++)
#pragma unroll 1
            for (int tile = t.last; tile > t.last - t.count; tile--, pipe.tiles++) {
                const int64_t slot = ((int64_t)place.batch * at.h + head) * p.call.tiles + tile;
                const int turn = t.tile - attention_keys_of(at, place.batch, tile * Pipe::QUERIES).low / Pipe::KEYS;
                if (Pipe::DEEP && pipe.stage() != writer) continue;
                attention_gradient_write_one(
                    p, pipe, Pipe::DEEP ? slot : (slot * Pipe::SPLIT + place.part) * 2 + writer, turn, writer);
            }
    }
}

#endif
