/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bf16 and f16, and their gradients by x, by the warpgroups' products of sm_90a: tiles of 128 or 192
 * positions by 64 to 256 lanes, in pairs of blocks as rows_sm90.inl.h has them. Patches come tap by tap, 64 channels at
 * a time, in boxes that the copy engine gathers itself (im2col mode): positions one after the other, whatever rows and
 * images they are in, with zeros beyond edges. Weights come in boxes of a tap, half of one by each block for both.
 *
 * NOTES. Floor: 2 n p q k r s cg flops over 990 TFLOP/s; patches once for each tile of lanes, weights once for each
 * pair of tiles, from L2. */
#ifndef TRINE_CUDA_CONV_SM90_INL_H
#define TRINE_CUDA_CONV_SM90_INL_H

#include "backends/cuda/matmul/rows_sm90.inl.h"
#include "backends/simt/conv/conv.inl.h"
#include "conv_sm90.h"

/* What a block does at a time: positions from `row` on, lanes of a group from `column` on, steps [first, last). */
struct conv_sm90_unit {
    int slice, group, row, column, first, last;

    DEVICE conv_sm90_unit(const conv_sm90_params &s, int number, int rank, int rows, int columns) {
        const int area = s.pairs * s.right, outer = number / area, groups = (int)s.of.groups;
        const rows_place at = rows_place_of(number - outer * area, s.pairs, s.right, columns);
        slice = outer / groups, group = outer - slice * groups;
        row = (at.pair * ROWS_SM90_PAIR + rank) * rows, column = at.column;
        first = slice * s.each < s.steps ? slice * s.each : s.steps;
        last = s.steps - first < s.each ? s.steps : first + s.each;
    }
};

struct conv_sm90_position {
    int n, h, w;

    DEVICE conv_sm90_position(const conv_sm90_params &s, int number) {
        const int line = number / s.width.positions;
        n = line / s.height.positions;
        h = line - n * s.height.positions, w = number - line * s.width.positions;
    }
};

/* A step's tap and channels. */
struct conv_sm90_step {
    int h, w, chunk;

    DEVICE conv_sm90_step(const conv_sm90_params &s, int number) {
        const int tap = number / s.chunks, taps = s.width.taps > 0 ? s.width.taps : 1;
        chunk = number - tap * s.chunks;
        h = tap / taps, w = tap - h * taps;
    }
    DEVICE void advance(const conv_sm90_params &s) {
        if (++chunk < s.chunks) return;
        chunk = 0;
        if (++w < s.width.taps) return;
        w = 0, h++;
    }
};

/* What a step reads: its channels, of x and of weights, how far its tap is, and the tap's number. Lanes of weights are
 * of all groups, or their channels are: of the gradient. */
template <bool TRANSPOSED> struct conv_sm90_reads {
    int lane, channel, along, far_h, far_w, tap;

    DEVICE conv_sm90_reads(const conv_sm90_params &s, const conv_sm90_unit &unit, const conv_sm90_step &step) {
        const int first = unit.group * (int)s.of.channels, in = step.chunk * CONV_SM90_STEP;
        lane = unit.column + (TRANSPOSED ? 0 : unit.group * (int)s.of.lanes);
        channel = first + in, along = TRANSPOSED ? channel : in;
        far_h = s.height.from + step.h * s.height.on, far_w = s.width.from + step.w * s.width.on;
        tap = (s.height.tap + step.h * s.height.every) * (int)s.of.axis[2].taps + s.width.tap + step.w * s.width.every;
    }
};

/* The steps of a tile, by one thread. */
template <class Pipe, bool TRANSPOSED>
DEVICE void conv_sm90_produce(Pipe &pipe, const conv_sm90_params &s, const conv_sm90_unit &unit, int rank) {
    const conv_sm90_position at(s, unit.row);
    const int h = s.height.first + at.h * s.height.step, w = s.width.first + at.w * s.width.step;
    conv_sm90_step step(s, unit.first);
#pragma unroll 1
    for (int i = unit.first; i < unit.last; i++, pipe.advance(), step.advance(s)) {
        const conv_sm90_reads<TRANSPOSED> of(s, unit, step);
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        barrier_expect(pipe.full(), Pipe::Y_BYTES + Pipe::X_BYTES);
        rows_copy_matrix<Pipe, TRANSPOSED>(pipe, &s.w, rows_task{ of.lane, of.tap, 0, rank, true }, of.along);
        copy_patches(pipe.x(), &s.x, pipe.full(), of.channel, w, h, at.n, of.far_w, of.far_h);
    }
}

