/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of tiles whose blocks are persistent: from the sums of a warpgroup to d. */
#ifndef TRINE_CUDA_MATMUL_SM90_ENDS_INL_H
#define TRINE_CUDA_MATMUL_SM90_ENDS_INL_H

#include "matmul_sm90_pipe.inl.h"

/* How a warp puts 16 rows by 16 columns of its sums, 8 of each thread, into rows of 128 bytes: pieces of 16 bytes
 * change places by row, so that neither this nor reading along rows meets in a bank. */
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
            for (int i = 0; i < 8; i += 2)
                shared_store((at ^ (column + i / 4 * 8) * BYTES) + i / 2 % 2 * 1024, word[i], word[i + 1]);
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
            for (int i = 0; i < 8; i += 2)
                shared_load((at ^ (column + i / 4 * 8) * BYTES) + i / 2 % 2 * 1024, word[i], word[i + 1]);
            __builtin_memcpy(x, word, sizeof x);
        }
    }
};

/* What multiplies the sums of a thread's rows, but for the scales of columns. */
DEVICE void matmul_row_factors(float (&factor)[2], const matmul_sm90_params &p, const matmul_task &task, int first) {
#pragma unroll
    for (int i = 0; i < 2; i++)
        factor[i] = p.to.alpha * matmul_scale_at(p.to.rows, task.batch, first + thread_index() % 32 / 4 + i * 8, p.m);
}

/* A box from where a warp brought it into d's order: rows 4 apart of each thread, if in(row). */
template <class In> DEVICE void matmul_store_box(char *to, int64_t pitch, uint32_t turn, const In &in) {
    const int lane = thread_index() % 32;
    packed<uint32_t, 4> piece[4];
#pragma unroll
    for (int q = 0; q < 4; q++) piece[q] = shared_load_piece(turn + matmul_row_at(q * 4 + lane / 8, lane % 8));
#pragma unroll
    for (int q = 0; q < 4; q++) store_piece_if(in(q * 4), to + q * 4 * pitch, piece[q]);
}

/* alpha scales s to d, whose rows are whole pieces of 16 bytes: each warp brings its 16 rows of 128 bytes at a time to
 * where threads have them in d's order, two such in turns, and waits for no other.
 * SCALED: columns have scales of their own. */
template <class E, bool SCALED, class Pipe>
DEVICE void matmul_write_rows(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS],
                              const matmul_task &task, int group, uint32_t memory) {
    using Held = matmul_held<E>;
    enum { WIDTH = 128 / Held::BYTES, PIECE = 16 / Held::BYTES, TURN = 16 * 128 };
    const int thread = thread_index() % WARPGROUP, lane = thread % 32, first = task.row + group * 64 + thread / 32 * 16;
    const uint32_t own = memory + (group * 4 + thread / 32) * 2 * TURN;
    const int64_t column = task.column + lane % 8 * PIECE, pitch = p.to.d_row * Held::BYTES;
    char *const to = (char *)p.to.d + (task.batch * p.to.d_batch + column) * Held::BYTES + (first + lane / 8) * pitch;
    const int rows = (int)p.m - first - lane / 8;
    const int64_t end = task.column + p.columns < p.n ? task.column + p.columns : p.n;
    float factor[2];
    matmul_row_factors(factor, p, task, first);
#pragma unroll
    for (int box = 0; box * WIDTH < Pipe::N; box++) {
        const uint32_t turn = own + box % 2 * TURN;
        if (box * WIDTH >= p.columns) break;
#pragma unroll
        for (int i = 0; i < WIDTH; i += 16) {
            if (box * WIDTH + i >= p.columns) break;
            typename Pipe::sum x[8];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const int right = box * WIDTH + i + e / 4 * 8 + e % 2;
                const float scale =
                    SCALED ? matmul_scale_at(p.to.columns, task.batch, task.column + right + lane % 4 * 2, p.n) : 1;
                x[e] = matmul_times(factor[e / 2 % 2] * scale, sum[(box * WIDTH + i) / 2 + e]);
            }
            Held::put(turn, i, x);
        }
        sync_warp();
        matmul_store_box(to + box * 128, pitch, turn, [&](int q) { return q < rows && column + box * WIDTH < end; });
    }
    sync_warp(); /* the next tile begins with the first turn */
}

/* The same of a tile whose rows are d's columns, in 16 bits: the warps of a warpgroup bring 64 rows of d, of 64
 * columns, into its order together. */
