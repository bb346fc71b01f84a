/* SPDX-License-Identifier: Apache-2.0 */
/* What brings operands to the products for sm_90a, and multiplies them: stages in shared memory, producers and
 * consumers. matmul_sm90.inl.h says how they work. */
#ifndef TRINE_CUDA_MATMUL_SM90_PIPE_INL_H
#define TRINE_CUDA_MATMUL_SM90_PIPE_INL_H

#include "matmul_finish.h"
#include "matmul_sm90.h"
#include "backends/cuda/tile/hopper.h"
#include "backends/cuda/tile/mma.h"

template <class T> struct matmul_element {
    using bits = uint16_t;
    enum { SIZE = 2 };
};
template <> struct matmul_element<int8_t> {
    using bits = uint8_t;
    enum { SIZE = 1 };
};
template <> struct matmul_element<tf32> {
    using bits = uint32_t;
    enum { SIZE = 4 };
};
template <> struct matmul_element<e4m3_e4m3> : matmul_element<int8_t> {};
template <> struct matmul_element<e4m3_e5m2> : matmul_element<int8_t> {};
template <> struct matmul_element<e5m2_e4m3> : matmul_element<int8_t> {};

/* Are there products of T, or of that pair of float8, whose results are of type E? */
template <class T, class E> struct matmul_gives {
    enum { YES = matmul_element<T>::SIZE == 1 };
};
template <> struct matmul_gives<int8_t, bf16> {
    enum { YES = false };
};
template <> struct matmul_gives<int8_t, f16> {
    enum { YES = false };
};
template <class T> struct matmul_gives<T, T> {
    enum { YES = true };
};
/* T: a type, or a pair of float8. N: the columns of a tile, or the most of them. BLOCKS: of a cluster, one above the
 * other, that share y's part, and whose tiles have `columns`; 1: it is not shared, and tiles have N. */
template <class T, int COLUMNS, bool X_ACROSS, bool Y_ACROSS, int BLOCKS> struct matmul_pipe {
    using type = T;
    using sum = typename wgmma<T, COLUMNS, X_ACROSS, Y_ACROSS>::sum;
    enum {
        N = COLUMNS,
        FLOATS = sum(0.5f) != 0,
        FLOAT8 = FLOATS && matmul_element<T>::SIZE == 1,
        STEP = 128 / matmul_element<T>::SIZE, /* elements of k in a stage */
        PANEL = STEP * 128,                   /* bytes of 64 lanes that are consecutive */
        X_BYTES = MATMUL_SM90_ROWS * 128,
        FIRST = BLOCKS == 1 ? MATMUL_SM90_SHARED(N) : MATMUL_SM90_ENDS, /* the first stage */
        SUMS = N / 2,
        /* a block's own sums of what it finishes, behind the first stage's place and behind where d's order is made */
        OWN = 80 << 10,
        SHARE =
            BLOCKS == 1 || N < 128 ? N : 128, /* the most columns that a block finishes of a tile that others share */
        PITCH = (SHARE + 8) * 4, /* bytes from row to row of d, where it is made of sums; the same if it is swapped */
        PITCH_SWAPPED = (MATMUL_SM90_ROWS + 4) * 4,
        SHARING = BLOCKS, /* blocks that y's part is for */
        HALVES = FLOATS && matmul_element<T>::SIZE <= 2,
    };
    template <int WIDTH> using product = wgmma<T, WIDTH, X_ACROSS, Y_ACROSS>;
    uint32_t memory;
    int columns, count; /* of stages */
    int stage = 0;
    uint32_t parity = 0;

    DEVICE int width() const { return BLOCKS == 1 ? N : columns; }
    DEVICE int y_bytes() const { return MATMUL_SM90_Y(width(), Y_ACROSS); }
    DEVICE int stage_bytes() const { return X_BYTES + y_bytes(); }
    DEVICE int stages() const { return BLOCKS == 1 ? MATMUL_SM90_SPLIT_STAGES(N) : count; }
    DEVICE uint32_t x() const { return memory + FIRST + stage * stage_bytes(); }
    DEVICE uint32_t y() const { return x() + X_BYTES; }
    /* Two for each stage, and for split one for sums; behind those scales. */
    DEVICE uint32_t barriers() const { return memory + FIRST + stages() * stage_bytes(); }
    DEVICE uint32_t full() const { return barriers() + stage * 16; }
    DEVICE uint32_t empty() const { return full() + 8; }
    DEVICE void advance() {
        stage++;
        if (stage == stages()) stage = 0, parity ^= 1;
    }

    /* Until all that was copied has been used: no block of the cluster will arrive here any more. */
    DEVICE void drain() {
        for (int i = 0; i < stages(); i++, advance()) barrier_wait(empty(), parity ^ 1);
    }

    DEVICE void make_barriers() const {
        matmul_pipe at = *this;
        for (; at.parity == 0; at.advance()) {
            barrier_init(at.full(), 1);
            barrier_init(at.empty(), 2 * SHARING);
        }
        if (SHARING == 1) barrier_init(met(), 1);
        barriers_made();
    }
    DEVICE uint32_t met() const { return barriers() + stages() * 16; }
    DEVICE uint32_t scales() const { return BLOCKS == 1 ? met() + 16 : memory; } /* of y's lanes */
};

