/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for sm_90a: copies of boxes, products of warpgroups.
 *
 * A block is a producer warpgroup, one thread of which keeps copies of 128-byte steps of k on their way into a ring of stages, and two consumer warpgroups,
 * each with 64 rows of the 128 x N tile in its registers. A stage has two barriers: `full` counts the bytes that arrived, `empty` the consumers that are done
 * with it.
 *
 * Pairs: two blocks of a cluster have tiles one above the other, and each copies half of y's part to both. Blocks stay for one tile after the other; while
 * consumers write one, copies for the next are under way. Split: the blocks of a cluster share one tile, each with a part of k; their sums meet in shared
 * memory, each block finishes a part of the rows, and adds in the order of ranks. There the operand with fewer lanes is y, so that d may be written transposed.
 *
 * NOTES, all of one H200. Floors: 2 m n k flops over 990 TFLOP/s (bf16; 1979 for i8; power holds either to about 75 % of that), and operands and d once over
 * 4.2 TB/s. A step of 128 x 256 is 1024 clocks of products and 32 KiB from the second-level cache, for which the pair halves y's part: 7 TB/s for all
 * processors together.
 * - Arrivals at cluster scope with `release`, and waits with `acquire`, cost 500 clocks of fences a step: 518 TFLOP/s at 4096, against 681 without, as
 * predicted.
 * - Results as registers hold them, 4 columns to a thread, end a tile in 6 % of its time. Boxes of shared memory that the copy engine takes out wait behind those
 * it brings in for the next tile: 12,500 clocks for a tile of e4m3. Warps that each bring 16 rows into d's order and store them wait for nothing: 4,600; e4m3 at
 * 4096 took 206,000 clocks, and now 176,000 (157,000 without ends).
 * - Clusters of 2 x 2 that share both operands should have saved a quarter of the traffic, but the device holds too few of them at once: 53 us at 2048,
 * against 30.
 * - Meeting sums in a loop over single elements took 5 us for 128 x 128; whole rows and all ranks' loads at once take 2. What was asked of each four of them,
 * of types, scales, c and bias, made the end of 128 x 128 without a partner 6 us; asked once for the thread it is 2.7. Without end, 0.3.
 * - Three blocks that share k come out worse than two for m 64 and less, n = k = 4096 (15.7 us against 13.7), although without their end they take 12.0; for
 * m 128, k 14336 they took 39.7 us against 43.7.
 * - Four warps that copy steps in turns: no difference in 16 bits, 5 % slower for e4m3. So a box is asked for soon enough.
 * - Asking the second-level cache for the first steps of weights before the launch ahead has ended took 0.2 us more for 32 KiB of each block and 1.9 for 256
 * KiB, m 16, n 14336. Which operand is asked for first, and pauses between steps, changed nothing there.
 * - Ends with c, a bias or an activation added 30 to 55 % to the time at 4096 by chunks of 32 columns; by warps, with each question asked once for 64 columns,
 * 10 to 20.
 * - Copies of boxes that begin at other than 16 bytes trap, also where only the coordinate does; such operands are moved by hand, at a tenth of the speed.
 *
 * Over 600 lines in one file: producers, consumers and ends share the pipe and its places in shared memory, of which none makes sense without the others. */
#ifndef TRINE_CUDA_MATMUL_SM90_INL_H
#define TRINE_CUDA_MATMUL_SM90_INL_H

#include "matmul_finish.h"
#include "matmul_sm90.h"
#include "tile/hopper.h"
#include "tile/mma.h"

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

/* T: a type, or a pair of float8. BLOCKS: of a cluster, one above the other, that share y's part; 1: it is not shared. */
template <class T, int COLUMNS, bool X_ACROSS, bool Y_ACROSS, int BLOCKS> struct matmul_pipe {
    using sum = typename wgmma<T, COLUMNS, X_ACROSS, Y_ACROSS>::sum;
    enum {
        N = COLUMNS,
        FLOATS = sum(0.5f) != 0,
        FLOAT8 = FLOATS && matmul_element<T>::SIZE == 1,
        PART = FLOAT8 && N > 128 ? 128 : N,   /* columns that are multiplied at once */
        STEP = 128 / matmul_element<T>::SIZE, /* elements of k in a stage */
        PANEL = STEP * 128,                   /* bytes of 64 lanes that are consecutive */
        X_BYTES = MATMUL_SM90_ROWS * 128,
        Y_BYTES = N * 128,
        STAGE = X_BYTES + Y_BYTES,
        STAGES = MATMUL_SM90_MEMORY / STAGE,
        FIRST = MATMUL_SM90_ENDS, /* the first stage */
        BARRIERS = FIRST + STAGES * STAGE,
        SUMS = N / 2,
        SHARING = BLOCKS, /* blocks that y's part is for */
        HALVES = FLOATS && matmul_element<T>::SIZE <= 2,
    };
    using product = wgmma<T, PART, X_ACROSS, Y_ACROSS>;
    uint32_t memory;
    int stage = 0;
    uint32_t parity = 0;

    DEVICE uint32_t x() const { return memory + FIRST + stage * STAGE; }
    DEVICE uint32_t y() const { return x() + X_BYTES; }
    DEVICE uint32_t full() const { return memory + BARRIERS + stage * 16; }
    DEVICE uint32_t empty() const { return full() + 8; }
    DEVICE void advance() {
        stage++;
        if (stage == STAGES) stage = 0, parity ^= 1;
    }

    /* Until all that was copied has been used: no block of the cluster will arrive here any more. */
    DEVICE void drain() {
        for (int i = 0; i < STAGES; i++, advance()) barrier_wait(empty(), parity ^ 1);
    }

    DEVICE void make_barriers() const {
        matmul_pipe at = *this;
        for (; at.parity == 0; at.advance()) {
            barrier_init(at.full(), 1);
            barrier_init(at.empty(), 2 * SHARING);
        }
        barriers_made();
    }
};