template <class E, bool SCALED, class Pipe>
DEVICE void matmul_write_turned(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS],
                                const matmul_task &task, int group, uint32_t memory) {
    enum { SIDE = 64, TURN = SIDE * 128 };
    const int thread = thread_index() % WARPGROUP, lane = thread % 32, warp = thread / 32,
              first = task.row + group * SIDE, column = first + lane % 8 * 8;
    const uint32_t own = memory + group * 2 * TURN;
    const int64_t pitch = p.to.d_row * 2;
    char *const to =
        (char *)p.to.d + (task.batch * p.to.d_batch + column) * 2 + (task.column + warp * 16 + lane / 8) * pitch;
    const int end = task.column + p.columns < p.m ? task.column + p.columns : (int)p.m,
              rows = column < p.n ? end - task.column - warp * 16 - lane / 8 : 0;
    float factor[2];
#pragma unroll
    for (int i = 0; i < 2; i++)
        factor[i] = SCALED ? matmul_scale_at(p.to.columns, task.batch, first + warp * 16 + lane / 4 + i * 8, p.n) : 1;
#pragma unroll
    for (int box = 0; box * SIDE < Pipe::N; box++) {
        const uint32_t turn = own + box % 2 * TURN;
        if (box * SIDE >= p.columns) break;
#pragma unroll
        for (int i = 0; i < SIDE; i += 16) {
            if (box * SIDE + i >= p.columns) break;
            float x[8];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const int right = box * SIDE + i + e / 4 * 8 + e % 2;
                const float scale =
                    p.to.alpha *
                    (SCALED ? matmul_scale_at(p.to.rows, task.batch, task.column + right + lane % 4 * 2, p.m) : 1);
                x[e] = scale * factor[e / 2 % 2] * sum[(box * SIDE + i) / 2 + e];
            }
            store_matrices<true>(turn + matmul_row_at(i + lane / 16 * 8 + lane % 8, warp * 2 + lane / 8 % 2),
                                 E::pair(x[0], x[1]), E::pair(x[2], x[3]), E::pair(x[4], x[5]), E::pair(x[6], x[7]));
        }
        sync_some(1 + group, WARPGROUP);
        matmul_store_box(to + box * SIDE * pitch, pitch, turn + warp * 16 * 128,
                         [&](int q) { return box * SIDE + q < rows; });
    }
    sync_some(1 + group, WARPGROUP); /* the next tile begins with the first turn */
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

/* A box of c to where a warp brings its sums into d's order; nothing, if there is none left, but a group of copies all
 * the same. */
template <int BYTES, class Pipe>
DEVICE void matmul_fetch_c(const matmul_sm90_params &p, const matmul_task &task, int group, char *memory, int box) {
    const int lane = thread_index() % 32, warp = group * 4 + thread_index() % WARPGROUP / 32,
              row = task.row + warp * 16 + lane / 8;
    const int64_t column = task.column + box * (128 / BYTES) + lane % 8 * (16 / BYTES);
    const char *const from = (const char *)p.to.c + (task.batch * p.to.c_batch + row * p.to.c_row + column) * BYTES;
    char *const to = memory + (warp * 2 + box % 2) * 16 * 128;
    if (box * 128 < p.columns * BYTES)
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const bool in = row + q * 4 < p.m && column < p.n;
            copy_bytes<16>(to + matmul_row_at(q * 4 + lane / 8, lane % 8),
                           in ? from + q * 4 * p.to.c_row * BYTES : nullptr, in ? 16 : 0);
        }
    copy_commit();
}
/* The first two, while the tile is multiplied. */
template <class Pipe>
DEVICE void matmul_fetch_c_first(const matmul_sm90_params &p, const matmul_task &task, int group, char *memory) {
    for (int box = 0; p.whole && !p.swapped && p.to.c && box < 2; box++)
        if (Pipe::HALVES && p.to.type != MATMUL_F32)
            matmul_fetch_c<2, Pipe>(p, task, group, memory, box);
        else
            matmul_fetch_c<4, Pipe>(p, task, group, memory, box);
}

/* The same with c, the bias, the activation, and scales of columns, as many of a box's columns at a time as registers
 * are left for, and not unrolled: activations would be most of the code. c comes into d's place in shared memory as it
 * lies, two boxes ahead, and out of there as threads hold sums; a line of the bias, or of scales, lies behind all
 * turns. */
