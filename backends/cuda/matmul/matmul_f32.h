/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of f32 without tensor cores.
 *
 * A block has a tile of d. Its threads are GROUPS that share k: each sums its own part of k, from slices that it copies
 * to its own ring of stages, lanes consecutive, and waits for none of the others before the end. So a tile may be
 * small, that every SM has one, and an SM still has warps enough. A warp has 32 x 64 of the tile, a thread four blocks
 * of 4 x 4 of that. Sums go along k within a group, one fused multiply-add for each element, and then from group to
 * group.
 *
 * NOTES, all of one H200. Floors: 2 m n k flops over 64 TFLOP/s (measured), and the operands once. A thread reads 16
 * words of shared memory for 64 multiply-adds of a step. - Registers come from two banks, by the parity of their
 * numbers, and an operand that the instruction before had at the same place comes for nothing: so a step goes to and
 * fro along rows, and b's element has to be of the other bank than the sum. By the machine code the compiler sees to
 * that in 9 of 10 products unless something else asks for places of sums: vectors that are stored at the end did, and
 * few registers left. So sums go to shared memory one by one.
 * - Code for edges inside the loop of slices costs, though it is not run: slices that lie in the operands have a loop
 * of their own, where a block has one group; and another where lanes are consecutive and not aligned: 4096 x 4095 x
 * 4096 from 41.7 to 46.4 TFLOP/s. */
#ifndef TRINE_CUDA_MATMUL_F32_H
#define TRINE_CUDA_MATMUL_F32_H

#include <tile/mma.h>

#include "matmul_simt.h"

/* A group's copies of one operand's slices: pieces of 16 bytes where lanes are consecutive and aligned; else single
 * elements, of which a warp takes neighbouring lanes or, where those of k are consecutive, 8 along k by 4 lanes, so
 * that no two meet in a bank. */
template <int LANES, bool ACROSS, int THREADS> struct matmul_f32_copies {
    enum {
        DEPTH = MATMUL_F32_DEPTH,
        PITCH = LANES + MATMUL_F32_PAD,
        SPAN = ACROSS ? LANES / 4 : 8,
        SIZE = ACROSS ? 16 : 4
    };
    enum { STEP = THREADS / SPAN, COUNT = (ACROSS ? (int)DEPTH : LANES) / STEP, HALVES = ACROSS ? 1 : DEPTH / SPAN };
    enum {
        EACH = THREADS < LANES ? LANES / THREADS : 1,
        AT_ONCE = THREADS < LANES ? 1 : THREADS / LANES
    }; /* lanes of a thread, and rows of lanes, one by one */
    static_assert(COUNT * STEP == (ACROSS ? (int)DEPTH : LANES), "a slice is a whole number of copies for each thread");
    const float *at;   /* the thread's first copy of the slice to be copied next */
    int64_t step;      /* from copy to copy */
    int place;         /* in a slice, of the first copy */
    bool wide, inside; /* pieces are aligned; and no lane is beyond the operand */

    /* `lanes`: of the operand, from `first` on. */
    DEVICE matmul_f32_copies(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t lanes,
                             int64_t skip, int thread, bool pieces) {
        wide = !ACROSS || pieces, inside = lanes >= LANES;
        const int lane = !ACROSS ? thread / SPAN : wide ? thread % SPAN * 4 : thread % LANES;
        const int along = !ACROSS ? thread % SPAN : wide ? thread / SPAN : thread / LANES;
        step = !ACROSS ? STEP * from.lane : (wide ? (int)STEP : (int)AT_ONCE) * from.along;
        at = matmul_at<float>(from, tile, first + lane, skip + along);
        place = along * PITCH + lane;
    }

    /* A slice that has all its elements of k, and all lanes; by pieces, if they are wide. */
    template <bool PIECES> DEVICE void copy_whole(float *to) {
        const float *next = at;
        to += place;
#pragma unroll
        for (int row = 0; ACROSS && !PIECES && row < DEPTH; row += AT_ONCE, next += step)
#pragma unroll
            for (int i = 0; i < EACH; i++) copy_bytes<4>(to + row * PITCH + i * THREADS, next + i * THREADS, 4);
#pragma unroll
        for (int q = 0; (!ACROSS || PIECES) && q < COUNT; q++, next += step)
#pragma unroll
            for (int h = 0; h < HALVES; h++)
                copy_bytes<SIZE>(to + (ACROSS ? q * STEP * PITCH : q * STEP + h * SPAN * PITCH), next + h * SPAN, SIZE);
        at = ACROSS ? next : at + DEPTH;
    }

    /* One that has `deep`, and `lanes`; what lies beyond is 0. */
    DEVICE void copy_part(const matmul_operand &from, int64_t lanes, int deep, float *to) {
        const int rest = (lanes < LANES ? (int)lanes : (int)LANES) - place % PITCH, left = deep - place / PITCH;
        const float *next = at;
        to += place;
#pragma unroll 1
        for (int q = 0; !ACROSS && q < COUNT; q++, next += step)
#pragma unroll
            for (int h = 0; h < HALVES; h++)
                copy_one(to + q * STEP + h * SPAN * PITCH, next + h * SPAN, q * STEP < rest && h * SPAN < left);
#pragma unroll 1
        for (int q = 0; ACROSS && wide && q < COUNT; q++, next += step) {
            const int bytes = q * STEP >= left || rest <= 0 ? 0 : rest < 4 ? rest * 4 : 16;
            copy_bytes<SIZE>(to + q * STEP * PITCH, bytes > 0 ? next : nullptr, bytes);
        }
#pragma unroll 1
        for (int row = 0; ACROSS && !wide && row < DEPTH; row += AT_ONCE, next += step)
#pragma unroll
            for (int i = 0; i < EACH; i++)
                copy_one(to + row * PITCH + i * THREADS, next + i * THREADS, row < left && i * THREADS < rest);
        at += DEPTH * from.along;
    }
    static DEVICE void copy_one(float *to, const float *from, bool in) {
        copy_bytes<4>(to, in ? from : nullptr, in ? 4 : 0);
    }
};

