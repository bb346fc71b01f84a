/* SPDX-License-Identifier: Apache-2.0 */
/* Products of tiles of rows that come from anywhere, for sm_90a.
 *
 * A block is a producer warpgroup and two consumer warpgroups, each with 64 rows of a tile of 128 by N in its
 * registers. One thread copies boxes of the matrix, and of rows that follow each other, to a ring of stages of 128
 * bytes of k. Other rows are copied by all of the producer's threads, in pieces of 16 bytes. A stage has two barriers:
 * `full` counts what arrived, `empty` the consumers of both blocks of a pair that are done with it.
 *
 * A pair has two tiles and the same columns. If both multiply one matrix, each copies half of its part to both; if not,
 * each copies its own, and they keep in step all the same. Blocks stay for one tile after the other; while consumers
 * end one, copies for the next are in flight. Tiles come in bands of eight, which have one part of a matrix after the
 * other: what blocks read at a time is then as little as may be.
 *
 * NOTES. Floor: 2 flops a product over 990 TFLOP/s in 16 bits. A consumer without rows leaves its products out, so that
 * a group's last tile counts by 64 rows.
 * - What threads wrote has to be fenced before products read it. The producer does so when its pieces of the step
 * before have arrived; fences of consumers cost 500 clocks a step. Two steps later it took 5 to 10 % longer.
 * - Pieces take 0.8 us for a step, however wide the tile, and boxes none of the producer's time: an H200 makes 620
 * TFLOP/s of 8192 rows from anywhere and 700 of as many in order. Where addresses of pieces were made anew for each
 * step, a copy waited for the one before to have read its own, and the producer took 1.5 us. */
#ifndef TRINE_CUDA_ROWS_SM90_INL_H
#define TRINE_CUDA_ROWS_SM90_INL_H

#include "matmul_sm90_ends.inl.h"
#include "rows_sm90.h"
#include "backends/cuda/tile/pieces.h"

/* T: a type, or a pair of float8. MORE: bytes of a stage besides the operands'. GROUPS: consumer warpgroups, each with
 * 64 rows. */
template <class T, int COLUMNS, bool Y_ACROSS, int MORE = 0, int GROUPS = 2> struct rows_pipe {
    using type = T;
    using product = wgmma<T, COLUMNS, false, Y_ACROSS>;
    using bits = typename matmul_element<T>::bits;
    enum {
        N = COLUMNS,
        SIZE = matmul_element<T>::SIZE,
        STEP = 128 / SIZE,
        PANEL = STEP * 128,
        ROWS = GROUPS * 64,
        X_BYTES = ROWS * 128,
        Y_BYTES = MATMUL_SM90_Y(COLUMNS, Y_ACROSS),
        ENDS = ROWS_SM90_ENDS / 2 * GROUPS,
        STAGES = (MATMUL_SM90_MEMORY - ENDS - ROWS_SM90_BARRIERS) / (X_BYTES + Y_BYTES + MORE),
        SUMS = COLUMNS / 2
    };
    static_assert(GROUPS != 2 || (int)STAGES == ROWS_SM90_STAGES(COLUMNS, Y_ACROSS, MORE), "what the host knows");
    uint32_t memory;
    int stage = 0;
    uint32_t parity = 0;

    DEVICE uint32_t x() const { return memory + ENDS + stage * (X_BYTES + Y_BYTES); }
    DEVICE uint32_t y() const { return x() + X_BYTES; }
    DEVICE uint32_t more() const { return memory + ENDS + STAGES * (X_BYTES + Y_BYTES) + stage * MORE; }
    DEVICE uint32_t full() const { return memory + ENDS + STAGES * (X_BYTES + Y_BYTES + MORE) + stage * 16; }
    DEVICE uint32_t empty() const { return full() + 8; }
    DEVICE void advance() {
        stage++;
        if (stage == STAGES) stage = 0, parity ^= 1;
    }
    DEVICE void make_barriers(int copiers) const {
        rows_pipe at = *this;
        for (; at.parity == 0; at.advance()) {
            barrier_init(at.full(), 1 + copiers);
            barrier_init(at.empty(), GROUPS * ROWS_SM90_PAIR);
        }
        barriers_made();
    }
    /* Until all that was copied has been used: no block of the pair will arrive here any more. */
    DEVICE void drain() {
        for (int i = 0; i < STAGES; i++, advance()) barrier_wait(empty(), parity ^ 1);
    }
    /* A consumer is done with a stage, of which it knows the barrier. */
    DEVICE static void done(uint32_t empty, int rank) {
        const int thread = thread_index() % WARPGROUP;
        if (thread < ROWS_SM90_PAIR) barrier_arrive(cluster_address(empty, rank ^ thread));
    }
};