template <class E, class Pipe>
DEVICE void matmul_write_more(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS],
                              const matmul_task &task, int group, char *memory) {
    using Held = matmul_held<E>;
    using Sum = typename Pipe::sum;
    enum {
        WIDTH = 128 / Held::BYTES,
        PIECE = 16 / Held::BYTES,
        TURN = 16 * 128,
        COLUMNS = Pipe::FLOAT8 ? 32 : WIDTH,
        COUNT = COLUMNS / 2,
        OWN = COLUMNS / 32
    };
    const int thread = thread_index() % WARPGROUP, lane = thread % 32, warp = group * 4 + thread / 32,
              first = task.row + warp * 16, row = first + lane / 8;
    const uint32_t own = shared_address(memory) + warp * 2 * TURN,
                   line = shared_address(memory) + 8 * 2 * TURN + warp * 256;
    const int right = lane % 4 * 2;                                   /* the first of the thread's columns */
    const bool narrow = Pipe::FLOATS && p.to.bias_type != MATMUL_F32; /* the bias has elements of 16 bits */
    float factor[2];
    matmul_row_factors(factor, p, task, first);
    uint32_t bias[OWN] = {};
    const auto fetch = [&](int at) {
        if (p.to.bias)
#pragma unroll
            for (int i = 0; i < OWN; i++, at += 32)
                if (at < p.n) bias[i] = narrow ? ((const uint16_t *)p.to.bias)[at] : ((const uint32_t *)p.to.bias)[at];
    };
    fetch(task.column + lane);
#pragma unroll 1
    for (int done = 0; done < p.columns; done += COLUMNS) {
        const int box = done / WIDTH, in = done % WIDTH; /* the first column's place */
        const uint32_t turn = own + box % 2 * TURN;
        Sum x[COUNT / 8][8];
#pragma unroll
        for (int b = 0; b < Pipe::N; b += COLUMNS)
            if (b == done)
#pragma unroll
                for (int i = 0; i < COUNT; i++) x[i / 8][i % 8] = b / 2 + i < Pipe::SUMS ? sum[b / 2 + i] : Sum(0);
        if (p.to.columns.data) {
            float scale[OWN];
#pragma unroll
            for (int i = 0; i < OWN; i++)
                scale[i] = matmul_scale_at(p.to.columns, task.batch, task.column + done + i * 32 + lane, p.n);
            matmul_line_put(line, scale);
            sync_warp();
#pragma unroll
            for (int i = 0; i < COUNT; i += 4) {
                float own_scale[2];
                matmul_line_take(own_scale, line, right + i * 2);
#pragma unroll
                for (int e = 0; e < 4; e++)
                    x[i / 8][i % 8 + e] = matmul_times(factor[e / 2] * own_scale[e % 2], x[i / 8][i % 8 + e]);
            }
            sync_warp();
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; i++) x[i / 8][i % 8] = matmul_times(factor[i / 2 % 2], x[i / 8][i % 8]);
        }
        if (p.to.c && in == 0) copy_wait<1>();
        if (p.to.bias) {
            if (narrow)
#pragma unroll
                for (int i = 0; i < OWN; i++)
                    bias[i] = bits_of_float(p.to.bias_type == MATMUL_BF16 ? bf16::get((uint16_t)bias[i])
                                                                          : f16::get((uint16_t)bias[i]));
            matmul_line_put(line, bias);
        }
        sync_warp();
        if (p.to.c)
#pragma unroll
            for (int i = 0; i < COUNT / 8; i++) {
                Sum addend[8];
                Held::take(addend, turn, in + i * 16);
#pragma unroll
                for (int e = 0; e < 8; e++) x[i][e] = matmul_plus(p.to.beta, addend[e], x[i][e]);
            }
        if (p.to.bias)
#pragma unroll
            for (int i = 0; i < COUNT; i += 4) {
                Sum addend[2];
                matmul_line_take(addend, line, right + i * 2);
#pragma unroll
                for (int e = 0; e < 4; e++) x[i / 8][i % 8 + e] = matmul_plus(1, addend[e % 2], x[i / 8][i % 8 + e]);
            }
        if (p.to.activation) matmul_activate(x, p.to.activation);
        sync_warp();
#pragma unroll
        for (int i = 0; i < COUNT / 8; i++) Held::put(turn, in + i * 16, x[i]);
        fetch(task.column + done + COLUMNS + lane);
        if (in + COLUMNS < WIDTH && done + COLUMNS < p.columns) continue;
        sync_warp();
        const int64_t column = task.column + box * WIDTH + lane % 8 * PIECE, pitch = p.to.d_row * Held::BYTES;
        const int end = task.column + p.columns < p.n ? task.column + p.columns : (int)p.n;
        char *const to = (char *)p.to.d + (task.batch * p.to.d_batch + column) * Held::BYTES + row * pitch;
        matmul_store_box(to, pitch, turn, [&](int q) { return row + q < p.m && column < end; });
        sync_warp(); /* the turn is free */
        if (p.to.c) matmul_fetch_c<Held::BYTES, Pipe>(p, task, group, memory, box + 2);
    }
}