/* Slices to be copied: all in the operands, and then by pieces or not; or perhaps beyond their edges. */
enum matmul_f32_way { MATMUL_F32_PIECES, MATMUL_F32_SINGLES, MATMUL_F32_EDGES };
template <matmul_f32_way WAY> struct matmul_f32_copied {
    static constexpr matmul_f32_way way = WAY;
};

template <int ROWS, int COLUMNS, int GROUPS> struct matmul_f32_shape {
    enum { RIGHT = COLUMNS / 64, TEAM = ROWS / 32 * RIGHT * WARP, THREADS = TEAM * GROUPS };
};

/* Sums of all groups to d: a thread adds those of a share of its elements, blocks of 4 x 4 by rows. */
template <int GROUPS, int TEAM>
DEVICE void matmul_f32_end(const matmul_params &p, const matmul_place &at, const float (&sum)[8][8], int row,
                           int column) {
    enum { Q = GROUPS <= 4 ? 4 : 2 };
    const int group = GROUPS > 1 ? thread_index() / TEAM : 0;
    float *const all = (float *)launch_memory() + thread_index() - group * TEAM;
    sync_block();
#pragma unroll
    for (int e = 0; e < 64; e++) all[(group * 64 + e) * TEAM] = sum[e / 32 * 4 + e / 4 % 4][e / 16 % 2 * 4 + e % 4];
    sync_block();
#pragma unroll 1
    for (int quad = group * Q; quad < 16; quad += GROUPS * Q) {
        float four[Q][4] = {};
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
#pragma unroll
            for (int e = 0; e < Q * 4; e++) four[e / 4][e % 4] += all[(g * 64 + quad * 4 + e) * TEAM];
        matmul_finish(four, p.to,
                      { at.result, at.row + row + quad / 8 * 16 + quad % 4, 1, at.column + column + quad / 4 % 2 * 32,
                        p.m, p.n });
    }
}