/* Where a tile is, and the steps of k that are this block's. */
struct matmul_task {
    int row, column, batch, first, end;
};
template <class Pipe> DEVICE matmul_task matmul_task_of(const matmul_sm90_params &p, int tile, int rank) {
    const int plane = p.down * p.right, batch = tile / plane, rest = tile - batch * plane,
              group = rest / (MATMUL_GROUP * p.right), first = group * MATMUL_GROUP;
    const int high = p.down - first < MATMUL_GROUP ? p.down - first : MATMUL_GROUP, in = rest - first * p.right,
              right = in / high, down = first + in - right * high;
    const int row = down * Pipe::SHARING + rank % Pipe::SHARING,
              columns = Pipe::SHARING == 1 ? (int)Pipe::N : p.columns;
    const int64_t parts = Pipe::SHARING == 1 ? cluster_size() : 1, part = parts > 1 ? rank : 0;
    return { row * (Pipe::SHARING == 1 ? p.rows : MATMUL_SM90_ROWS), right * columns, batch,
             (int)(p.depth * part / parts), (int)(p.depth * (part + 1) / parts) };
}

/* Pairs take whole tiles one after the other, and then a part of one. */
DEVICE int matmul_units(const matmul_sm90_params &p) { return p.alone + (p.tiles - p.alone) * p.parts; }
template <class Pipe> DEVICE matmul_task matmul_unit_of(const matmul_sm90_params &p, int unit, int rank) {
    if (unit < p.alone) return matmul_task_of<Pipe>(p, unit, rank);
    const int at = unit - p.alone, tile = at / p.parts, part = at - tile * p.parts;
    matmul_task task = matmul_task_of<Pipe>(p, p.alone + tile, rank);
    task.first = (int)((int64_t)p.depth * part / p.parts), task.end = (int)((int64_t)p.depth * (part + 1) / p.parts);
    return task;
}

/* --------------------------------------------------------------------------------------------------------- producer */

/* The lanes of x, and those of y or this block's half of them for both blocks of a pair: half of the lanes, or of the
 * step's k if lanes are consecutive. */
template <class Pipe, bool ACROSS>
DEVICE void matmul_copy_x(const Pipe &pipe, const matmul_sm90_params &p, int lane, int along, int batch) {
    for (int i = 0; i < (ACROSS ? MATMUL_SM90_ROWS / 64 : 1); i++)
        copy_box(pipe.x() + i * Pipe::PANEL, &p.x, pipe.full(), ACROSS ? lane + i * 64 : along, ACROSS ? along : lane,
                 batch);
}
template <class Pipe, bool ACROSS>
DEVICE void matmul_copy_y(const Pipe &pipe, const matmul_sm90_params &p, int lane, int along, int batch, int rank) {
    enum { SHARE = Pipe::SHARING };
    const int own = SHARE > 1 ? rank : 0, part = pipe.width() / SHARE;
    const auto copy = [&](uint32_t to, int x, int y) {
        if constexpr (SHARE > 1)
            copy_box_to((1 << SHARE) - 1, pipe.y() + to, &p.y, pipe.full(), x, y, batch);
        else
            copy_box(pipe.y() + to, &p.y, pipe.full(), x, y, batch);
    };
    if constexpr (ACROSS)
        for (int i = 0; i * 64 < pipe.width(); i++)
            copy(i * Pipe::PANEL + own * (Pipe::PANEL / SHARE), lane + i * 64, along + own * (Pipe::STEP / SHARE));
    else
        copy(own * part * 128, along, lane + own * part);
}