/* Sums of a warpgroup to shared memory, `down` from row to row and `right` from column to column. */
template <int FIRST, int COUNT, int SUMS, class Sum>
DEVICE void matmul_put(Sum *to, int down, int right, int row, const Sum (&sum)[SUMS]) {
    const int column = thread_index() % 4 * 2;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        to[(row + i / 2 % 2 * 8) * down + (column + i / 4 * 8 + i % 2) * right] = sum[FIRST + i];
}

/* Any end, in chunks of columns that go through shared memory; of a tile whose rows are d's columns, too. */
template <class Pipe, int CHUNK> struct matmul_chunks {
    template <class Sum>
    static DEVICE void put(int chunk, Sum *to, int down, int right, int row, const Sum (&sum)[Pipe::SUMS]) {
        enum { COUNT = MATMUL_SM90_CHUNK / 2 };
        if (chunk == CHUNK) matmul_put<CHUNK * COUNT, COUNT>(to, down, right, row, sum);
        if constexpr ((CHUNK + 1) * COUNT < Pipe::SUMS)
            matmul_chunks<Pipe, CHUNK + 1>::put(chunk, to, down, right, row, sum);
    }
};
template <class Pipe>
DEVICE void matmul_write(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS],
                         const matmul_task &task, int group, char *memory) {
    using Sum = typename Pipe::sum;
    enum { WIDTH = MATMUL_SM90_CHUNK, PITCH = WIDTH + 8, TURNED = 64 + 4, MOST = 64 * PITCH };
    Sum *const chunk = (Sum *)memory + group * MOST;
    const int thread = thread_index() % WARPGROUP, row = thread / 32 * 16 + thread % 32 / 4,
              units = p.swapped ? 64 / 4 : WIDTH / 4, down = thread / units, right = thread % units * 4,
              step = WARPGROUP / units, pitch = p.swapped ? TURNED : PITCH, x = task.row + group * 64;
    const int64_t lanes = p.swapped ? p.m : p.n,
                  end = task.column + p.columns < lanes ? task.column + p.columns : lanes;
#pragma unroll 1
    for (int c = 0; c * WIDTH < p.columns; c++) {
        const int y = task.column + c * WIDTH;
        matmul_chunks<Pipe, 0>::put(c, chunk, p.swapped ? 1 : pitch, p.swapped ? pitch : 1, row, sum);
        sync_some(1 + group, WARPGROUP);
        Sum four[4][4];
#pragma unroll
        for (int q = 0; q < 4; q++) matmul_take(four[q], chunk + (down + q * step) * pitch + right);
        matmul_finish(four, p.to,
                      { task.batch, (p.swapped ? y : x) + down, step, (p.swapped ? x : y) + right,
                        p.swapped ? end : p.m, p.swapped ? p.n : end });
        sync_some(1 + group, WARPGROUP);
    }
}

template <class E, class Pipe>
DEVICE void matmul_write_as(const matmul_sm90_params &p, typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task,
                            int group, char *memory) {
    if constexpr (sizeof(typename E::bits) == 2)
        if (p.swapped && p.plain) {
            if (Pipe::FLOAT8 && (p.to.columns.data || p.to.rows.data))
                return matmul_write_turned<E, Pipe::FLOAT8, Pipe>(p, sum, task, group, shared_address(memory));
            if (!p.to.rows.data)
                return matmul_write_turned<E, false, Pipe>(p, sum, task, group, shared_address(memory));
        }
    if (p.swapped) return matmul_write<Pipe>(p, sum, task, group, memory);
    if (!p.plain) return matmul_write_more<E, Pipe>(p, sum, task, group, memory);
    if constexpr (Pipe::FLOAT8)
        if (p.to.columns.data) return matmul_write_rows<E, true, Pipe>(p, sum, task, group, shared_address(memory));
    matmul_write_rows<E, false, Pipe>(p, sum, task, group, shared_address(memory));
}

template <class Pipe>
DEVICE void matmul_end(const matmul_sm90_params &p, typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task,
                       int group, char *memory) {
    if (!p.whole) return matmul_write<Pipe>(p, sum, task, group, memory);
    if constexpr (matmul_gives<typename Pipe::type, bf16>::YES)
        if (p.to.type == MATMUL_BF16) return matmul_write_as<bf16, Pipe>(p, sum, task, group, memory);
    if constexpr (matmul_gives<typename Pipe::type, f16>::YES)
        if (p.to.type == MATMUL_F16) return matmul_write_as<f16, Pipe>(p, sum, task, group, memory);
    matmul_write_as<f32, Pipe>(p, sum, task, group, memory);
}

#endif