/* The same by the whole warpgroup, element by element: each block all of its own. */
template <class Pipe, bool TRANSPOSED>
DEVICE void conv_sm90_produce_by_hand(Pipe &pipe, const conv_sm90_params &s, const conv_sm90_unit &unit) {
    using Bits = typename Pipe::bits;
    const conv_params &p = s.of;
    const int64_t channels = p.groups * p.channels, lanes = TRANSPOSED ? p.lanes : p.groups * p.lanes;
    conv_sm90_step step(s, unit.first);
#pragma unroll 1
    for (int i = unit.first; i < unit.last; i++, pipe.advance(), step.advance(s)) {
        const conv_sm90_reads<TRANSPOSED> of(s, unit, step);
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        matmul_hand_in<Pipe, Bits, TRANSPOSED>(pipe.y(), Pipe::Y_BYTES, s.hand, of.lane, lanes, of.along,
                                               TRANSPOSED ? channels : p.channels, of.tap);
#pragma unroll 1
        for (int j = thread_index(); j < Pipe::ROWS * 8; j += WARPGROUP) {
            const int row = j / 8, piece = j % 8, channel = of.channel + piece * 8;
            const bool there = unit.row + row < s.rows;
            const conv_sm90_position at(s, there ? unit.row + row : 0);
            const int h = s.height.first + at.h * s.height.step + of.far_h,
                      w = s.width.first + at.w * s.width.step + of.far_w;
            const bool inside = there && h >= 0 && h < p.axis[1].in && w >= 0 && w < p.axis[2].in;
            const Bits *const from =
                (const Bits *)p.from.data + (at.n * p.from.batch + h * p.from.axis[1] + w * p.from.axis[2] + channel);
            Bits x[8];
            packed<uint32_t, 4> words;
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = inside && channel + e < channels ? from[e] : Bits(0);
            __builtin_memcpy(&words, x, sizeof words);
            shared_store_piece(pipe.x() + row * 128 + (piece ^ row % 8) * 16, words);
        }
        copies_see();
        sync_some(CONV_SM90_BARRIER, WARPGROUP);
        if (thread_index() == 0) barrier_expect(pipe.full(), 0);
    }
}