template <class Pipe, bool X_ACROSS, bool Y_ACROSS>
DEVICE void matmul_produce(const matmul_sm90_params &p, Pipe &pipe, const matmul_task &task, int rank) {
    const int x_batch = p.x_batches ? task.batch : 0, y_batch = p.y_batches ? task.batch : 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        const int along = step * Pipe::STEP;
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        barrier_expect(pipe.full(), p.rows * 128 + pipe.y_bytes());
        matmul_copy_x<Pipe, X_ACROSS>(pipe, p, task.row, along, x_batch);
        matmul_copy_y<Pipe, Y_ACROSS>(pipe, p, task.column, along, y_batch, rank);
    }
}

/* An operand that does not begin at 16 bytes, which copies of boxes cannot read: the whole warpgroup moves this block's
 * part element by element, as a box would. */
template <class Pipe, class Bits, bool ACROSS>
DEVICE void matmul_hand_in(uint32_t to, int bytes, const matmul_operand &from, int64_t lane0, int64_t lanes,
                           int64_t along0, int64_t depth, int batch) {
    enum { PIECE = 16 / sizeof(Bits) };
    const Bits *const data = (const Bits *)from.data + batch * from.batch;
#pragma unroll 1
    for (int i = thread_index(); i < bytes / 16; i += WARPGROUP) {
        const int row = i / 8, piece = i % 8;
        const int64_t lane = lane0 + (ACROSS ? row / 64 * 64 + piece * PIECE : row),
                      along = along0 + (ACROSS ? row % 64 : piece * PIECE);
        Bits x[PIECE];
#pragma unroll
        for (int e = 0; e < PIECE; e++) {
            const int64_t l = lane + (ACROSS ? e : 0), k = along + (ACROSS ? 0 : e);
            x[e] = l < lanes && k < depth ? data[l * from.lane + k * from.along] : Bits(0);
        }
        uint32_t word[4];
        __builtin_memcpy(word, x, sizeof word);
        const uint32_t there = to + row * 128 + (piece ^ row % 8) * 16;
        shared_store(there, word[0], word[1]);
        shared_store(there + 8, word[2], word[3]);
    }
}

template <class Pipe, class Bits, bool X_ACROSS, bool Y_ACROSS>
DEVICE void matmul_produce_by_hand(const matmul_sm90_params &p, Pipe &pipe, const matmul_task &task, int rank) {
    const bool x_copied = p.x_hand.data == nullptr, y_copied = p.y_hand.data == nullptr;
    const int x_batch = p.x_batches ? task.batch : 0, y_batch = p.y_batches ? task.batch : 0;
    const int64_t x_lanes = p.swapped ? p.n : p.m, y_lanes = p.swapped ? p.m : p.n;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        const int along = step * Pipe::STEP;
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        if (!x_copied)
            matmul_hand_in<Pipe, Bits, X_ACROSS>(pipe.x(), Pipe::X_BYTES, p.x_hand, task.row, x_lanes, along, p.k,
                                                 x_batch);
        if (!y_copied)
            matmul_hand_in<Pipe, Bits, Y_ACROSS>(pipe.y(), pipe.y_bytes(), p.y_hand, task.column, y_lanes, along, p.k,
                                                 y_batch);
        copies_see();
        sync_some(3, WARPGROUP);
        if (thread_index() != 0) continue;
        barrier_expect(pipe.full(), (x_copied ? p.rows * 128 : 0) + (y_copied ? pipe.y_bytes() : 0));
        if (x_copied) matmul_copy_x<Pipe, X_ACROSS>(pipe, p, task.row, along, x_batch);
        if (y_copied) matmul_copy_y<Pipe, Y_ACROSS>(pipe, p, task.column, along, y_batch, rank);
    }
}