/* Where a tile is, and the steps of k that are this block's. */
struct matmul_task {
    int row, column, batch, first, end;
};
template <class Pipe> DEVICE matmul_task matmul_task_of(const matmul_sm90_params &p, int tile, int rank) {
    const int plane = p.down * p.right, batch = tile / plane, rest = tile - batch * plane, group = rest / (MATMUL_GROUP * p.right),
              first = group * MATMUL_GROUP;
    const int high = p.down - first < MATMUL_GROUP ? p.down - first : MATMUL_GROUP, in = rest - first * p.right, right = in / high,
              down = first + in - right * high;
    const int row = down * Pipe::SHARING + rank % Pipe::SHARING;
    const int64_t parts = Pipe::SHARING == 1 ? cluster_size() : 1, part = parts > 1 ? rank : 0;
    return { row * MATMUL_SM90_ROWS, right * Pipe::N, batch, (int)(p.depth * part / parts), (int)(p.depth * (part + 1) / parts) };
}

/* ------------------------------------------------------------------------------------------------------------------ producer */

/* One operand's lanes that this block copies: all, or a part for both blocks of a pair. */
template <class Pipe, int LANES, int SHARE, bool ACROSS>
DEVICE void matmul_copy_in(uint32_t to, const tensor_map *map, uint32_t full, int lane, int along, int batch, int rank) {
    enum { PART = LANES / SHARE };
    const int index = SHARE > 1 ? rank : 0;
    for (int i = 0; i < (ACROSS ? PART / 64 : 1); i++) {
        const uint32_t there = to + index * PART * 128 + i * Pipe::PANEL;
        const int first = lane + index * PART + i * 64, x = ACROSS ? first : along, y = ACROSS ? along : first;
        if constexpr (SHARE > 1)
            copy_box_to((1 << SHARE) - 1, there, map, full, x, y, batch);
        else
            copy_box(there, map, full, x, y, batch);
    }
}

template <class Pipe, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_produce(const matmul_sm90_params &p, Pipe &pipe, const matmul_task &task, int rank) {
    const int x_batch = p.x_batches ? task.batch : 0, y_batch = p.y_batches ? task.batch : 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        const int along = step * Pipe::STEP;
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        barrier_expect(pipe.full(), Pipe::STAGE);
        matmul_copy_in<Pipe, MATMUL_SM90_ROWS, 1, X_ACROSS>(pipe.x(), &p.x, pipe.full(), task.row, along, x_batch, rank);
        matmul_copy_in<Pipe, Pipe::N, Pipe::SHARING, Y_ACROSS>(pipe.y(), &p.y, pipe.full(), task.column, along, y_batch, rank);
    }
}

/* An operand that does not begin at 16 bytes, which copies of boxes cannot read: the whole warpgroup moves this block's part element by element, as a box
 * would. */
