/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in which one operand has up to 8 lanes, by tensor cores: of the other, whose elements of k are consecutive, each piece of 16 bytes goes from memory
 * to the registers of the warp that multiplies it, once.
 *
 * A block has groups of 16 lanes of the large operand and all of k; its warps take chunks of 128 bytes of each lane in turns, so that the block reads lines of lanes from
 * end to end. k is summed in the order in which pieces come: in a product of 16 elements of k a thread's four are neighbours, the same of both operands.
 *
 * NOTES, all of one H200. Floor: the large operand once.
 * - A bare kernel that reads 33.5 MB so, in 128 blocks of 512 threads with 128 KB under way, launched back to back, asking the second-level cache for 32 KB of each block
 * before it waits for the launch ahead, takes 8.0 us, 8.8 without; with 64 KB under way 8.7, in 256 blocks 9.0. By boxes of the copy engine, as tiles for wgmma have
 * it, 9.3 at the least, also where two blocks fit in a processor (9.8 to 14).
 * - This kernel: 10.4 us for m 1, 11.0 for m 8; asking for 16 or 64 KB of each block ahead 10.6 and 10.5, the second-level cache for 128 bytes at a time instead of 256
 * 10.3, for none 11.0; 8 warps with 128 or 160 KB under way 11.5 and 12.3; blocks of one group of 16 lanes 13.1. For 16 few lanes 14.1, where tiles for wgmma take 11.5:
 * each block reads all of those itself. */
#ifndef TRINE_CUDA_MATMUL_FEW_INL_H
#define TRINE_CUDA_MATMUL_FEW_INL_H

#include <tile/piece.h>

#include "matmul_few.h"
#include "matmul_finish.h"

using matmul_piece = packed<uint32_t, 4>;

/* A piece that does not begin at 16 bytes, or zeros. */
DEVICE matmul_piece matmul_few_gather(bool yes, const uint16_t *from) {
    matmul_piece x = {};
    if (yes)
#pragma unroll
        for (int i = 0; i < 4; i++) x.v[i] = from[2 * i] | (uint32_t)from[2 * i + 1] << 16;
    return x;
}

/* A thread's pieces of one operand, chunk after chunk: of lanes thread % 32 / 4 + 8i of each group, two of each. Lanes beyond the operand are its last one, for sums that
 * nobody asks for, or, OFTEN read, not read. */
template <int COUNT, bool OFTEN, bool WHOLE> struct matmul_few_pieces {
    const uint16_t *data, *at[COUNT];
    int64_t pitch;
    int lanes, lane, depth, k, groups;
    bool inside[COUNT];

    DEVICE void place() {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int own = lane + i * 8;
            inside[i] = own < lanes || !OFTEN;
            at[i] = data + (own < lanes ? own : lanes - 1) * pitch;
        }
    }
    DEVICE matmul_few_pieces(const matmul_operand &from, int64_t batch, int64_t lanes, int64_t first, int64_t depth, int groups)
        : data((const uint16_t *)from.data + batch * from.batch), pitch(from.lane), lanes((int)lanes), lane((int)first + thread_index() % WARP / 4),
          depth((int)depth), k(thread_index() / WARP * MATMUL_FEW_CHUNK + thread_index() % 4 * 8), groups(groups) {
        place();
    }

    /* The next chunk; behind the last, zeros. */
    DEVICE void read(matmul_piece (&x)[2 * COUNT]) {
#pragma unroll
        for (int i = 0; i < 2 * COUNT; i++) {
            const int piece = k + i / COUNT * (MATMUL_FEW_CHUNK / 2);
            const bool there = groups > 0 && piece < depth && inside[i % COUNT];
            const uint16_t *const from = at[i % COUNT] + piece;
            if constexpr (WHOLE)
                x[i] = OFTEN ? load_often_if(there, from) : load_once_if(there, from);
            else
                x[i] = matmul_few_gather(there, from);
        }
        k += MATMUL_FEW_WARPS * MATMUL_FEW_CHUNK;
    }
    DEVICE void next_group(bool same) {
        k = thread_index() / WARP * MATMUL_FEW_CHUNK + thread_index() % 4 * 8, groups--;
        if (same) return;
        lane += 16;
        place();
    }
};

/* sum += a chunk of 16 lanes by one of 8 PIECES. */
template <class T, int EIGHTS> DEVICE void matmul_few_multiply(float (&sum)[EIGHTS][4], const matmul_piece (&x)[4], const matmul_piece (&y)[2 * EIGHTS]) {
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int q = 0; q < 4; q += 2) {
            const uint32_t a[4] = { x[half * 2].v[q], x[half * 2 + 1].v[q], x[half * 2].v[q + 1], x[half * 2 + 1].v[q + 1] };
#pragma unroll
            for (int e = 0; e < EIGHTS; e++) warp_multiply(T{}, sum[e], a, y[half * EIGHTS + e].v[q], y[half * EIGHTS + e].v[q + 1]);
        }
}