/* -------------------------------------------------------------------------------------------------------- consumers */

/* `group`: which of the two. */
template <class Product, class Pipe, bool X_ACROSS, bool Y_ACROSS, int SUMS>
DEVICE void matmul_consume(typename Pipe::sum (&sum)[SUMS], Pipe &pipe, const matmul_task &task, int group, int rank) {
    enum { X_NEXT = X_ACROSS ? 2048 : 32, Y_NEXT = Y_ACROSS ? 2048 : 32 }; /* bytes to the next 32 bytes of k */
    const int thread = thread_index() % WARPGROUP;
    uint32_t last = 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        const uint64_t x = wgmma_operand(pipe.x() + group * 8192, Pipe::PANEL),
                       y = wgmma_operand(pipe.y(), Pipe::PANEL);
        wgmma_begin();
#pragma unroll
        for (int i = 0; i < 4; i++)
            Product::multiply(sum, x + i * X_NEXT / 16, y + i * Y_NEXT / 16, step > task.first || i > 0);
        wgmma_commit();
        if (step > task.first) {
            wgmma_wait<1>();
            if (thread < Pipe::SHARING) barrier_arrive(cluster_address(last, rank ^ thread));
        }
        last = pipe.empty();
    }
    wgmma_wait<0>();
    wgmma_settle(sum);
    if (task.end > task.first && thread < Pipe::SHARING) barrier_arrive(cluster_address(last, rank ^ thread));
}

/* The same of float8: the sums of a step, 128 products each, are added in f32, for within them few bits are kept. While
 * one warpgroup adds, the other multiplies; wide tiles in halves. */
template <class Pipe, int SUMS>
DEVICE void matmul_consume_float8(float (&sum)[SUMS], Pipe &pipe, const matmul_task &task, int group, int rank) {
    enum { WIDTH = 2 * SUMS, PART = WIDTH > 128 ? WIDTH / 2 : WIDTH, COUNT = PART / 2 };
    using Product = typename Pipe::template product<PART>;
    const int thread = thread_index() % WARPGROUP;
#pragma unroll
    for (int i = 0; i < SUMS; i++) sum[i] = 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        const uint64_t x = wgmma_operand(pipe.x() + group * 8192, Pipe::PANEL),
                       y = wgmma_operand(pipe.y(), Pipe::PANEL);
#pragma unroll
        for (int first = 0; first < WIDTH; first += PART) {
            float part[COUNT];
            wgmma_begin();
#pragma unroll
            for (int i = 0; i < 4; i++) Product::multiply(part, x + i * 2, y + first * 8 + i * 2, i > 0);
            wgmma_commit();
            wgmma_wait<0>();
            wgmma_settle(part);
            if (first + PART == WIDTH && thread < Pipe::SHARING)
                barrier_arrive(cluster_address(pipe.empty(), rank ^ thread));
#pragma unroll
            for (int i = 0; i < COUNT; i++) sum[first / 2 + i] += part[i];
        }
    }
}

/* The first sums by a loop for their number: wgmma's width is part of the instruction. */
template <class Pipe, bool X_ACROSS, bool Y_ACROSS, int WIDTH>
DEVICE void matmul_multiply(typename Pipe::sum (&all)[Pipe::SUMS], Pipe &pipe, const matmul_task &task, int group,
                            int rank) {
    if constexpr (Pipe::SHARING > 1 && WIDTH > MATMUL_SM90_NARROW)
        if (pipe.width() < WIDTH)
            return matmul_multiply<Pipe, X_ACROSS, Y_ACROSS, WIDTH - 16>(all, pipe, task, group, rank);
    auto &sum = reinterpret_cast<typename Pipe::sum(&)[WIDTH / 2]>(all);
    if constexpr (Pipe::FLOAT8)
        matmul_consume_float8(sum, pipe, task, group, rank);
    else
        matmul_consume<typename Pipe::template product<WIDTH>, Pipe, X_ACROSS, Y_ACROSS>(sum, pipe, task, group, rank);
}

#endif
