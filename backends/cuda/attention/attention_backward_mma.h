/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention by the tensor cores of sm_80 and later: bf16 and f16, d up to 256, in one pass and a fixed
 * order.
 *
 * A block has a tile of keys and values in shared memory and goes over the tiles of queries that see any of them, in
 * all heads of a group or in one. Its warps divide each product anew: queries by keys of scores and dout.v, keys by
 * columns of dv, which half of them hold in registers, and of dk, which the others do, and queries by columns of dq; p
 * and ds go through shared memory between these. dq is added to sums in memory once the block whose turn is before has
 * added its own. Blocks take tasks by a counter, so that one waits only for those that began before it: keys in
 * ascending and queries in descending order, or the other way round.
 *
 * NOTES. Floors: 10 flops for each visible pair and column over the rate of mma.sync, on an H200 about 62 % of wgmma's;
 * 128 bytes a clock of shared memory, of which 128 matrices of 512 bytes for 320 products of a warp, at d 128, take
 * 1.07 times as long as the products. Learned there, bf16, 16384 tokens, TFLOP/s: - Two passes without turns, of 14
 * flops and with 16 rows to a warp, had 107, 151 and 87 at d 64, 128 and 256, s 4096; one pass has 259, 293 and 230. -
 * At d 128 tensor cores are busy in half of the clocks. Warps wait for products and matrices in flight; barriers are 9
 * %, waiting for turns 1. Blocks of 4 warps
 *   and 64 keys, of which an SM has two, lost 5 to 19 %: they add to dq twice as often. Fewer bytes from shared
 *     memory help little: larger parts of dk or dv, for half of the warps, 3 to 5 % (144 matrices to 128); p, k and v
 *     in registers lost. Adding dq between other products gained 3 % at d 64, lost 3 at d 128.
 * - Under a causal mask all blocks of a head end at about the same time if they begin with the last queries; with the
 * first ones, and the last keys first, a
 *   block follows the one before by a tile without waiting: s 1024 gained 37 % (d 64), 18 (128) and 16 (256), s 4096
 *     11, 1 and -18. There the longest blocks come last, and of more than 32 tiles of keys that costs more.
 * - What is asked for each element, of the softcap or of who comes first, becomes a branch between all exponentials, or
 * additions. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_MMA_H
#define TRINE_CUDA_ATTENTION_BACKWARD_MMA_H

#include <tile/order.h>

#include "attention_backward_pass.h"
#include "attention_mma_products.h"

/* The columns, keys and queries of tiles; stages of q and dout; and how many warps divide them. */
template <class Type, int COLUMNS, int TILE_KEYS, int TILE_QUERIES, int DEPTH, int COUNT>
struct attention_gradient_shape {
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
        K_WARPS = KEYS >= 128 ? 2 : 1,
        K_ROWS = KEYS / K_WARPS, /* of dv, which half of the warps sum, and of dk, which the others do */
        K_COLUMNS = 2 * D * K_WARPS / WARPS,
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

/* Where a lane's elements of the sums of 16 rows and 64 columns are in memory: element e of block j of 8 columns is 128
 * j + 32 e further on. `row` and `column` are the warp's first. */
template <int D> DEVICE float *attention_unit(float *tile, int row, int column) {
    return tile + (row / 16 * (D / 64) + column / 64) * 1024 + column % 64 * 16 + thread_index() % WARP;
}

/* From there, where element i of matrix m is. */
template <int D> DEVICE int attention_unit_place(int m, int i) {
    return m * (D / 64 * 1024) + i / 32 * 1024 + i % 32 * 32;
}
template <int D, int M, int N> DEVICE void attention_unit_put(float *to, const float (&sum)[M][N]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int i = 0; i < N; i++) memory_put(to + attention_unit_place<D>(m, i), sum[m][i]);
}

