/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention by the tensor cores of sm_80 and later: bf16 and f16, d up to 256, in one pass and a fixed order.
 *
 * A block has a tile of keys and values in shared memory and goes over the tiles of queries that see any of them, in all heads of a group or in one. Its warps
 * divide each product anew: queries by keys of scores and dout.v, keys by columns of dk and dv, which stay in registers, and queries by columns of dq; p and ds
 * go through shared memory between these. dq is added to sums in memory once the block whose turn is before has added its own. Blocks take tasks by a counter,
 * so that one waits only for those that began before it: keys in ascending and queries in descending order, or the other way round.
 *
 * NOTES. Floors: 10 flops for each visible pair and column over the rate of mma.sync, on an H200 about 62 % of wgmma's; 128 bytes a clock of shared memory, of
 * which 144 matrices of 512 bytes for 320 products of a warp take 1.25 times as long as the products. What was learned there, bf16, 16384 tokens, TFLOP/s:
 * - Two passes without turns, of 14 flops and with 16 rows to a warp, had 107, 151 and 87 at d 64, 128 and 256, s 4096; one pass has 259, 293 and 230.
 * - At d 128 tensor cores are busy in 48 % of the clocks and shared memory in 61 %. Warps wait for products and matrices under way; barriers are 9 %, waiting
 *   for turns 1. Blocks of 4 warps and 64 keys, of which a processor has two, lost 5 to 19 %: they add to dq twice as often.
 * - Under a causal mask all blocks of a head end at about the same time if they begin with the last queries; with the first ones, and the last keys first, a
 *   block follows the one before by a tile without waiting: s 1024 gained 37 % (d 64), 18 (128) and 16 (256), s 4096 11, 1 and -18. There the longest blocks
 *   come last, and of more than 32 tiles of keys that costs more.
 * - What is asked for each element, of the softcap or of who comes first, becomes a branch between all exponentials, or additions. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_MMA_H
#define TRINE_CUDA_ATTENTION_BACKWARD_MMA_H

#include <tile/order.h>

#include "attention_backward_pass.h"
#include "attention_mma.h"

/* The columns, keys and queries of tiles; stages of q and dout; and how many warps divide them. */
template <class Type, int COLUMNS, int TILE_KEYS, int TILE_QUERIES, int DEPTH, int COUNT> struct attention_gradient_shape {
    using T = Type;
    enum {
        D = COLUMNS,
        KEYS = TILE_KEYS,
        QUERIES = TILE_QUERIES,
        STAGES = DEPTH,
        SPLIT = 1,
        WARPS = COUNT,
        THREADS = WARPS * WARP,
        S_ROWS = QUERIES / 2, /* of scores, in queries and keys */
        S_KEYS = KEYS / (WARPS / 2),
        K_WARPS = KEYS >= 128 ? 4 : 2,
        K_ROWS = KEYS / K_WARPS, /* of dk and dv */
        K_COLUMNS = D * K_WARPS / WARPS,
        Q_WARPS = QUERIES >= 128 ? 4 : 2,
        Q_ROWS = QUERIES / Q_WARPS, /* of dq */
        Q_COLUMNS = D * Q_WARPS / WARPS,
        KEY_TILE = KEYS * 2 * D,
        QUERY_TILE = QUERIES * 2 * D,
        WEIGHTS = QUERIES * 2 * (KEYS < 64 ? 64 : KEYS),
        VALUE = KEY_TILE, /* places in shared memory */
        QUERY = 2 * KEY_TILE,
        DOUT = QUERY + STAGES * QUERY_TILE,
        WEIGHT = DOUT + STAGES * QUERY_TILE,
        CHANGE = WEIGHT + WEIGHTS,
        STATISTIC = CHANGE + WEIGHTS,
        SIGHT = STATISTIC + STAGES * QUERIES * 8,
        BYTES = SIGHT + KEYS * 8,
    };
    static_assert((int)BYTES == ATTENTION_BACKWARD_MMA_BYTES(D, KEYS, QUERIES, STAGES), "what the launch asks for");
};