template <int ROWS, int COLUMNS, int GROUPS, int STAGES, bool A_ACROSS, bool B_ACROSS>
DEVICE void matmul_f32(const matmul_params &p) {
    using shape = matmul_f32_shape<ROWS, COLUMNS, GROUPS>;
    enum {
        DEPTH = MATMUL_F32_DEPTH,
        TEAM = shape::TEAM,
        HALF = DEPTH * (ROWS + MATMUL_F32_PAD),
        STAGE = HALF + DEPTH * (COLUMNS + MATMUL_F32_PAD)
    };
    const int group = GROUPS > 1 ? thread_index() / TEAM : 0, thread = thread_index() - group * TEAM,
              warp = thread / WARP;
    float *const memory = (float *)launch_memory() + group * STAGES * STAGE;
    const matmul_place at = matmul_place_of(p, ROWS, COLUMNS, block_index());
    const int slices = (int)((at.depth + DEPTH * GROUPS - 1) / (DEPTH * GROUPS)); /* of each group */
    const int64_t first = (int64_t)group * slices * DEPTH, deep = at.depth - first;
    const int whole = deep < (int64_t)slices * DEPTH ? (int)(deep < 0 ? 0 : deep / DEPTH) : slices,
              tail = deep < 0 ? 0 : (int)(deep % DEPTH);
    const int row = warp / shape::RIGHT * 32 + matmul_row(), column = warp % shape::RIGHT * 64 + matmul_column();
    const int64_t rows = p.m - at.row, columns = p.n - at.column;
    const bool pieces = (!A_ACROSS || p.a.wide) && (!B_ACROSS || p.b.wide);
    matmul_f32_copies<ROWS, A_ACROSS, TEAM> a(p.a, at, at.row, rows, first, thread, pieces);
    matmul_f32_copies<COLUMNS, B_ACROSS, TEAM> b(p.b, at, at.column, columns, first, thread, pieces);
    const auto copy = [&](int slice, float *to) {
        const int left = slice < whole ? (int)DEPTH : slice == whole ? tail : 0;
        if (a.wide && a.inside && left == DEPTH)
            a.template copy_whole<true>(to);
        else
            a.copy_part(p.a, rows, left, to);
        if (b.wide && b.inside && left == DEPTH)
            b.template copy_whole<true>(to + HALF);
        else
            b.copy_part(p.b, columns, left, to + HALF);
    };
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (slice < slices) copy(slice, memory + slice * STAGE);
        copy_commit();
    }
    copy_wait<STAGES - 2>();
    sync_team(group, TEAM);
    float sum[8][8] = {};
    matmul_step<matmul_float<f32>, ROWS, COLUMNS> step[2]; /* this one, and the next, prefetched from shared memory */
    int from = 0;
    step[0].load(memory + row, memory + HALF + column, 0);
    int slice = 0;
    const auto multiply = [&](auto copied, int end) {
        for (; slice < end; slice++) {
            const int next = from < (STAGES - 1) * STAGE ? from + STAGE : 0,
                      to = from > 0 ? from - STAGE : (STAGES - 1) * STAGE;
#pragma unroll
            for (int along = 0; along < DEPTH; along++) {
                const bool last = along == DEPTH - 1;
                if (last) {
                    copy_wait<STAGES - 2>();
                    sync_team(group, TEAM); /* the next slice is there, and nobody reads this one any more */
                }
                const float *const stage = memory + (last ? next : from);
                step[(along + 1) % 2].load(stage + row, stage + HALF + column, last ? 0 : along + 1);
                step[along % 2].multiply(sum);
                if (along > 0) continue;
                constexpr matmul_f32_way way = decltype(copied)::way;
                if constexpr (way != MATMUL_F32_EDGES) {
                    a.template copy_whole<way == MATMUL_F32_PIECES>(memory + to);
                    b.template copy_whole<way == MATMUL_F32_PIECES>(memory + to + HALF);
                } else if (slice + STAGES - 1 < slices) {
                    copy(slice + STAGES - 1, memory + to);
                }
                copy_commit();
            }
            from = next;
        }
    };
    /* slices that are multiplied while one inside is copied */
    const int ahead = a.inside && b.inside ? whole - (STAGES - 1) : 0;
    if constexpr (GROUPS == 1) multiply(matmul_f32_copied<MATMUL_F32_PIECES>(), pieces ? ahead : 0);
    if constexpr (GROUPS == 1 && (A_ACROSS || B_ACROSS)) multiply(matmul_f32_copied<MATMUL_F32_SINGLES>(), ahead);
    multiply(matmul_f32_copied<MATMUL_F32_EDGES>(), slices);
    matmul_f32_end<GROUPS, TEAM>(p, at, sum, row, column);
}

#endif