template <class Shape> struct attention_gradient_warps {
    using T = typename Shape::T;
    enum { QUERIES = Shape::QUERIES, KEYS = Shape::KEYS, D = Shape::D };
    using scores = float[Shape::S_ROWS / 16][Shape::S_KEYS / 2];
    using columns = float[Shape::K_ROWS / 16][Shape::K_COLUMNS / 2];
    using changes = float[Shape::Q_ROWS / 16][Shape::Q_COLUMNS / 2];
    using statistics = float[Shape::S_ROWS / 16][2]; /* of the thread's rows */
    const attention_backward_mma_params &p;
    char *memory;

    DEVICE static int warp() { return thread_index() / WARP; }
    DEVICE static int s_row() { return warp() % 2 * Shape::S_ROWS; }
    DEVICE static int s_key() { return warp() / 2 * Shape::S_KEYS; }
    DEVICE static bool has_dv() { return warp() < Shape::WARPS / 2; }
    DEVICE static int k_row() { return warp() % Shape::K_WARPS * Shape::K_ROWS; }
    DEVICE static int k_column() { return warp() % (Shape::WARPS / 2) / Shape::K_WARPS * Shape::K_COLUMNS; }
    DEVICE static int q_row() { return warp() % Shape::Q_WARPS * Shape::Q_ROWS; }
    DEVICE static int q_column() { return warp() / Shape::Q_WARPS * Shape::Q_COLUMNS; }
    DEVICE char *query(int stage) const { return memory + Shape::QUERY + stage * Shape::QUERY_TILE; }
    DEVICE char *dout(int stage) const { return memory + Shape::DOUT + stage * Shape::QUERY_TILE; }
    DEVICE float *statistic(int stage) const { return (float *)(memory + Shape::STATISTIC) + stage * 2 * QUERIES; }
    DEVICE attention_sight *sights() const { return (attention_sight *)(memory + Shape::SIGHT); }

    DEVICE void copy_keys(const attention_gradient_place &at, int first) const {
        const int count = p.call.at.sk - first;
        attention_copies<T, D, KEYS, Shape::THREADS>(p.call.k, at.batch, at.shared, p.call.at.d, p.call.wide)
            .copy(memory, first, count);
        attention_copies<T, D, KEYS, Shape::THREADS>(p.call.v, at.batch, at.shared, p.call.at.d, p.call.wide)
            .copy(memory + Shape::VALUE, first, count);
        for (int i = thread_index(); i < KEYS; i += Shape::THREADS)
            sights()[i] = i < count ? attention_queries_of(p.call.at, at.batch, first + i) : attention_sight{ 0, 0 };
    }
    DEVICE void copy_queries(int batch, int head, int tile, int stage) const {
        const int first = tile * QUERIES, count = p.call.at.sq - first, thread = thread_index(),
                  which = thread / (QUERIES / 4);
        attention_copies<T, D, QUERIES, Shape::THREADS>(p.call.q, batch, head, p.call.at.d, p.call.wide)
            .copy(query(stage), first, count);
        attention_copies<T, D, QUERIES, Shape::THREADS>(p.call.dout, batch, head, p.call.at.d, p.call.wide)
            .copy(dout(stage), first, count);
        if (which >= 2) return;
        const float *const from = (which == 0 ? p.lift : (const float *)p.call.delta.data) +
                                  batch * p.call.delta.batch + head * p.call.delta.head + first;
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
        const int lane = thread_index() % WARP,
                  base = attention_piece<QUERIES>(s_row() + lane / 4, s_key() / 8) + lane % 4 * 4;
#pragma unroll
        for (int m = 0; m < Shape::S_ROWS / 16; m++)
#pragma unroll
            for (int i = 0; i < Shape::S_KEYS / 4; i++)
                *(uint32_t *)(to + (base ^ (i / 2 << 4)) + (m * 16 + i % 2 * 8) * 128) =
                    T::pair(s[m][2 * i] * factor, s[m][2 * i + 1] * factor);
    }

    DEVICE static void read(statistics &x, const float *from) {
#pragma unroll
        for (int m = 0; m < Shape::S_ROWS / 16; m++) x[m][0] = from[row_of(m, 0)], x[m][1] = from[row_of(m, 1)];
    }

    template <class Op> DEVICE static void each(Op op) {
        attention_mma_share<1, Shape::S_ROWS / 16, Shape::S_KEYS / 2>(0, op);
    }

    /* Scores and dout.v of a tile of queries become weights and changes in shared memory. Weights, 2^24 p, are found
     * while dout.v is; those of BENT scores, whose tanh the changes ask for too, before that and once more behind
     * it. */
    template <bool BENT> DEVICE void find(int stage, int first, bool hide) const {
        enum { M = Shape::S_ROWS / 16, N = Shape::S_KEYS / 2, PRODUCTS = D / 16 * M * N / 8 };
        const attention_operand<QUERIES, false, Shape::S_ROWS> left(true, s_row());
        const attention_operand<KEYS, false, Shape::S_KEYS> right(false, s_key());
        const float factor = attention_lift_of<T>::weight(), spread = p.call.spread, bend = p.call.bend;
        statistics lift, delta;
        scores s = {}, c = {};
        attention_mma_add<T, D / 16>(s, left, query(stage), right, memory);
        read(lift, statistic(stage));
        const auto weight = [&](int m, int i) { return exp2_approx(fused(s[m][i], spread, lift[m][i / 2 % 2])); };
        if constexpr (BENT) {
            scores w;
            each([&](int m, int i) { s[m][i] = attention_tanh(s[m][i] * bend); });
            each([&](int m, int i) { w[m][i] = weight(m, i); });
            if (hide) conceal(w, first);
            keep(memory + Shape::WEIGHT, w, factor);
            attention_mma_add<T, D / 16>(c, left, dout(stage), right, memory + Shape::VALUE);
            read(lift, statistic(stage)), read(delta, statistic(stage) + QUERIES);
            each([&](int m, int i) {
                c[m][i] = weight(m, i) * ((c[m][i] - delta[m][i / 2 % 2]) * (fused(-s[m][i], s[m][i], 1.0f) * factor));
            });
        } else {
            attention_mma_add<T, D / 16>(c, left, dout(stage), right, memory + Shape::VALUE, [&](int product) {
                attention_mma_share<PRODUCTS, M, N>(product, [&](int m, int i) { s[m][i] = weight(m, i); });
            });
            read(delta, statistic(stage) + QUERIES);
            if (hide) conceal(s, first);
            keep(memory + Shape::WEIGHT, s, factor);
            each([&](int m, int i) { c[m][i] = s[m][i] * ((c[m][i] - delta[m][i / 2 % 2]) * factor); });
        }
        if (hide) conceal(c, first);
        keep(memory + Shape::CHANGE, c, 1.0f);
    }
    /* The same with options: of `head`, whose keys of the tile begin at `key`. */
    DEVICE void find_with_options(int stage, int first, bool hide, int batch, int head, int key) const {
        enum { M = Shape::S_ROWS / 16, N = Shape::S_KEYS / 2 };
        const attention_operand<QUERIES, false, Shape::S_ROWS> left(true, s_row());
        const attention_operand<KEYS, false, Shape::S_KEYS> right(false, s_key());
        const attention_problem &at = p.call.at;
        const simt_dropout dropout = attention_dropout_of<true>(at.options);
        const float factor = attention_lift_of<T>::weight(), bend = p.call.bend;
        const int column = key + s_key() + thread_index() % 4 * 2;
        statistics lift, delta;
        uint32_t keeps[M][2];
        scores s = {}, w, c = {};
        attention_mma_add<T, D / 16>(s, left, query(stage), right, memory);
        read(lift, statistic(stage));
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const auto terms =
                    attention_terms_of<T, true>(at, batch, head, lesser(first + row_of(m, half), at.sq - 1));
                keeps[m][half] = dropout.p > 0 ? terms.keeps_pairs(dropout, key + s_key()) : ~0u;
#pragma unroll
                for (int i = half * 2; i < N; i += 4)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float &x = s[m][i + e];
                        if (bend != 0) x = attention_tanh(x * bend);
                        const float z =
                            terms.add(at.options, column + i / 4 * 8 + e, x * (bend != 0 ? at.softcap : at.scale));
                        w[m][i + e] = exp2_approx(fused(z, LOG2E, lift[m][half]));
                    }
            }
        if (hide) conceal(w, first);
        const auto left_of = [&](int m, int i, float x) {
            return keeps[m][i / 2 % 2] >> (i / 4 * 8 + i % 2) & 1 ? x : 0.0f;
        };
        each([&](int m, int i) { c[m][i] = left_of(m, i, w[m][i]); });
        keep(memory + Shape::WEIGHT, c, factor);
        each([&](int m, int i) { c[m][i] = 0; });
        attention_mma_add<T, D / 16>(c, left, dout(stage), right, memory + Shape::VALUE);
        read(delta, statistic(stage) + QUERIES);
        each([&](int m, int i) {
            const float change = left_of(m, i, c[m][i] * at.options.keeps) - delta[m][i / 2 % 2];
            c[m][i] = w[m][i] * (change * factor);
        });
        if (p.call.dbias != nullptr)
            each([&](int m, int i) {
                const int row = first + row_of(m, i / 2 % 2), in = s_key() + thread_index() % 4 * 2 + i / 4 * 8 + i % 2;
                if (sights()[in].has(row) && lift[m][i / 2 % 2] != -infinity())
                    attention_put_bias<T>(p.call, attention_bias_row(p.call, batch, head, row) + key + in,
                                          c[m][i] * attention_lift_of<T>::sum());
            });
        if (bend != 0) each([&](int m, int i) { c[m][i] *= fused(-s[m][i], s[m][i], 1.0f); });
        if (hide) conceal(c, first);
        keep(memory + Shape::CHANGE, c, 1.0f);
    }
    /* The warp's part of dv or dk of the block. */
    template <class Meanwhile> DEVICE void gather(columns &sum, int stage, const Meanwhile &meanwhile) const {
        const attention_operand<QUERIES, true, Shape::K_ROWS> left(true, k_row());
        const attention_operand<QUERIES, true, Shape::K_COLUMNS> right(false, k_column());
        attention_mma_add<T, QUERIES / 16>(sum, left, memory + (has_dv() ? Shape::WEIGHT : Shape::CHANGE), right,
                                           has_dv() ? dout(stage) : query(stage), meanwhile);
    }
    /* The warp's part of dq of the tile. */
    DEVICE void change(changes &dq) const {
        const attention_operand<QUERIES, false, Shape::Q_ROWS> left(true, q_row());
        const attention_operand<KEYS, true, Shape::Q_COLUMNS> right(false, q_column());
        attention_mma_add<T, KEYS / 16>(dq, left, memory + Shape::CHANGE, right, memory);
    }
    /* Weights and changes become parts of dk, dv and dq. Where warps have few columns of dk and dv they add dq to
     * memory as they sum those; otherwise last, and where q and dout have one stage, the next ones are copied
     * meanwhile. */
    template <class Copy>
    DEVICE void sum_up(columns &sum, int stage, float *tile, bool is_first, const Copy &copy_next) const {
        enum {
            M = Shape::Q_ROWS / 16,
            N = Shape::Q_COLUMNS / 2,
            PRODUCTS = QUERIES / 16 * Shape::K_ROWS / 16 * Shape::K_COLUMNS / 16
        };
        changes dq = {};
        if constexpr (D == 64) {
            float *const to = attention_unit<D>(tile, q_row(), q_column());
            if (is_first) attention_unit_put<D>(to, dq);
            change(dq);
            gather(sum, stage, [&](int product) {
                attention_mma_share<PRODUCTS, M, N>(
                    product, [&](int m, int i) { memory_add(to + attention_unit_place<D>(m, i), dq[m][i]); });
            });
        } else {
            gather(sum, stage, attention_nothing());
            if (Shape::STAGES == 1) {
                sync_block();
                copy_next();
            }
            change(dq);
            float *const to = attention_unit<D>(tile, q_row(), q_column());
            if (is_first)
                attention_unit_put<D>(to, dq);
            else
                attention_mma_share<1, M, N>(
                    0, [&](int m, int i) { memory_add(to + attention_unit_place<D>(m, i), dq[m][i]); });
        }
    }

    /* The i-th tile of queries that a task goes over; and how many tasks add to dq of one before it does. */
    DEVICE int tile_of(const attention_gradient_task &t, int i) const {
        return p.rises ? t.last - t.count + 1 + i : t.last - i;
    }
    DEVICE int turn_of(const attention_gradient_task &t, int batch, int tile) const {
        const attention_sight keys = attention_tile_keys<Shape>(p.call.at, batch, tile);
        return p.rises ? (keys.high - 1) / KEYS - t.tile : t.tile - keys.low / KEYS;
    }

    template <bool OPTIONS>
    DEVICE void run(const attention_gradient_task &t, const attention_gradient_place &at, columns &sum) const {
        const attention_problem &problem = p.call.at;
        const int key = t.tile * KEYS, end = lesser(key + KEYS, problem.sk), steps = t.count * p.share;
        const attention_sight all = { attention_queries_of(problem, at.batch, end - 1).low,
                                      end == key + KEYS ? attention_queries_of(problem, at.batch, key).high : 0 };
        const auto slot_of = [&](int head, int tile) {
            return ((int64_t)at.batch * problem.h + head) * p.call.tiles + tile;
        };
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
                const int turn = turn_of(t, at.batch, tile);
                turn_wait(p.turns + slot_of(head, tile), turn);
                is_first = turn == 0;
            }
            sync_warp();
            const bool hide = first < all.low || first + QUERIES > all.high;
            if constexpr (OPTIONS)
                find_with_options(stage, first, hide, at.batch, head, key);
            else if (p.call.bend == 0)
                find<false>(stage, first, hide);
            else
                find<true>(stage, first, hide);
            is_first = sync_block_any(is_first); /* weights are there, and the turn is the block's */
            if (step > 0 && thread_index() == 0) turn_pass(p.turns + slot);
            sync_warp();
            slot = slot_of(head, tile);
            sum_up(sum, stage, p.dq + slot * (QUERIES * D), is_first, [&] { copy(step + 1); });
            i++;
            if (i == t.count) i = 0, head++;
        }
        sync_block();
        if (thread_index() == 0) turn_pass(p.turns + slot);
    }

    DEVICE void end(const attention_gradient_task &t, const attention_gradient_place &at, const columns &sum) const {
        if (p.parts > 1) { /* to be added to those of the others */
            float *const to = p.dkv + (((int64_t)t.plane * p.call.columns + t.tile) * 2 + has_dv()) * (KEYS * D);
            attention_unit_put<D>(attention_unit<D>(to, k_row(), k_column()), sum);
            return;
        }
        const float factor = attention_lift_of<T>::sum() * (has_dv() ? p.call.at.options.keeps : p.call.at.scale);
        const int column = k_column(), columns = p.call.at.d - column;
        bool spoilt = false;
#pragma unroll
        for (int m = 0; m < Shape::K_ROWS / 16; m++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int token = t.tile * KEYS + k_row() + m * 16 + r * 8 + thread_index() % WARP / 4;
                const bool exists = token < p.call.at.sk;
                attention_write_row<T, Shape::K_COLUMNS>(
                    attention_row<T>(has_dv() ? p.call.dv : p.call.dk, at.batch, exists ? token : 0, at.shared) +
                        column,
                    sum[m], r, factor, false, columns, exists, p.call.wide);
                spoilt |= exists && attention_spoilt(sum[m], r);
            }
        if (spoilt) p.spoilt[(int64_t)t.plane * p.call.columns + t.tile] = 1;
    }
};