template <class Pipe, class Bits, int LANES, bool ACROSS>
DEVICE void matmul_hand_in(uint32_t to, const matmul_operand &from, int64_t lane0, int64_t lanes, int64_t along0, int64_t depth, int batch) {
    enum { PIECE = 16 / sizeof(Bits) };
    const Bits *const data = (const Bits *)from.data + batch * from.batch;
#pragma unroll 1
    for (int i = thread_index(); i < LANES * 8; i += WARPGROUP) {
        const int row = i / 8, piece = i % 8;
        const int64_t lane = lane0 + (ACROSS ? row / 64 * 64 + piece * PIECE : row), along = along0 + (ACROSS ? row % 64 : piece * PIECE);
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
        if (!x_copied) matmul_hand_in<Pipe, Bits, MATMUL_SM90_ROWS, X_ACROSS>(pipe.x(), p.x_hand, task.row, x_lanes, along, p.k, x_batch);
        if (!y_copied) matmul_hand_in<Pipe, Bits, Pipe::N, Y_ACROSS>(pipe.y(), p.y_hand, task.column, y_lanes, along, p.k, y_batch);
        copies_see();
        sync_some(3, WARPGROUP);
        if (thread_index() != 0) continue;
        barrier_expect(pipe.full(), (x_copied ? (int)Pipe::X_BYTES : 0) + (y_copied ? (int)Pipe::Y_BYTES : 0));
        if (x_copied) matmul_copy_in<Pipe, MATMUL_SM90_ROWS, 1, X_ACROSS>(pipe.x(), &p.x, pipe.full(), task.row, along, x_batch, rank);
        if (y_copied) matmul_copy_in<Pipe, Pipe::N, Pipe::SHARING, Y_ACROSS>(pipe.y(), &p.y, pipe.full(), task.column, along, y_batch, rank);
    }
}

/* ----------------------------------------------------------------------------------------------------------------- consumers */

/* `group`: which of the two. */
template <class Pipe, bool X_ACROSS, bool Y_ACROSS>
DEVICE void matmul_consume(typename Pipe::sum (&sum)[Pipe::SUMS], Pipe &pipe, const matmul_task &task, int group, int rank) {
    enum { X_NEXT = X_ACROSS ? 2048 : 32, Y_NEXT = Y_ACROSS ? 2048 : 32 }; /* bytes to the next 32 bytes of k */
    const int thread = thread_index() % WARPGROUP;
    uint32_t last = 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        const uint64_t x = wgmma_operand(pipe.x() + group * 8192, Pipe::PANEL), y = wgmma_operand(pipe.y(), Pipe::PANEL);
        wgmma_begin();
#pragma unroll
        for (int i = 0; i < 4; i++) Pipe::product::multiply(sum, x + i * X_NEXT / 16, y + i * Y_NEXT / 16, step > task.first || i > 0);
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

/* The same of float8: the sums of a step, 128 products each, are added in f32, for within them few bits are kept. While one warpgroup adds, the other
 * multiplies. */
template <class Pipe> DEVICE void matmul_consume_float8(float (&sum)[Pipe::SUMS], Pipe &pipe, const matmul_task &task, int group, int rank) {
    enum { PART = Pipe::PART, COUNT = PART / 2 };
    const int thread = thread_index() % WARPGROUP;
#pragma unroll
    for (int i = 0; i < Pipe::SUMS; i++) sum[i] = 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        const uint64_t x = wgmma_operand(pipe.x() + group * 8192, Pipe::PANEL), y = wgmma_operand(pipe.y(), Pipe::PANEL);
#pragma unroll
        for (int first = 0; first < Pipe::N; first += PART) {
            float part[COUNT];
            wgmma_begin();
#pragma unroll
            for (int i = 0; i < 4; i++) Pipe::product::multiply(part, x + i * 2, y + first * 8 + i * 2, i > 0);
            wgmma_commit();
            wgmma_wait<0>();
            wgmma_settle(part);
            if (first + PART == Pipe::N && thread < Pipe::SHARING) barrier_arrive(cluster_address(pipe.empty(), rank ^ thread));
#pragma unroll
            for (int i = 0; i < COUNT; i++) sum[first / 2 + i] += part[i];
        }
    }
}

template <class Pipe, bool X_ACROSS, bool Y_ACROSS>
DEVICE void matmul_multiply(typename Pipe::sum (&sum)[Pipe::SUMS], Pipe &pipe, const matmul_task &task, int group, int rank) {
    if constexpr (Pipe::FLOAT8)
        matmul_consume_float8(sum, pipe, task, group, rank);
    else
        matmul_consume<Pipe, X_ACROSS, Y_ACROSS>(sum, pipe, task, group, rank);
}

/* How a warp puts 16 rows by 16 columns of its sums, 8 of each thread, into rows of 128 bytes: pieces of 16 bytes change places by row, so that neither this nor
 * reading along rows meets in a bank. */