/* Asks the second-level cache for the first bytes of the block's first lanes while the launch ahead ends. */
DEVICE void matmul_few_ask(const matmul_few_params &p, int64_t batch, int64_t first) {
    const int64_t lane = first + thread_index(), bytes = p.k * 2 < MATMUL_FEW_AHEAD ? p.k * 2 : (int64_t)MATMUL_FEW_AHEAD;
    if (thread_index() < 16 && lane < p.lanes) fetch_bytes((const uint16_t *)p.many.data + batch * p.many.batch + lane * p.many.lane, (int)bytes);
}

/* Four sums of all warps, in their order. */
template <class Take> DEVICE void matmul_few_add(float (&sum)[4], const float *from, int step, const Take &take) {
#pragma unroll
    for (int warp = 0; warp < MATMUL_FEW_WARPS; warp++, from += step) {
        float next[4];
        take(next, from);
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] += next[i];
    }
}

/* WHOLE: all pieces of 16 bytes begin at such. */
template <class T, int FEW, bool WHOLE> DEVICE void matmul_few(const matmul_few_params &p) {
    enum { EIGHTS = FEW / 8, AHEAD = 4, NEAR = 2, PITCH = MATMUL_FEW_PITCH };
    float *const part = (float *)launch_memory(); /* of each group, each warp, each of the few lanes: 16 sums */
    const int64_t batch = block_index() / p.right, first = (block_index() - batch * p.right) * p.groups * 16;
    const int thread = thread_index(), warp = thread / WARP, lane = thread % WARP;
    const int chunks = (int)((p.k + MATMUL_FEW_WARPS * MATMUL_FEW_CHUNK - 1) / (MATMUL_FEW_WARPS * MATMUL_FEW_CHUNK)), steps = chunks * p.groups;
    launch_next();
    if (WHOLE) matmul_few_ask(p, batch, first);
    matmul_few_pieces<2, false, WHOLE> many(p.many, batch, p.lanes, first, p.k, p.groups);
    matmul_few_pieces<EIGHTS, true, WHOLE> few(p.few, batch, p.count, 0, p.k, p.groups);
    launch_wait();
    matmul_piece x[AHEAD][4], y[NEAR][2 * EIGHTS];
    int many_left = chunks, few_left = chunks, left = chunks;
    const auto read_many = [&](int slot) {
        many.read(x[slot]);
        if (--many_left == 0) many.next_group(false), many_left = chunks;
    };
    const auto read_few = [&](int slot) {
        few.read(y[slot]);
        if (--few_left == 0) few.next_group(true), few_left = chunks;
    };
    float sum[EIGHTS][4] = {};
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        if (i < NEAR) read_few(i);
        read_many(i);
    }
    float *to = part + (warp * FEW + lane % 4 * 2) * PITCH + lane / 4;
    for (int step = 0; step < steps; step += AHEAD)
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            matmul_few_multiply<T>(sum, x[i], y[i % NEAR]);
            read_few(i % NEAR);
            read_many(i);
            if (--left > 0 || step + i >= steps) continue;
            left = chunks;
#pragma unroll
            for (int e = 0; e < EIGHTS * 4; e++) to[(e / 4 * 8 + e % 2) * PITCH + e % 4 / 2 * 8] = sum[e / 4][e % 4], sum[e / 4][e % 4] = 0;
            to += MATMUL_FEW_WARPS * FEW * PITCH;
        }
    sync_block();
    const int across = p.swapped ? 4 : EIGHTS * 2, units = (p.swapped ? FEW : 16) * across; /* of a group's part of d, in fours of columns */
    for (int unit = thread; unit < units * p.groups; unit += MATMUL_FEW_THREADS) {
        const int group = unit / units, in = unit - group * units, row = in / across, column = in % across * 4;
        const float *const from = part + group * MATMUL_FEW_WARPS * FEW * PITCH + (p.swapped ? row * PITCH + column : column * PITCH + row);
        float four[1][4] = {};
        if (p.swapped)
            matmul_few_add(four[0], from, FEW * PITCH, [](float(&x)[4], const float *at) { matmul_take(x, at); });
        else
            matmul_few_add(four[0], from, FEW * PITCH, [](float(&x)[4], const float *at) {
#pragma unroll
                for (int i = 0; i < 4; i++) x[i] = at[i * PITCH];
            });
        const int64_t many_first = first + group * 16;
        matmul_finish(four, p.to, { batch, p.swapped ? row : many_first + row, 1, p.swapped ? many_first + column : column, p.m, p.n });
    }
}

#endif