template <class Shape, bool OPTIONS = false>
DEVICE void attention_mma_gradient(const attention_backward_mma_params &p) {
    const attention_gradient_warps<Shape> warps = { p, launch_memory() };
    int *const ticket = (int *)warps.sights();
    if (thread_index() == 0) *ticket = counter_next(p.ticket);
    sync_block();
    const attention_gradient_task t = attention_gradient_task_of<Shape>(p, *ticket, p.rises);
    sync_block();
    if (t.plane < 0) return;
    const attention_gradient_place at = attention_gradient_place_of<Shape>(p, t.plane);
    typename attention_gradient_warps<Shape>::columns sum = {};
    if (t.count > 0) warps.template run<OPTIONS>(t, at, sum);
    warps.end(t, at, sum);
}

/* -------------------------------------------------------------------------------------------------------------- end */

/* Rows of a warp's unit from sums in memory: of `parts` that are `step` floats apart.
 * Notes those that are NaN or Inf. */
template <class T>
DEVICE void attention_gradient_write_unit(const attention_tensor &t, int batch, int head, int first, int row,
                                          int column, const float *from, int parts, int64_t step, float factor, int end,
                                          int columns, bool wide, int *again) {
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
        attention_write_row<T, 64>(attention_row<T>(t, batch, exists ? token : 0, head) + column, sum, r, factor, false,
                                   columns - column, exists, wide);
        if (exists && attention_spoilt(sum, r)) again[in] = 1;
    }
}