/* A pair of `pairs` of tiles of rows, and the first of its columns. */
struct rows_place {
    int pair, column;
};
DEVICE rows_place rows_place_of(int unit, int pairs, int right, int columns) {
    const int band = unit / (ROWS_SM90_BAND * right), first = band * ROWS_SM90_BAND,
              high = pairs - first < ROWS_SM90_BAND ? pairs - first : ROWS_SM90_BAND, in = unit - first * right;
    return { first + in % high, in / high * columns };
}

/* What a block of a pair multiplies: the matrix, -1 for none, and whether the other multiplies the same. */
struct rows_task {
    int column, batch, steps, rank;
    bool shared;
};

/* --------------------------------------------------------------------------------------------------------- producer */

/* The rows of a tile, each wherever from(its number) says, or NULL for none: of every 16th a piece is a thread's own,
 * and where it is stays in registers, so that no copy has to wait for another. */
template <class Pipe, class From> struct rows_feed {
    using Bits = typename Pipe::bits;
    enum { OWN = ROWS_SM90_ROWS / 16, PIECE = 16 / Pipe::SIZE };
    const From &from;
    bool aligned;
    int64_t k, left; /* elements of a row, and from the next piece on */
    uint32_t there = 0;
    const Bits *next[OWN];

    DEVICE rows_feed(const From &from_, bool aligned_, int64_t k_)
        : from(from_), aligned(aligned_), k(k_), left(k_ - thread_index() % 8 * PIECE) {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const Bits *const row = aligned ? from(row_of(i)) : nullptr;
            next[i] = row + thread_index() % 8 * PIECE, there |= (uint32_t)(row != nullptr) << i;
        }
    }
    DEVICE static int row_of(int i) { return i * 16 + thread_index() / 8; }
    DEVICE void copy(const Pipe &pipe, int along) {
        const int down = thread_index() / 8, piece = thread_index() % 8;
        const uint32_t to = pipe.x() + down * 128 + (piece ^ down % 8) * 16;
        if (!aligned) return by_hand(to, along + piece * PIECE);
        const int bytes = left < 0 ? 0 : left < PIECE ? (int)left * Pipe::SIZE : 16;
#pragma unroll
        for (int i = 0; i < OWN; i++)
            if (there >> i & 1) copy_piece(to + i * 16 * 128, next[i], bytes);
#pragma unroll
        for (int i = 0; i < OWN; i++) next[i] += left >= Pipe::STEP ? (int)Pipe::STEP : 0;
        left -= Pipe::STEP;
    }
    DEVICE void by_hand(uint32_t to, int at) const {
#pragma unroll 1
        for (int i = 0; i < OWN; i++) {
            const Bits *const row = from(row_of(i));
            if (!row) continue;
            Bits x[PIECE];
            packed<uint32_t, 4> words;
#pragma unroll
            for (int e = 0; e < PIECE; e++) x[e] = at + e < k ? row[at + e] : Bits(0);
            __builtin_memcpy(&words, x, sizeof words);
            shared_store_piece(to + i * 16 * 128, words);
        }
    }
};

/* The part of the matrix: half of its lanes, or of the step's k if lanes are consecutive, at a time. */
template <class Pipe, bool ACROSS>
DEVICE void rows_copy_matrix(const Pipe &pipe, const tensor_map *map, const rows_task &task, int along) {
    for (int half = 0; half < ROWS_SM90_PAIR; half++) {
        if (task.shared && half != task.rank) continue;
        for (int i = 0; i < (ACROSS ? (int)Pipe::N / 64 : 1); i++) {
            const uint32_t to =
                pipe.y() + (ACROSS ? i * Pipe::PANEL + half * (Pipe::PANEL / 2) : half * (Pipe::Y_BYTES / 2));
            const int lane = task.column + (ACROSS ? i * 64 : half * (Pipe::N / 2)),
                      k = along + (ACROSS ? half * (Pipe::STEP / 2) : 0);
            if (task.shared)
                copy_box_to((1 << ROWS_SM90_PAIR) - 1, to, map, pipe.full(), ACROSS ? lane : k, ACROSS ? k : lane,
                            task.batch);
            else
                copy_box(to, map, pipe.full(), ACROSS ? lane : k, ACROSS ? k : lane, task.batch);
        }
    }
}

/* Steps whose pieces a thread does not wait for yet. */
template <class Pipe> struct rows_behind {
    enum { MOST = 1 };
    Pipe pipe; /* at the first of them */
    int count = 0;

    /* The pieces of the oldest have arrived; products see them. */
    DEVICE void tell() {
        copies_see();
        sync_warp();
        if (thread_index() % WARP == 0) barrier_come(pipe.full());
        pipe.advance();
    }
    DEVICE void add() {
        copy_commit();
        if (count < MOST) {
            count++;
            return;
        }
        copy_wait<MOST>();
        tell();
    }
    DEVICE void end() {
        copy_wait<0>();
        for (; count > 0; count--) tell();
    }
};