/* LANES lanes of 16 elements along which products are summed, from `lane` on, in panels of ROWS rows. */
template <int ROWS, bool ACROSS, int LANES> struct attention_operand {
    attention_view<ROWS, ACROSS> view;

    DEVICE attention_operand(bool is_left, int lane) : view(is_left, ACROSS ? 0 : lane, ACROSS ? lane : 0) {}
    DEVICE void read(uint32_t (&r)[LANES / 16][4], const char *from, int step) const {
#pragma unroll
        for (int i = 0; i < LANES / 16; i++) view.load(r[i], from, (ACROSS ? step : i) * 16, (ACROSS ? i : step) * 16);
    }
};

/* sum += a b over 16 STEPS elements, which are read one step ahead. */
template <class T, int STEPS, int A_ROWS, int B_ROWS, bool A_ACROSS, bool B_ACROSS, int M, int N>
DEVICE void attention_mma_add(float (&sum)[M][N], const attention_operand<A_ROWS, A_ACROSS, M * 16> &left, const char *a,
                              const attention_operand<B_ROWS, B_ACROSS, N * 2> &right, const char *b) {
    uint32_t x[2][M][4], y[2][N / 8][4];
    left.read(x[0], a, 0), right.read(y[0], b, 0);
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        if (step + 1 < STEPS) left.read(x[(step + 1) % 2], a, step + 1), right.read(y[(step + 1) % 2], b, step + 1);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < N / 8; n++) attention_multiply<T>(sum[m] + n * 8, x[step % 2][m], y[step % 2][n]);
    }
}

/* Where a lane's elements of the sums of 16 rows and 64 columns are in memory: element e of block j of 8 columns is 128 j + 32 e further on. `row` and `column`
 * are the warp's first. */
template <int D> DEVICE float *attention_unit(float *tile, int row, int column) {
    return tile + (row / 16 * (D / 64) + column / 64) * 1024 + column % 64 * 16 + thread_index() % WARP;
}

template <int D, int M, int N, class Op> DEVICE void attention_unit_each(float *to, const float (&sum)[M][N], Op op) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int i = 0; i < N; i++) op(to + m * (D / 64 * 1024) + i / 32 * 1024 + i % 32 * 32, sum[m][i]);
}