/* A block for each tile of queries of a head, and then of keys. */
template <class T, int D, int KEYS, int QUERIES, bool OPTIONS = false>
DEVICE void attention_mma_gradient_end(const attention_backward_mma_params &p) {
    enum { WARPS = ATTENTION_BACKWARD_ENDS / WARP };
    SHARED int again[128];
    const attention_backward_params &call = p.call;
    const attention_problem &at = call.at;
    const int64_t slots = (int64_t)at.b * at.h * call.tiles;
    const bool of_queries = block_index() < slots;
    const int64_t slot = of_queries ? block_index() : block_index() - slots;
    const int tiles = of_queries ? call.tiles : call.columns, heads = of_queries ? at.h : at.h / at.group,
              side = of_queries ? QUERIES : KEYS;
    const int tile = (int)(slot % tiles), head = (int)(slot / tiles % heads), batch = (int)(slot / tiles / heads),
              first = tile * side;
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
            attention_gradient_write_unit<T>(call.dq, batch, head, first, unit / (D / 64) * 16, unit % (D / 64) * 64,
                                             p.dq + slot * (QUERIES * D) + unit * 1024, p.turns[slot] > 0, 0,
                                             at.scale * lift, at.sq, at.d, call.wide, again);
    } else if (summed) {
#pragma unroll 1
        for (int unit = warp; unit < 2 * (KEYS / 16) * (D / 64); unit += WARPS) {
            const bool is_v = unit >= KEYS / 16 * (D / 64);
            const int in = is_v ? unit - KEYS / 16 * (D / 64) : unit;
            attention_gradient_write_unit<T>(
                is_v ? call.dv : call.dk, batch, head, first, in / (D / 64) * 16, in % (D / 64) * 64,
                p.dkv + own * (2 * KEYS * D) + unit * 1024, p.parts, (int64_t)call.columns * (2 * KEYS * D),
                (is_v ? at.options.keeps : at.scale) * lift, at.sk, at.d, call.wide, again);
        }
    } else if (!all && !p.spoilt[own]) {
        return;
    }
    sync_block();
#pragma unroll 1
    for (int r = warp; r < side && first + r < end; r += WARPS) {
        if (of_queries) {
            if (again[r] || all) attention_redo_query<T, D, OPTIONS>(call, batch, head, first + r);
        } else if (all || (summed ? again[r] != 0 : attention_gradient_lost<T, D>(call, batch, head, first + r))) {
            attention_redo_key<T, D, OPTIONS>(call, { batch, head, first, 0 }, first + r);
        }
    }
}

#endif