/* The sums of a warpgroup to where they belong, or, if E is f32, to those of a slice. */
template <class T, class E, int N>
DEVICE void conv_sm90_end(const conv_sm90_params &s, const float (&sum)[N / 2], const conv_sm90_unit &unit, int group,
                          uint32_t memory) {
    using Held = matmul_held<E>;
    using Bits = typename E::bits;
    enum { SLICE = Held::BYTES == 4, WIDTH = 128 / Held::BYTES, PIECE = 16 / Held::BYTES, ROWS = 4 };
    const conv_params &p = s.of;
    const int lane = thread_index() % WARP, warp = group * 4 + thread_index() % WARPGROUP / WARP,
              first = unit.row + warp * 16, lanes = (int)p.lanes, own = unit.column + lane % 8 * PIECE;
    const int64_t stride = SLICE ? 1 : p.to.channel, channel = (int64_t)unit.group * lanes,
                  before = (int64_t)unit.slice * p.n * p.axis[1].out * p.axis[2].out;
    const uint32_t turn = memory + warp * 16 * 128;
    Bits *row[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int number = first + lane / 8 + i * 4;
        const conv_sm90_position at(s, number < s.rows ? number : 0);
        const int64_t h = s.height.to + at.h * s.height.apart, w = s.width.to + at.w * s.width.apart,
                      to = SLICE ? (before + (at.n * p.axis[1].out + h) * p.axis[2].out + w) * p.groups * lanes
                                 : at.n * p.to.batch + h * p.to.axis[1] + w * p.to.axis[2];
        row[i] = number < s.rows ? (Bits *)(SLICE ? p.sums : p.to.data) + to + (channel + own) * stride : nullptr;
    }
#pragma unroll
    for (int box = 0; box * WIDTH < N; box++) {
        const int column = unit.column + box * WIDTH, left = lanes - own - box * WIDTH;
        if (column >= lanes) break;
#pragma unroll
        for (int i = 0; i < WIDTH; i += 16) {
            float x[8];
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = sum[(box * WIDTH + i) / 2 + e];
            if (!SLICE && p.bias)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int at = column + i + e / 2 * 8 + lane % 4 * 2 + e % 2;
                    const float bias = at < lanes ? conv_biased<T>(p, channel + at, 0.0f) : 0;
                    x[e / 2 * 4 + e % 2] += bias, x[e / 2 * 4 + e % 2 + 2] += bias;
                }
            Held::put(turn, i, x);
        }
        sync_warp();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const packed<uint32_t, 4> words = shared_load_piece(turn + matmul_row_at(i * 4 + lane / 8, lane % 8));
            if (s.whole) {
                store_piece_if(row[i] != nullptr && left > 0, row[i] + box * WIDTH, words);
            } else if (row[i] != nullptr) {
                Bits y[PIECE];
                __builtin_memcpy(y, &words, sizeof y);
#pragma unroll
                for (int e = 0; e < PIECE; e++)
                    if (e < left) row[i][(box * WIDTH + e) * stride] = y[e];
            }
        }
        sync_warp(); /* the turn is free */
    }
}

template <class T, int ROWS, int N, bool TRANSPOSED> DEVICE void conv_sm90(const conv_sm90_params &s) {
    using Pipe = rows_pipe<T, N, TRANSPOSED, 0, ROWS / 64>;
    static_assert((int)Pipe::STEP == (int)CONV_SM90_STEP, "a step is 64 channels of a tap");
    Pipe pipe = { shared_address(launch_memory()) };
    const int group = thread_index() / WARPGROUP - 1, rank = cluster_rank(),
              begin = (int)block_index() / ROWS_SM90_PAIR, next = (int)block_count() / ROWS_SM90_PAIR;
    launch_next();
    if (thread_index() == 0) {
        tensor_map_fetch(&s.x);
        tensor_map_fetch(&s.w);
        pipe.make_barriers(0);
    }
    sync_warp();
    cluster_meet();
    launch_wait();
    if (group < 0) {
        registers_fewer<40>();
        if (s.hand.data != nullptr) {
#pragma unroll 1
            for (int i = begin; i < s.units; i += next)
                conv_sm90_produce_by_hand<Pipe, TRANSPOSED>(pipe, s, conv_sm90_unit(s, i, rank, ROWS, N));
            pipe.drain();
        } else if (thread_index() == 0) {
#pragma unroll 1
            for (int i = begin; i < s.units; i += next)
                conv_sm90_produce<Pipe, TRANSPOSED>(pipe, s, conv_sm90_unit(s, i, rank, ROWS, N), rank);
            pipe.drain();
        }
    } else {
        registers_more<ROWS == 128 ? 232 : 152>();
#pragma unroll 1
        for (int i = begin; i < s.units; i += next) {
            const conv_sm90_unit unit(s, i, rank, ROWS, N);
            const rows_task task = { unit.column, 0, unit.last - unit.first, rank, true };
            if (unit.row + group * 64 >= s.rows) {
                rows_pass(pipe, task);
                continue;
            }
            float sum[Pipe::SUMS] = {};
            rows_multiply<Pipe, TRANSPOSED>(sum, pipe, task, group);
            if (s.of.slices > 1)
                conv_sm90_end<T, f32, N>(s, sum, unit, group, pipe.memory);
            else
                conv_sm90_end<T, T, N>(s, sum, unit, group, pipe.memory);
        }
    }
    sync_warp();
    cluster_meet(); /* a block stays while the other may still copy to it */
}

#endif