template <class Shape> struct attention_gradient_warps {
    using T = typename Shape::T;
    enum { QUERIES = Shape::QUERIES, KEYS = Shape::KEYS, D = Shape::D };
    using scores = float[Shape::S_ROWS / 16][Shape::S_KEYS / 2];
    using columns = float[Shape::K_ROWS / 16][Shape::K_COLUMNS / 2];
    const attention_backward_mma_params &p;
    char *memory;

    DEVICE static int warp() { return thread_index() / WARP; }
    DEVICE static int s_row() { return warp() % 2 * Shape::S_ROWS; }
    DEVICE static int s_key() { return warp() / 2 * Shape::S_KEYS; }
    DEVICE static int k_row() { return warp() % Shape::K_WARPS * Shape::K_ROWS; }
    DEVICE static int k_column() { return warp() / Shape::K_WARPS * Shape::K_COLUMNS; }
    DEVICE static int q_row() { return warp() % Shape::Q_WARPS * Shape::Q_ROWS; }
    DEVICE static int q_column() { return warp() / Shape::Q_WARPS * Shape::Q_COLUMNS; }
    DEVICE char *query(int stage) const { return memory + Shape::QUERY + stage * Shape::QUERY_TILE; }
    DEVICE char *dout(int stage) const { return memory + Shape::DOUT + stage * Shape::QUERY_TILE; }
    DEVICE float *statistic(int stage) const { return (float *)(memory + Shape::STATISTIC) + stage * 2 * QUERIES; }
    DEVICE attention_sight *sights() const { return (attention_sight *)(memory + Shape::SIGHT); }

    DEVICE void copy_keys(const attention_gradient_place &at, int first) const {
        const int count = p.call.at.sk - first;
        attention_copies<T, D, KEYS, Shape::THREADS>(p.call.k, at.batch, at.shared, p.call.at.d, p.call.wide).copy(memory, first, count);
        attention_copies<T, D, KEYS, Shape::THREADS>(p.call.v, at.batch, at.shared, p.call.at.d, p.call.wide).copy(memory + Shape::VALUE, first, count);
        for (int i = thread_index(); i < KEYS; i += Shape::THREADS)
            sights()[i] = i < count ? attention_queries_of(p.call.at, first + i) : attention_sight{ 0, 0 };
    }
    DEVICE void copy_queries(int batch, int head, int tile, int stage) const {
        const int first = tile * QUERIES, count = p.call.at.sq - first, thread = thread_index(), which = thread / (QUERIES / 4);
        attention_copies<T, D, QUERIES, Shape::THREADS>(p.call.q, batch, head, p.call.at.d, p.call.wide).copy(query(stage), first, count);
        attention_copies<T, D, QUERIES, Shape::THREADS>(p.call.dout, batch, head, p.call.at.d, p.call.wide).copy(dout(stage), first, count);
        if (which >= 2) return;
        const float *const from = (which == 0 ? p.lift : (const float *)p.call.delta.data) + batch * p.call.delta.batch + head * p.call.delta.head + first;
        copy_bytes<16>(statistic(stage) + thread * 4, from + thread % (QUERIES / 4) * 4, 16);
    }

    /* A row of the tile that lane and element have, of matrix m of the warp's scores. */
    DEVICE static int row_of(int m, int half) { return s_row() + m * 16 + half * 8 + thread_index() % WARP / 4; }

    /* What must not be seen counts for nothing. */
    DEVICE void conceal(scores &s, int first) const {
#pragma unroll
        for (int j = 0; j < Shape::S_KEYS / 8; j++) {
            const attention_sight *const sees = sights() + s_key() + j * 8 + thread_index() % 4 * 2;
            const attention_sight a = sees[0], b = sees[1];
#pragma unroll
            for (int m = 0; m < Shape::S_ROWS / 16; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float *const x = s[m] + 4 * j + 2 * h;
                    const int row = first + row_of(m, h);
                    x[0] = a.has(row) ? x[0] : 0.0f, x[1] = b.has(row) ? x[1] : 0.0f;
                }
        }
    }
    /* To shared memory, as rows of queries. */
    DEVICE void keep(char *to, const scores &s, float factor) const {
        const int lane = thread_index() % WARP, base = attention_piece<QUERIES>(s_row() + lane / 4, s_key() / 8) + lane % 4 * 4;
#pragma unroll
        for (int m = 0; m < Shape::S_ROWS / 16; m++)
#pragma unroll
            for (int i = 0; i < Shape::S_KEYS / 4; i++)
                *(uint32_t *)(to + (base ^ (i / 2 << 4)) + (m * 16 + i % 2 * 8) * 128) = T::pair(s[m][2 * i] * factor, s[m][2 * i + 1] * factor);
    }

    /* op(sum, lift and delta of the row) for all the warp's scores. */
    template <class Op> DEVICE void each(const float *statistic, Op op) const {
#pragma unroll
        for (int m = 0; m < Shape::S_ROWS / 16; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float lift = statistic[row_of(m, h)], delta = statistic[QUERIES + row_of(m, h)];
#pragma unroll
                for (int i = 2 * h; i < Shape::S_KEYS / 2; i += 4) op(m, i, lift, delta), op(m, i + 1, lift, delta);
            }
    }
    /* The products q.k become 2^24 p. With a softcap they become tanh of the score by it, from which 2^24 p is found once more. */
    DEVICE void weigh(scores &s, const float *statistic, int first, bool hide) const {
        const float spread = p.call.spread, bend = p.call.bend;
        const auto weigh_all = [&](scores &w) {
            each(statistic, [&](int m, int i, float lift, float) { w[m][i] = exp2_approx(fused(s[m][i], spread, lift)); });
            if (hide) conceal(w, first);
            keep(memory + Shape::WEIGHT, w, attention_lift_of<T>::weight());
        };
        if (bend == 0) return weigh_all(s);
        scores w;
        each(statistic, [&](int m, int i, float, float) { s[m][i] = attention_tanh(s[m][i] * bend); });
        weigh_all(w);
    }
    /* And dout.v the changes of scores. */
    DEVICE void differ(scores &c, const scores &s, const float *statistic, int first, bool hide) const {
        const float factor = attention_lift_of<T>::weight(), spread = p.call.spread;
        if (p.call.bend == 0)
            each(statistic, [&](int m, int i, float, float delta) { c[m][i] = s[m][i] * ((c[m][i] - delta) * factor); });
        else
            each(statistic, [&](int m, int i, float lift, float delta) {
                const float t = s[m][i];
                c[m][i] = exp2_approx(fused(t, spread, lift)) * ((c[m][i] - delta) * (fused(-t, t, 1.0f) * factor));
            });
        if (hide) conceal(c, first);
        keep(memory + Shape::CHANGE, c, 1.0f);
    }

    /* Scores and dout.v of a tile of queries become weights and changes in shared memory. */
    DEVICE void find(int stage, int first, bool hide) const {
        const attention_operand<QUERIES, false, Shape::S_ROWS> left(true, s_row());
        const attention_operand<KEYS, false, Shape::S_KEYS> right(false, s_key());
        scores s = {};
        attention_mma_add<T, D / 16>(s, left, query(stage), right, memory);
        weigh(s, statistic(stage), first, hide);
        scores c = {};
        attention_mma_add<T, D / 16>(c, left, dout(stage), right, memory + Shape::VALUE);
        differ(c, s, statistic(stage), first, hide);
    }
    /* dk or dv of the block. */
    DEVICE void gather(columns &sum, const char *weights, const char *queries) const {
        const attention_operand<QUERIES, true, Shape::K_ROWS> left(true, k_row());
        const attention_operand<QUERIES, true, Shape::K_COLUMNS> right(false, k_column());
        attention_mma_add<T, QUERIES / 16>(sum, left, weights, right, queries);
    }
    /* dq of the tile, to memory. */
    DEVICE void change(float *tile, bool is_first) const {
        const attention_operand<QUERIES, false, Shape::Q_ROWS> left(true, q_row());
        const attention_operand<KEYS, true, Shape::Q_COLUMNS> right(false, q_column());
        float dq[Shape::Q_ROWS / 16][Shape::Q_COLUMNS / 2] = {};
        attention_mma_add<T, KEYS / 16>(dq, left, memory + Shape::CHANGE, right, memory);
        float *const to = attention_unit<D>(tile, q_row(), q_column());
        if (is_first)
            attention_unit_each<D>(to, dq, memory_put);
        else
            attention_unit_each<D>(to, dq, memory_add);
    }

    /* The i-th tile of queries that a task goes over; and how many tasks add to dq of one before it does. */
    DEVICE int tile_of(const attention_gradient_task &t, int i) const { return p.rises ? t.last - t.count + 1 + i : t.last - i; }
    DEVICE int turn_of(const attention_gradient_task &t, int tile) const {
        const attention_sight keys = attention_tile_keys<Shape>(p.call.at, tile);
        return p.rises ? (keys.high - 1) / KEYS - t.tile : t.tile - keys.low / KEYS;
    }

    DEVICE void run(const attention_gradient_task &t, const attention_gradient_place &at, columns &dk, columns &dv) const {
        const attention_problem &problem = p.call.at;
        const int key = t.tile * KEYS, end = lesser(key + KEYS, problem.sk), steps = t.count * p.share;
        const attention_sight all = { attention_queries_of(problem, end - 1).low, end == key + KEYS ? attention_queries_of(problem, key).high : 0 };
        const auto slot_of = [&](int head, int tile) { return ((int64_t)at.batch * problem.h + head) * p.call.tiles + tile; };
        int head = at.head, i = 0, next_head = head, next = 0; /* the i-th tile of a head */
        const auto copy = [&](int step) {
            if (step < steps) {
                copy_queries(at.batch, next_head, tile_of(t, next), step % Shape::STAGES);
                next++;
                if (next == t.count) next = 0, next_head++;
            }
            copy_commit();
        };
        int64_t slot = 0;
        copy_keys(at, key);
        copy(0);
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            const int tile = tile_of(t, i), first = tile * QUERIES, stage = step % Shape::STAGES;
            bool is_first = false;
            copy_wait<0>();
            sync_block(); /* the tile is there, and nobody reads the one before any more */
            if (Shape::STAGES > 1) copy(step + 1);
            if (thread_index() == Shape::THREADS - WARP) {
                const int turn = turn_of(t, tile);
                turn_wait(p.turns + slot_of(head, tile), turn);
                is_first = turn == 0;
            }
            sync_warp();
            find(stage, first, first < all.low || first + QUERIES > all.high);
            is_first = sync_block_any(is_first); /* weights are there, and the turn is the block's */
            if (step > 0 && thread_index() == 0) turn_pass(p.turns + slot);
            sync_warp();
            slot = slot_of(head, tile);
            gather(dv, memory + Shape::WEIGHT, dout(stage));
            gather(dk, memory + Shape::CHANGE, query(stage));
            if (Shape::STAGES == 1) {
                sync_block();
                copy(step + 1);
            }
            change(p.dq + slot * (QUERIES * D), is_first);
            i++;
            if (i == t.count) i = 0, head++;
        }
        sync_block();
        if (thread_index() == 0) turn_pass(p.turns + slot);
    }

    DEVICE void end(const attention_gradient_task &t, const attention_gradient_place &at, const columns &dk, const columns &dv) const {
        if (p.parts > 1) { /* to be added to those of the others */
            float *const to = p.dkv + ((int64_t)t.plane * p.call.columns + t.tile) * (2 * KEYS * D);
            attention_unit_each<D>(attention_unit<D>(to, k_row(), k_column()), dk, memory_put);
            attention_unit_each<D>(attention_unit<D>(to + KEYS * D, k_row(), k_column()), dv, memory_put);
            return;
        }
        const float lift = attention_lift_of<T>::sum();
        const int column = k_column(), columns = p.call.at.d - column;
        bool spoilt = false;
#pragma unroll
        for (int m = 0; m < Shape::K_ROWS / 16; m++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int token = t.tile * KEYS + k_row() + m * 16 + r * 8 + thread_index() % WARP / 4;
                const bool exists = token < p.call.at.sk;
                attention_write_row<T, Shape::K_COLUMNS>(attention_row<T>(p.call.dk, at.batch, exists ? token : 0, at.shared) + column, dk[m], r,
                                                         p.call.at.scale * lift, false, columns, exists, p.call.wide);
                attention_write_row<T, Shape::K_COLUMNS>(attention_row<T>(p.call.dv, at.batch, exists ? token : 0, at.shared) + column, dv[m], r, lift, false,
                                                         columns, exists, p.call.wide);
                spoilt |= exists && (attention_spoilt(dk[m], r) || attention_spoilt(dv[m], r));
            }
        if (spoilt) p.spoilt[(int64_t)t.plane * p.call.columns + t.tile] = 1;
    }
};