DEVICE uint32_t matmul_row_at(int row, int piece) { return row * 128 + (piece ^ (row % 4 * 2 + row / 4 % 2)) * 16; }
template <class E> struct matmul_held {
    enum { BYTES = sizeof(typename E::bits) };
    template <class Sum> static DEVICE void put(uint32_t to, int column, const Sum (&x)[8]) {
        const int lane = thread_index() % 32;
        if constexpr (BYTES == 2) {
            const uint32_t at = (to + matmul_row_at(lane % 16, lane / 16)) ^ column * BYTES;
            store_matrices(at, E::pair(x[0], x[1]), E::pair(x[2], x[3]), E::pair(x[4], x[5]), E::pair(x[6], x[7]));
        } else {
            const uint32_t at = to + matmul_row_at(lane / 4, lane % 4 / 2) + lane % 2 * 8;
            uint32_t word[8];
            __builtin_memcpy(word, x, sizeof word);
#pragma unroll
            for (int i = 0; i < 8; i += 2) shared_store((at ^ (column + i / 4 * 8) * BYTES) + i / 2 % 2 * 1024, word[i], word[i + 1]);
        }
    }
    /* The other way round. */
    template <class Sum> static DEVICE void take(Sum (&x)[8], uint32_t from, int column) {
        const int lane = thread_index() % 32;
        uint32_t word[2 * BYTES];
        if constexpr (BYTES == 2) {
            load_matrices(word, (from + matmul_row_at(lane % 16, lane / 16)) ^ column * BYTES);
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] = E::get((typename E::bits)(word[i / 2] >> i % 2 * 16));
        } else {
            const uint32_t at = from + matmul_row_at(lane / 4, lane % 4 / 2) + lane % 2 * 8;
#pragma unroll
            for (int i = 0; i < 8; i += 2) shared_load((at ^ (column + i / 4 * 8) * BYTES) + i / 2 % 2 * 1024, word[i], word[i + 1]);
            __builtin_memcpy(x, word, sizeof x);
        }
    }
};

/* alpha scales s to d, whose rows are whole pieces of 16 bytes: each warp brings its 16 rows of 128 bytes at a time to where threads have them in d's order, two
 * such in turns, and waits for no other. SCALED: columns have scales of their own. */
template <class E, bool SCALED, class Pipe>
DEVICE void matmul_write_rows(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, uint32_t memory) {
    using Held = matmul_held<E>;
    enum { WIDTH = 128 / Held::BYTES, PIECE = 16 / Held::BYTES, TURN = 16 * 128 };
    const int thread = thread_index() % WARPGROUP, lane = thread % 32, first = task.row + group * 64 + thread / 32 * 16;
    const uint32_t own = memory + (group * 4 + thread / 32) * 2 * TURN;
    const int64_t column = task.column + lane % 8 * PIECE, pitch = p.to.d_row * Held::BYTES;
    char *const to = (char *)p.to.d + (task.batch * p.to.d_batch + column) * Held::BYTES + (first + lane / 8) * pitch;
    const int rows = (int)p.m - first - lane / 8;
    float factor[2];
#pragma unroll
    for (int i = 0; i < 2; i++) factor[i] = p.to.alpha * matmul_scale_at(p.to.rows, task.batch, first + lane / 4 + i * 8, p.m);
#pragma unroll
    for (int box = 0; box < Pipe::N / WIDTH; box++) {
        const uint32_t turn = own + box % 2 * TURN;
#pragma unroll
        for (int i = 0; i < WIDTH; i += 16) {
            typename Pipe::sum x[8];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const int right = box * WIDTH + i + e / 4 * 8 + e % 2;
                const float scale = SCALED ? matmul_scale_at(p.to.columns, task.batch, task.column + right + lane % 4 * 2, p.n) : 1;
                x[e] = matmul_times(factor[e / 2 % 2] * scale, sum[(box * WIDTH + i) / 2 + e]);
            }
            Held::put(turn, i, x);
        }
        sync_warp();
        packed<uint32_t, 4> piece[4];
#pragma unroll
        for (int q = 0; q < 4; q++) piece[q] = shared_load_piece(turn + matmul_row_at(q * 4 + lane / 8, lane % 8));
#pragma unroll
        for (int q = 0; q < 4; q++) store_piece_if(q * 4 < rows && column + box * WIDTH < p.n, to + q * 4 * pitch + box * 128, piece[q]);
    }
    sync_warp(); /* the next tile begins with the first turn */
}

/* Words of a box's columns in shared memory, of which each lane brings every 32nd; and two neighbours of them. */
template <class Word, int OWN> DEVICE void matmul_line_put(uint32_t line, const Word (&x)[OWN]) {
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        uint32_t word;
        __builtin_memcpy(&word, &x[i], sizeof word);
        shared_store(line + (i * 32 + thread_index() % 32) * 4, word);
    }
}
template <class Word> DEVICE void matmul_line_take(Word (&x)[2], uint32_t line, int column) {
    uint32_t word[2];
    shared_load(line + column * 4, word[0], word[1]);
    __builtin_memcpy(x, word, sizeof x);
}

