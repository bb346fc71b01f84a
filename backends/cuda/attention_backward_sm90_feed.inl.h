/* SPDX-License-Identifier: Apache-2.0 */
/* What serves the consumers of attention's gradient for sm_90a: shared memory and its barriers, tasks, the producer of tiles, the writer of dq. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_SM90_FEED_INL_H
#define TRINE_CUDA_ATTENTION_BACKWARD_SM90_FEED_INL_H

#include "attention_backward_sm90.h"
#include "attention_sm90.inl.h"
#include "tile/turns.h"

struct attention_gradient_task {
    int plane, tile, last, count; /* plane < 0: no more; tile: of keys; last and count of its tiles of queries */
};

template <class Type, int COLUMNS, int TILE_QUERIES, int DEPTH> struct attention_gradient_pipe {
    using T = Type;
    enum {
        D = COLUMNS,
        QUERIES = TILE_QUERIES,
        KEYS = ATTENTION_BACKWARD_KEYS,
        STAGES = DEPTH,
        PANELS = D / 64,
        KEY_PANEL = KEYS * 128,
        QUERY_PANEL = QUERIES * 128,
        KEY_TILE = KEYS * 2 * D,
        QUERY_TILE = QUERIES * 2 * D,
        CHANGE = QUERIES * 2 * KEYS,
        SUM = QUERIES * 4 * D,
        VALUE = KEY_TILE,
        QUERY = 2 * KEY_TILE,
        DOUT = QUERY + STAGES * QUERY_TILE,
        CHANGES = DOUT + STAGES * QUERY_TILE,
        SUMS = CHANGES + 2 * CHANGE,
        STATISTICS = SUMS + SUM,
        TASK = STATISTICS + STAGES * 8 * QUERIES,
        BARRIERS = TASK + 16,
    };
    static_assert(QUERIES * D == 2 * 64 * 64, "a consumer has 64 by 64 of dq");
    uint32_t memory;
    int stage = 0;
    uint32_t parity = 0, once = 0, sum_parity = 0, task_parity = 0; /* of the stage; of what a task has once; of dq; of tasks */

    DEVICE uint32_t task() const { return memory + TASK; }
    DEVICE uint32_t barrier(int i) const { return memory + BARRIERS + 8 * i; }
    DEVICE uint32_t key_full() const { return barrier(0); }
    DEVICE uint32_t value_full() const { return barrier(1); }
    DEVICE uint32_t keys_empty() const { return barrier(2); }
    DEVICE uint32_t sum_full() const { return barrier(3); }
    DEVICE uint32_t sum_empty() const { return barrier(4); }
    DEVICE uint32_t task_full() const { return barrier(5); }
    DEVICE uint32_t task_empty() const { return barrier(6); }
    DEVICE uint32_t query_full(int s) const { return barrier(7 + 4 * s); }
    DEVICE uint32_t query_empty(int s) const { return barrier(8 + 4 * s); }
    DEVICE uint32_t dout_full(int s) const { return barrier(9 + 4 * s); }
    DEVICE uint32_t dout_empty(int s) const { return barrier(10 + 4 * s); }
    DEVICE uint32_t query() const { return memory + QUERY + stage * QUERY_TILE; }
    DEVICE uint32_t dout() const { return memory + DOUT + stage * QUERY_TILE; }
    DEVICE uint32_t lifts() const { return memory + STATISTICS + stage * 8 * QUERIES; }
    DEVICE uint32_t deltas() const { return lifts() + 4 * QUERIES; }
    DEVICE void advance() {
        stage++;
        if (stage == STAGES) stage = 0, parity ^= 1;
    }

    DEVICE void make_barriers() const {
        barrier_init(key_full(), 1), barrier_init(value_full(), 1), barrier_init(keys_empty(), 2);
        barrier_init(sum_full(), 8), barrier_init(sum_empty(), 1);
        barrier_init(task_full(), 1), barrier_init(task_empty(), 9);
        for (int s = 0; s < STAGES; s++) {
            barrier_init(query_full(s), 1), barrier_init(query_empty(s), 2);
            barrier_init(dout_full(s), 1), barrier_init(dout_empty(s), 2);
        }
        barriers_made();
    }

    DEVICE attention_gradient_task task_now() const {
        return { shared_load(task()), shared_load(task() + 4), shared_load(task() + 8), shared_load(task() + 12) };
    }
    DEVICE attention_gradient_task next_task() {
        barrier_wait(task_full(), task_parity);
        task_parity ^= 1;
        return task_now();
    }
};