/* The steps of a tile whose rows come in boxes, as the matrix does; by one thread. */
template <class Pipe, bool ACROSS>
DEVICE void rows_produce_boxes(Pipe &pipe, const tensor_map *rows, int first, const tensor_map *map,
                               const rows_task &task) {
    for (int step = 0; step < task.steps; step++, pipe.advance()) {
        const int along = step * Pipe::STEP;
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        barrier_expect(pipe.full(), task.batch < 0 ? 0 : Pipe::Y_BYTES + Pipe::X_BYTES);
        if (task.batch < 0) continue;
        rows_copy_matrix<Pipe, ACROSS>(pipe, map, task, along);
        copy_box(pipe.x(), rows, pipe.full(), along, first, 0);
    }
}

/* Of other tiles, by the whole warpgroup; the matrix has n lanes, and comes in boxes or by hand. */
template <class Pipe, bool ACROSS, class From>
DEVICE void rows_produce(Pipe &pipe, rows_behind<Pipe> &behind, rows_feed<Pipe, From> &feed, const tensor_map *map,
                         const matmul_operand &hand, const rows_task &task, int64_t n) {
    const bool by_hand = hand.data != nullptr, none = task.batch < 0;
    for (int step = 0; step < task.steps; step++, pipe.advance()) {
        const int along = step * Pipe::STEP;
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        if (thread_index() == 0) {
            barrier_expect(pipe.full(), by_hand || none ? 0 : Pipe::Y_BYTES);
            if (!by_hand && !none) rows_copy_matrix<Pipe, ACROSS>(pipe, map, task, along);
        }
        if (!none && by_hand)
            matmul_hand_in<Pipe, typename Pipe::bits, ACROSS>(pipe.y(), Pipe::Y_BYTES, hand, task.column, n, along,
                                                              feed.k, task.batch);
        if (!none) feed.copy(pipe, along);
        behind.add();
    }
    behind.end(); /* not only when the next tile's rows have been looked up */
}

/* -------------------------------------------------------------------------------------------------------- consumers */

/* Steps that a consumer has no rows for: it lets them pass. */
template <class Pipe> DEVICE void rows_pass(Pipe &pipe, const rows_task &task) {
    for (int step = 0; step < task.steps; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        Pipe::done(pipe.empty(), task.rank);
    }
}

template <class Pipe, bool ACROSS>
DEVICE void rows_multiply(float (&sum)[Pipe::SUMS], Pipe &pipe, const rows_task &task, int group) {
    enum { Y_NEXT = ACROSS ? 2048 : 32 };
    uint32_t last = 0;
    for (int step = 0; step < task.steps; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        const uint64_t x = wgmma_operand(pipe.x() + group * 8192, Pipe::PANEL),
                       y = wgmma_operand(pipe.y(), Pipe::PANEL);
        wgmma_begin();
#pragma unroll
        for (int i = 0; i < 4; i++)
            Pipe::product::multiply(sum, x + i * 32 / 16, y + i * Y_NEXT / 16, step > 0 || i > 0);
        wgmma_commit();
        if (step > 0) {
            wgmma_wait<1>();
            Pipe::done(last, task.rank);
        }
        last = pipe.empty();
    }
    wgmma_wait<0>();
    wgmma_settle(sum);
    if (task.steps > 0) Pipe::done(last, task.rank);
}

/* 16 rows of 128 bytes, from where a warp brought them into order, to rows of y. `in`: whether its row, and `left`:
 * how many of its piece's elements, are there. */
template <class Bits, class In>
DEVICE void rows_store_box(Bits *to, int64_t pitch, uint32_t turn, int64_t left, bool whole, const In &in) {
    enum { PIECE = 16 / sizeof(Bits) };
    if (whole)
        return matmul_store_box((char *)to, pitch * sizeof(Bits), turn, [&](int q) { return left > 0 && in(q); });
    const int lane = thread_index() % 32;
#pragma unroll 1
    for (int q = 0; q < 16; q += 4) {
        const packed<uint32_t, 4> words = shared_load_piece(turn + matmul_row_at(q + lane / 8, lane % 8));
        Bits x[PIECE];
        __builtin_memcpy(x, &words, sizeof x);
        if (!in(q)) continue;
#pragma unroll
        for (int i = 0; i < PIECE; i++)
            if (i < left) to[q * pitch + i] = x[i];
    }
}

#endif