/* A box of c to where a warp brings its sums into d's order; nothing, if there is none left, but a group of copies all the same. */
template <int BYTES, class Pipe> DEVICE void matmul_fetch_c(const matmul_sm90_params &p, const matmul_task &task, int group, char *memory, int box) {
    const int lane = thread_index() % 32, warp = group * 4 + thread_index() % WARPGROUP / 32, row = task.row + warp * 16 + lane / 8;
    const int64_t column = task.column + box * (128 / BYTES) + lane % 8 * (16 / BYTES);
    const char *const from = (const char *)p.to.c + (task.batch * p.to.c_batch + row * p.to.c_row + column) * BYTES;
    char *const to = memory + (warp * 2 + box % 2) * 16 * 128;
    if (box < Pipe::N * BYTES / 128)
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const bool in = row + q * 4 < p.m && column < p.n;
            copy_bytes<16>(to + matmul_row_at(q * 4 + lane / 8, lane % 8), in ? from + q * 4 * p.to.c_row * BYTES : nullptr, in ? 16 : 0);
        }
    copy_commit();
}
/* The first two, while the tile is multiplied. */
template <class Pipe> DEVICE void matmul_fetch_c_first(const matmul_sm90_params &p, const matmul_task &task, int group, char *memory) {
    if constexpr (!Pipe::FLOAT8)
        for (int box = 0; p.whole && p.to.c && box < 2; box++)
            if (Pipe::HALVES && p.to.type != MATMUL_F32)
                matmul_fetch_c<2, Pipe>(p, task, group, memory, box);
            else
                matmul_fetch_c<4, Pipe>(p, task, group, memory, box);
}

/* The same with scales of columns, c, the bias and the activation, box by box: unrolled, activations would be most of the code. c comes into d's place in shared
 * memory as it lies, two boxes ahead, and out of there as threads hold sums; a line of the bias lies behind all turns. */
template <class E, class Pipe>
DEVICE void matmul_write_more(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, char *memory) {
    using Held = matmul_held<E>;
    using Sum = typename Pipe::sum;
    enum { WIDTH = 128 / Held::BYTES, PIECE = 16 / Held::BYTES, TURN = 16 * 128, BOXES = Pipe::N / WIDTH, COUNT = WIDTH / 2, OWN = WIDTH / 32 };
    const int thread = thread_index() % WARPGROUP, lane = thread % 32, warp = group * 4 + thread / 32, first = task.row + warp * 16, row = first + lane / 8;
    const uint32_t own = shared_address(memory) + warp * 2 * TURN, line = shared_address(memory) + 8 * 2 * TURN + warp * WIDTH * 4;
    const int64_t column = task.column + lane % 8 * PIECE, pitch = p.to.d_row * Held::BYTES;
    char *const to = (char *)p.to.d + (task.batch * p.to.d_batch + column) * Held::BYTES + row * pitch;
    const int rows = (int)p.m - row;
    float factor[2];
#pragma unroll
    for (int i = 0; i < 2; i++) factor[i] = p.to.alpha * matmul_scale_at(p.to.rows, task.batch, first + lane / 4 + i * 8, p.m);
    uint32_t bias[OWN] = {};
    const bool narrow = !Pipe::FLOATS ? false : p.to.bias_type != MATMUL_F32; /* the bias has elements of 16 bits */
    const auto fetch = [&](int box) {
        if (p.to.bias)
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const int64_t at = task.column + box * WIDTH + i * 32 + lane;
                if (at < p.n) bias[i] = narrow ? ((const uint16_t *)p.to.bias)[at] : ((const uint32_t *)p.to.bias)[at];
            }
    };
    fetch(0);
#pragma unroll 1
    for (int box = 0; box < BOXES; box++) {
        const uint32_t turn = own + box % 2 * TURN;
        const int right = lane % 4 * 2; /* the first of the thread's columns */
        Sum x[COUNT / 8][8];
#pragma unroll
        for (int b = 0; b < BOXES; b++)
            if (b == box)
#pragma unroll
                for (int i = 0; i < COUNT; i++) x[i / 8][i % 8] = sum[b * COUNT + i];
        if (p.to.columns.data) {
            float scale[OWN];
#pragma unroll
            for (int i = 0; i < OWN; i++) scale[i] = matmul_scale_at(p.to.columns, task.batch, task.column + box * WIDTH + i * 32 + lane, p.n);
            matmul_line_put(line, scale);
            sync_warp();
#pragma unroll
            for (int i = 0; i < COUNT; i += 4) {
                float own_scale[2];
                matmul_line_take(own_scale, line, right + i / 4 * 8);
#pragma unroll
                for (int e = 0; e < 4; e++) x[i / 8][i % 8 + e] = matmul_times(factor[e / 2] * own_scale[e % 2], x[i / 8][i % 8 + e]);
            }
            sync_warp();
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; i++) x[i / 8][i % 8] = matmul_times(factor[i / 2 % 2], x[i / 8][i % 8]);
        }
        if (p.to.c) copy_wait<1>();
        if (p.to.bias) {
            if (narrow)
#pragma unroll
                for (int i = 0; i < OWN; i++)
                    bias[i] = bits_of_float(p.to.bias_type == MATMUL_BF16 ? bf16::get((uint16_t)bias[i]) : f16::get((uint16_t)bias[i]));
            matmul_line_put(line, bias);
        }
        sync_warp();
        if (p.to.c)