template <class Shape> DEVICE void attention_mma_gradient(const attention_backward_mma_params &p) {
    const attention_gradient_warps<Shape> warps = { p, launch_memory() };
    int *const ticket = (int *)warps.sights();
    if (thread_index() == 0) *ticket = counter_next(p.ticket);
    sync_block();
    const attention_gradient_task t = attention_gradient_task_of<Shape>(p, *ticket, p.rises);
    sync_block();
    if (t.plane < 0) return;
    const attention_gradient_place at = attention_gradient_place_of<Shape>(p, t.plane);
    typename attention_gradient_warps<Shape>::columns dk = {}, dv = {};
    if (t.count > 0) warps.run(t, at, dk, dv);
    warps.end(t, at, dk, dv);
}

/* ------------------------------------------------------------------------------------------------------------------------- end */

/* Rows of a warp's unit from sums in memory: of `parts` that are `step` floats apart. Notes those that are NaN or Inf. */
template <class T>
DEVICE void attention_gradient_write_unit(const attention_tensor &t, int batch, int head, int first, int row, int column, const float *from, int parts,
                                          int64_t step, float factor, int end, int columns, bool wide, int *again) {
    const int lane = thread_index() % WARP;
    float sum[32] = {};
#pragma unroll 1
    for (int part = 0; part < parts; part++)
#pragma unroll
        for (int i = 0; i < 32; i++) sum[i] += from[part * step + i * WARP + lane];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int in = row + r * 8 + lane / 4, token = first + in;
        const bool exists = token < end;
        attention_write_row<T, 64>(attention_row<T>(t, batch, exists ? token : 0, head) + column, sum, r, factor, false, columns - column, exists, wide);
        if (exists && attention_spoilt(sum, r)) again[in] = 1;
    }
}