/* ---------------------------------------------------------------------------------------------------------------------- tasks */

/* The keys that any query of a tile sees, and those between; both ends grow from tile to tile. */
template <class Pipe> DEVICE attention_sight attention_tile_keys(const attention_problem &p, int tile) {
    return { attention_keys_of(p, tile * Pipe::QUERIES).low, attention_keys_of(p, lesser((tile + 1) * Pipe::QUERIES, p.sq) - 1).high };
}

/* The tiles of queries that have any of the keys from `first` on in that range. Where the keys' own sight ends is where the search begins. */
template <class Pipe> DEVICE void attention_tiles_of(const attention_backward_sm90_params &p, int first, attention_gradient_task *task_out) {
    const attention_problem &at = p.call.at;
    const int end = lesser(first + Pipe::KEYS, at.sk);
    int low = lesser(attention_queries_of(at, first).low / Pipe::QUERIES, p.call.tiles),
        high = lesser(attention_queries_of(at, end - 1).high / Pipe::QUERIES, p.call.tiles);
    while (low > 0 && attention_tile_keys<Pipe>(at, low - 1).high > first) low--;
    while (low < p.call.tiles && attention_tile_keys<Pipe>(at, low).high <= first) low++;
    while (high < p.call.tiles && attention_tile_keys<Pipe>(at, high).low < first + Pipe::KEYS) high++;
    while (high > 0 && attention_tile_keys<Pipe>(at, high - 1).low >= first + Pipe::KEYS) high--;
    task_out->last = high - 1, task_out->count = greater(high - low, 0);
}

template <class Pipe> DEVICE attention_gradient_task attention_gradient_task_of(const attention_backward_sm90_params &p, int ticket) {
    const int section = ticket / (p.bunch * p.call.columns), first = section * p.bunch;
    if (*p.astray || first >= p.planes) return { -1, 0, 0, 0 };
    const int rest = ticket - first * p.call.columns, bunch = lesser(p.bunch, p.planes - first);
    if (rest / bunch >= p.call.columns) return { -1, 0, 0, 0 };
    attention_gradient_task t = { first + rest % bunch, rest / bunch, 0, 0 };
    attention_tiles_of<Pipe>(p, t.tile * Pipe::KEYS, &t);
    return t;
}

/* Where a task is: a plane is a part of a group of heads. */
struct attention_gradient_place {
    int batch, head, shared; /* head: the first of queries; shared: that of keys */
};
DEVICE attention_gradient_place attention_gradient_place_of(const attention_backward_sm90_params &p, int plane) {
    const int heads = p.call.at.h / p.share, part = plane % heads;
    return { plane / heads, part * p.share, part / p.parts };
}

/* ------------------------------------------------------------------------------------------------------------------- producer */