#pragma unroll
            for (int i = 0; i < COUNT / 8; i++) {
                Sum addend[8];
                Held::take(addend, turn, i * 16);
#pragma unroll
                for (int e = 0; e < 8; e++) x[i][e] = matmul_plus(p.to.beta, addend[e], x[i][e]);
            }
        if (p.to.bias)
#pragma unroll
            for (int i = 0; i < COUNT; i += 4) {
                Sum addend[2];
                matmul_line_take(addend, line, right + i / 4 * 8);
#pragma unroll
                for (int e = 0; e < 4; e++) x[i / 8][i % 8 + e] = matmul_plus(1, addend[e % 2], x[i / 8][i % 8 + e]);
            }
        if (p.to.activation) matmul_activate(x, p.to.activation);
        sync_warp();
#pragma unroll
        for (int i = 0; i < COUNT / 8; i++) Held::put(turn, i * 16, x[i]);
        if (box + 1 < BOXES) fetch(box + 1);
        sync_warp();
        packed<uint32_t, 4> piece[4];
#pragma unroll
        for (int q = 0; q < 4; q++) piece[q] = shared_load_piece(turn + matmul_row_at(q * 4 + lane / 8, lane % 8));
#pragma unroll
        for (int q = 0; q < 4; q++) store_piece_if(q * 4 < rows && column + box * WIDTH < p.n, to + q * 4 * pitch + box * 128, piece[q]);
        sync_warp(); /* the turn is free */
        if (p.to.c) matmul_fetch_c<Held::BYTES, Pipe>(p, task, group, memory, box + 2);
    }
}

template <class E, class Pipe>
DEVICE void matmul_write_as(const matmul_sm90_params &p, typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, char *memory) {
    if constexpr (!Pipe::FLOAT8)
        if (!p.plain) return matmul_write_more<E, Pipe>(p, sum, task, group, memory);
    if constexpr (Pipe::FLOAT8)
        if (p.to.columns.data) return matmul_write_rows<E, true, Pipe>(p, sum, task, group, shared_address(memory));
    matmul_write_rows<E, false, Pipe>(p, sum, task, group, shared_address(memory));
}

/* The sums of a warpgroup to shared memory, `pitch` from row to row of d. */
template <int FIRST, int COUNT, int SUMS, class Sum> DEVICE void matmul_put(Sum *to, int pitch, bool swapped, int row, const Sum (&sum)[SUMS]) {
    const int column = thread_index() % 4 * 2;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int at = FIRST + i, x = row + (i / 2 % 2) * 8, y = column + i / 4 * 8 + i % 2;
        to[swapped ? y * pitch + x : x * pitch + y] = sum[at];
    }
}

/* Any end, in chunks of columns that go through shared memory. */
template <class Pipe, int CHUNK> struct matmul_chunks {
    template <class Sum> static DEVICE void put(int chunk, Sum *to, int row, const Sum (&sum)[Pipe::SUMS]) {
        enum { COUNT = MATMUL_SM90_CHUNK / 2 };
        if (chunk == CHUNK) matmul_put<CHUNK * COUNT, COUNT>(to, MATMUL_SM90_CHUNK + 8, false, row, sum);
        if constexpr ((CHUNK + 1) * COUNT < Pipe::SUMS) matmul_chunks<Pipe, CHUNK + 1>::put(chunk, to, row, sum);
    }
};
template <class Pipe>
DEVICE void matmul_write(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, char *memory) {
    using Sum = typename Pipe::sum;
    enum { WIDTH = MATMUL_SM90_CHUNK, PITCH = WIDTH + 8 };
    Sum *const chunk = (Sum *)memory + group * 64 * PITCH;
    const int thread = thread_index() % WARPGROUP, row = thread / 32 * 16 + thread % 32 / 4, down = thread / (WIDTH / 4), right = thread % (WIDTH / 4) * 4;
#pragma unroll 1
    for (int c = 0; c < Pipe::N / WIDTH; c++) {
        matmul_chunks<Pipe, 0>::put(c, chunk, row, sum);
        sync_some(1 + group, WARPGROUP);
        Sum four[4][4];
#pragma unroll
        for (int q = 0; q < 4; q++) matmul_take(four[q], chunk + (down + q * 16) * PITCH + right);
        matmul_finish(four, p.to, { task.batch, task.row + group * 64 + down, 16, task.column + c * WIDTH + right, p.m, p.n });
        sync_some(1 + group, WARPGROUP);
    }
}