/* A block for each tile of queries of a head, and then of keys. */
template <class T, int D, int KEYS, int QUERIES> DEVICE void attention_mma_gradient_end(const attention_backward_mma_params &p) {
    enum { WARPS = ATTENTION_BACKWARD_ENDS / WARP };
    SHARED int again[128];
    const attention_backward_params &call = p.call;
    const attention_problem &at = call.at;
    const int64_t slots = (int64_t)at.b * at.h * call.tiles;
    const bool of_queries = block_index() < slots;
    const int64_t slot = of_queries ? block_index() : block_index() - slots;
    const int tiles = of_queries ? call.tiles : call.columns, heads = of_queries ? at.h : at.h / at.group, side = of_queries ? QUERIES : KEYS;
    const int tile = (int)(slot % tiles), head = (int)(slot / tiles % heads), batch = (int)(slot / tiles / heads), first = tile * side;
    const int end = of_queries ? at.sq : at.sk, warp = thread_index() / WARP;
    const float lift = attention_lift_of<T>::sum();
    if (thread_index() < 128) again[thread_index()] = 0;
    sync_block();
    bool all = *p.astray;
    const bool summed = p.parts > 1 && !all;
    const int64_t plane = (slot - tile) * p.parts, own = plane + tile;
    if (of_queries) {
#pragma unroll 1
        for (int unit = warp; unit < QUERIES / 16 * (D / 64); unit += WARPS)
            attention_gradient_write_unit<T>(call.dq, batch, head, first, unit / (D / 64) * 16, unit % (D / 64) * 64, p.dq + slot * (QUERIES * D) + unit * 1024,
                                             p.turns[slot] > 0, 0, at.scale * lift, at.sq, at.d, call.wide, again);
    } else if (summed) {
#pragma unroll 1
        for (int unit = warp; unit < 2 * (KEYS / 16) * (D / 64); unit += WARPS) {
            const bool is_v = unit >= KEYS / 16 * (D / 64);
            const int in = is_v ? unit - KEYS / 16 * (D / 64) : unit;
            attention_gradient_write_unit<T>(is_v ? call.dv : call.dk, batch, head, first, in / (D / 64) * 16, in % (D / 64) * 64,
                                             p.dkv + own * (2 * KEYS * D) + unit * 1024, p.parts, (int64_t)call.columns * (2 * KEYS * D),
                                             is_v ? lift : at.scale * lift, at.sk, at.d, call.wide, again);
        }
    } else if (!all && !p.spoilt[own]) {
        return;
    }
    sync_block();
#pragma unroll 1
    for (int r = warp; r < side && first + r < end; r += WARPS) {
        if (of_queries) {
            if (again[r] || all) attention_redo_query<T, D>(call, batch, head, first + r);
        } else if (all || (summed ? again[r] != 0 : attention_gradient_lost<T, D>(call, batch, head, first + r))) {
            attention_redo_key<T, D>(call, { batch, head, first, 0 }, first + r);
        }
    }
}

#endif