/* Whoever calls this is one thread, or a warp if anything is moved BY_HAND. */
template <class Pipe, bool BY_HAND> struct attention_gradient_producer {
    const attention_backward_sm90_params &p;
    Pipe &pipe;

    DEVICE bool leads() const { return !BY_HAND || thread_index() == 0; }

    /* ROWS tokens of a tensor; `which`: its place in `moved`. `more`: bytes that other copies bring. */
    template <int ROWS>
    DEVICE void tile(uint32_t to, uint32_t full, const tensor_map *map, const attention_tensor &t, int which, int batch, int first, int end, int head,
                     int more) {
        const bool moved = BY_HAND && p.moved[which];
        if constexpr (BY_HAND)
            if (moved) {
                attention_move<typename Pipe::T, Pipe::D, ROWS, WARP>(to, t, batch, first, end, head, p.call.at.d);
                copies_see();
                sync_warp();
            }
        if (!leads()) return;
        barrier_expect(full, (moved ? 0 : ROWS * 2 * Pipe::D) + more);
        for (int i = 0; i < Pipe::PANELS && !moved; i++) copy_box(to + i * ROWS * 128, map, full, i * 64, first, head, batch);
    }

    DEVICE void keys(const attention_gradient_place &at, int first, bool values) {
        if (values)
            tile<Pipe::KEYS>(pipe.memory + Pipe::VALUE, pipe.value_full(), &p.v_map, p.call.v, 3, at.batch, first, p.call.at.sk, at.shared, 0);
        else
            tile<Pipe::KEYS>(pipe.memory, pipe.key_full(), &p.k_map, p.call.k, 2, at.batch, first, p.call.at.sk, at.shared, 0);
    }

    DEVICE void queries(int batch, int head, int first) {
        enum { LINE = 4 * Pipe::QUERIES };
        const uint32_t full = pipe.query_full(pipe.stage);
        barrier_wait(pipe.query_empty(pipe.stage), pipe.parity ^ 1);
        tile<Pipe::QUERIES>(pipe.query(), full, &p.q_map, p.call.q, 1, batch, first, p.call.at.sq, head, LINE);
        if (leads()) copy_line(pipe.lifts(), p.lift + batch * p.call.delta.batch + head * p.call.delta.head + first, LINE, full);
    }
    DEVICE void douts(int batch, int head, int first) {
        enum { LINE = 4 * Pipe::QUERIES };
        const uint32_t full = pipe.dout_full(pipe.stage);
        barrier_wait(pipe.dout_empty(pipe.stage), pipe.parity ^ 1);
        tile<Pipe::QUERIES>(pipe.dout(), full, &p.dout_map, p.call.dout, 0, batch, first, p.call.at.sq, head, LINE);
        if (leads()) copy_line(pipe.deltas(), (const float *)p.call.delta.data + batch * p.call.delta.batch + head * p.call.delta.head + first, LINE, full);
    }

    DEVICE void run_task(const attention_gradient_task &t) {
        const attention_gradient_place at = attention_gradient_place_of(p, t.plane);
        barrier_wait(pipe.keys_empty(), pipe.once ^ 1);
        pipe.once ^= 1;
        keys(at, t.tile * Pipe::KEYS, false);
#pragma unroll 1
        for (int step = 0; step < p.share * t.count; step++) {
            const int head = at.head + step / t.count, first = (t.last - step % t.count) * Pipe::QUERIES;
            queries(at.batch, head, first);
            if (step == 0) keys(at, t.tile * Pipe::KEYS, true);
            douts(at.batch, head, first);
            pipe.advance();
        }
    }

    DEVICE void run() {
#pragma unroll 1
        for (;;) {
            barrier_wait(pipe.task_empty(), pipe.task_parity ^ 1);
            pipe.task_parity ^= 1;
            if (leads()) {
                const attention_gradient_task t = attention_gradient_task_of<Pipe>(p, counter_next(p.ticket));
                shared_store(pipe.task(), (uint32_t)t.plane, (uint32_t)t.tile);
                shared_store(pipe.task() + 8, (uint32_t)t.last, (uint32_t)t.count);
                barrier_arrive_here(pipe.task_full());
            }
            if (BY_HAND) sync_warp();
            const attention_gradient_task t = pipe.task_now();
            if (t.plane < 0) return;
            if (t.count > 0) run_task(t);
        }
    }
};

/* --------------------------------------------------------------------------------------------------------------------- writer */

/* One thread: adds tiles of dq to the sums in memory; the first to come to a tile writes it. */
template <class Pipe> DEVICE void attention_gradient_writer(const attention_backward_sm90_params &p, Pipe &pipe) {
    const attention_problem &at = p.call.at;
#pragma unroll 1
    for (;;) {
        const attention_gradient_task t = pipe.next_task();
        barrier_arrive_here(pipe.task_empty());
        if (t.plane < 0) return;
        const attention_gradient_place place = attention_gradient_place_of(p, t.plane);
#pragma unroll 1
        for (int step = 0; step < p.share * t.count; step++) {
            const int tile = t.last - step % t.count, head = place.head + step / t.count;
            const int turn = t.tile - attention_tile_keys<Pipe>(at, tile).low / Pipe::KEYS;
            const int64_t slot = ((int64_t)place.batch * at.h + head) * p.call.tiles + tile;
            float *const to = p.dq + slot * (Pipe::SUM / 4);
            barrier_wait(pipe.sum_full(), pipe.sum_parity);
            pipe.sum_parity ^= 1;
            turn_wait(p.turns + slot, turn);
            if (turn == 0)
                copy_line_out(to, pipe.memory + Pipe::SUMS, Pipe::SUM);
            else
                copy_line_add(to, pipe.memory + Pipe::SUMS, Pipe::SUM);
            copy_box_out_wait<0>();
            barrier_arrive_here(pipe.sum_empty());
            copy_out_done();
            turn_pass(p.turns + slot, turn + 1);
        }
    }
}

#endif