template <class Pipe>
DEVICE void matmul_end(const matmul_sm90_params &p, typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, char *memory) {
    if (!p.whole || (Pipe::FLOAT8 && !p.plain)) return matmul_write<Pipe>(p, sum, task, group, memory); /* float8 has no registers left for other fast ends */
    if constexpr (Pipe::HALVES) {
        if (p.to.type == MATMUL_BF16) return matmul_write_as<bf16, Pipe>(p, sum, task, group, memory);
        if (p.to.type == MATMUL_F16) return matmul_write_as<f16, Pipe>(p, sum, task, group, memory);
    }
    matmul_write_as<f32, Pipe>(p, sum, task, group, memory);
}

/* Q times four sums at the same places in all blocks, added in the order of ranks. */
template <int PARTS, int Q, class Sum> DEVICE void matmul_add(Sum (&sum)[Q][4], uint32_t at, uint32_t step) {
    packed<uint32_t, 4> x[Q][PARTS];
#pragma unroll
    for (int i = 0; i < Q * PARTS; i++)
        x[i / PARTS][i % PARTS] = PARTS == 1 ? shared_load_piece(at + i * step) : cluster_load(cluster_address(at + i / PARTS * step, i % PARTS));
#pragma unroll
    for (int i = 0; i < Q * 4; i++) {
        Sum s = 0;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            Sum next;
            __builtin_memcpy(&next, &x[i / 4][part].v[i % 4], sizeof next);
            s = part > 0 ? matmul_plus(1, next, s) : next;
        }
        sum[i / 4][i % 4] = s;
    }
}

/* The blocks' sums of one tile, all of which are in shared memory: this block's part of the rows of d, each thread always the same four columns. What
 * matmul_finish asks for each call is asked once where rows are whole. */
template <class Sum, class Pipe> DEVICE void matmul_meet(const matmul_sm90_params &p, const matmul_task &task, uint32_t memory, int pitch, int rank) {
    enum { Q = Pipe::N >= 128 ? 4 : Pipe::N >= 64 ? 2 : 1 };
    const int parts = cluster_size(), rows = p.swapped ? (int)Pipe::N : (int)MATMUL_SM90_ROWS,
              units = p.swapped ? MATMUL_SM90_ROWS / 4 : Pipe::N / 4; /* of a row */
    const int thread = thread_index() - WARPGROUP, right = thread % units * 4, down = thread / units, step = 2 * WARPGROUP / units;
    const int64_t row = p.swapped ? task.column : task.row, column = (p.swapped ? task.row : task.column) + right;
    const bool inside = column < p.n, scaled = p.to.columns.data || p.to.rows.data;
    Sum bias[4] = {};
    float scale[4] = { 1, 1, 1, 1 };
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (p.whole && p.to.bias && inside) bias[i] = matmul_load<Sum>(p.to.bias_type, p.to.bias, column + i);
        if (scaled) scale[i] = matmul_scale_at(p.to.columns, task.batch, column + i, p.n);
    }
#pragma unroll 1
    for (int i = rank * Q * step + down; i < rows; i += parts * Q * step) {
        const uint32_t at = memory + (uint32_t)(i * pitch + right) * 4, next = (uint32_t)(step * pitch) * 4;
        Sum x[Q][4], c[Q][4] = {};
        if (parts == 1) matmul_add<1>(x, at, next);
        if (parts == 2) matmul_add<2>(x, at, next);
        if (parts == 4) matmul_add<4>(x, at, next);
        if (parts == 8) matmul_add<8>(x, at, next);
        if (!p.whole) {
            matmul_finish(x, p.to, { task.batch, row + i, step, column, p.m, p.n });
            continue;
        }
        const int64_t to = task.batch * p.to.d_batch + (row + i) * p.to.d_row + column, from = task.batch * p.to.c_batch + (row + i) * p.to.c_row + column;
        const int count = inside ? (int)(p.m - row - i + step - 1) / step : 0; /* of the rows that exist */
        if (p.to.c)
#pragma unroll
            for (int q = 0; q < Q; q++)
                if (q < count) matmul_load_four(c[q], p.to.type, p.to.c, from + q * step * p.to.c_row);
#pragma unroll
        for (int q = 0; q < Q; q++) {
            float factor = p.to.alpha;
            if (scaled) factor *= matmul_scale_at(p.to.rows, task.batch, row + i + q * step, p.m);
#pragma unroll
            for (int e = 0; e < 4; e++) x[q][e] = matmul_times(scaled ? factor * scale[e] : factor, x[q][e]);
        }
        if (p.to.c)
#pragma unroll
            for (int e = 0; e < Q * 4; e++) x[e / 4][e % 4] = matmul_plus(p.to.beta, c[e / 4][e % 4], x[e / 4][e % 4]);
        if (p.to.bias)
#pragma unroll
            for (int e = 0; e < Q * 4; e++) x[e / 4][e % 4] = matmul_plus(1, bias[e % 4], x[e / 4][e % 4]);
        if (p.to.activation) matmul_activate(x, p.to.activation);
#pragma unroll
        for (int q = 0; q < Q; q++)
            if (q < count) matmul_store_four(x[q], p.to.type, p.to.d, to + q * step * p.to.d_row);
    }
}

/* ------------------------------------------------------------------------------------------------------------------- kernels */

template <class T, int N, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_pairs(const matmul_sm90_params &p) {
    enum { BLOCKS = 2 };
    using Pipe = matmul_pipe<T, N, X_ACROSS, Y_ACROSS, BLOCKS>;
    using Bits = typename matmul_element<T>::bits;
    char *const memory = launch_memory();
    const int group = thread_index() / WARPGROUP - 1, rank = cluster_rank(), step = (int)block_count() / BLOCKS;
    Pipe pipe = { shared_address(memory) };
    launch_next();
    if (thread_index() == 0) {
        tensor_map_fetch(&p.x);
        tensor_map_fetch(&p.y);
        pipe.make_barriers();
    }
    sync_warp();
    cluster_meet();
    launch_wait();
    if (group < 0) {
        registers_fewer<40>();
        if (p.by_hand) {
            for (int tile = (int)block_index() / BLOCKS; tile < p.tiles; tile += step)
                matmul_produce_by_hand<Pipe, Bits, X_ACROSS, Y_ACROSS>(p, pipe, matmul_task_of<Pipe>(p, tile, rank), rank);
            pipe.drain();
        } else if (thread_index() < 32 && elected()) {
            for (int tile = (int)block_index() / BLOCKS; tile < p.tiles; tile += step)
                matmul_produce<Pipe, X_ACROSS, Y_ACROSS>(p, pipe, matmul_task_of<Pipe>(p, tile, rank), rank);
            pipe.drain();
        }
    } else {
        registers_more<232>();
        for (int tile = (int)block_index() / BLOCKS; tile < p.tiles; tile += step) {
            typename Pipe::sum sum[Pipe::SUMS];
            const matmul_task task = matmul_task_of<Pipe>(p, tile, rank);
            matmul_fetch_c_first<Pipe>(p, task, group, memory);
            matmul_multiply<Pipe, X_ACROSS, Y_ACROSS>(sum, pipe, task, group, rank);
            matmul_end<Pipe>(p, sum, task, group, memory);
        }
    }
    sync_warp();
    cluster_meet(); /* a block stays while others may still copy to it */
}

template <class T, int N, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_split(const matmul_sm90_params &p) {
    using Pipe = matmul_pipe<T, N, X_ACROSS, Y_ACROSS, 1>;
    using Sum = typename Pipe::sum;
    using Bits = typename matmul_element<T>::bits;
    char *const memory = launch_memory();
    const int group = thread_index() / WARPGROUP - 1, rank = cluster_rank(), pitch = p.swapped ? MATMUL_SM90_ROWS + 4 : N + 8;
    const matmul_task task = matmul_task_of<Pipe>(p, (int)block_index() / cluster_size(), rank);
    Pipe pipe = { shared_address(memory) };
    launch_next();
    if (thread_index() == 0) {
        tensor_map_fetch(&p.x);
        tensor_map_fetch(&p.y);
        pipe.make_barriers();
    }
    sync_block();
    launch_wait();
    const bool alone = cluster_size() == 1;
    if (group < 0) {
        registers_fewer<40>();
        if (p.by_hand)
            matmul_produce_by_hand<Pipe, Bits, X_ACROSS, Y_ACROSS>(p, pipe, task, rank);
        else if (thread_index() < 32 && elected())
            matmul_produce<Pipe, X_ACROSS, Y_ACROSS>(p, pipe, task, rank);
        sync_warp();
        if (!alone) cluster_sync();
    } else {
        registers_more<232>();
        Sum sum[Pipe::SUMS] = {};
        const int thread = thread_index() % WARPGROUP, row = group * 64 + thread / 32 * 16 + thread % 32 / 4;
        matmul_multiply<Pipe, X_ACROSS, Y_ACROSS>(sum, pipe, task, group, rank);
        sync_some(1, 2 * WARPGROUP); /* the stages are free now */
        matmul_put<0, Pipe::SUMS>((Sum *)memory, pitch, p.swapped, row, sum);
        if (alone)
            sync_some(1, 2 * WARPGROUP);
        else
            cluster_sync();
        matmul_meet<Sum, Pipe>(p, task, shared_address(memory), pitch, rank);
    }
    sync_warp();
    if (!alone) cluster_meet(); /* others may still read its sums */
}

#endif
