/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in which one operand has up to 16 lanes, by tensor cores: of the other, whose elements of k are
 * consecutive, each warp copies what it multiplies, by whole lines, to a ring of its own, and waits for nobody before
 * the end.
 *
 * A block has consecutive lanes of the large operand and all of k; it takes 32 lanes at a time, of which its warps take
 * chunks of 128 bytes of each in turns, beside the same chunks of the few lanes. Its warps' sums meet in shared memory
 * while the copies of the next 32 lanes are in flight.
 *
 * NOTES, all of one H200. Floor: the large operand once.
 * - 33.5 MB (n = k = 4096) take 9.9 us for m 1 to 8 and 10.2 for m 16, 117 MB 29.1 to 29.9 (k 14336) and 30.1 to 31.8
 * (n 14336). Launches of a first form of the loop without what this one asks for besides take 9.2, of weights that L2
 * still has 6.3.
 * - Loads to registers instead of a ring: 10.5 to 14. Those that a loop has in flight have one scoreboard in common,
 * whose wait is for all of them.
 * - Rings of 80 to 200 KB in 4 to 8 warps: 9.6 to 9.9; two blocks to an SM 10 to 14, since those of a launch crowd. */
#ifndef TRINE_CUDA_MATMUL_FEW_INL_H
#define TRINE_CUDA_MATMUL_FEW_INL_H

#include <tile/piece.h>
#include <tile/vote.h>

#include "matmul_few.h"
#include "matmul_finish.h"
#include "matmul_mma_feed.h"

/* A piece that does not begin at 16 bytes, or zeros. */
DEVICE packed<uint32_t, 4> matmul_few_gather(bool yes, const uint16_t *from) {
    packed<uint32_t, 4> x = {};
    if (yes)
#pragma unroll
        for (int i = 0; i < 4; i++) x.v[i] = from[2 * i] | (uint32_t)from[2 * i + 1] << 16;
    return x;
}

/* A warp's copies of ROWS lanes of one operand, two neighbouring chunks after the other: a thread has a piece of every
 * fourth. Lanes beyond the operand, and what is beyond k, are 0. */
template <int ROWS, bool WHOLE> struct matmul_few_copies {
    const uint16_t *at; /* the thread's first piece */
    int64_t step;       /* from piece to piece */
    int rows, left;     /* lanes of the operand from the first one on, elements of k */
    int place;          /* in a slot, from where every other one is a flip of bits away */

    DEVICE void begin(const matmul_operand &from, int64_t batch, int64_t first, int64_t end, int64_t depth) {
        const int lane = thread_index() % WARP, along = thread_index() / WARP * 2 * MATMUL_FEW_CHUNK + lane % 8 * 8;
        at = (const uint16_t *)from.data + batch * from.batch + (first + lane / 8) * from.lane + along;
        step = 4 * from.lane, rows = (int)(end - first) - lane / 8, left = (int)depth - along,
        place = matmul_swizzled(lane / 8, lane % 8);
    }
    DEVICE void copy(char *to, int on) {
#pragma unroll
        for (int i = 0; i < ROWS / 4; i++) {
            const bool there = left > 0 && rows > i * 4;
            char *const piece = to + (place ^ i % 2 * 64) + i * 512;
            if constexpr (WHOLE)
                copy_once(piece, at + i * step, there);
            else
                *(packed<uint32_t, 4> *)piece = matmul_few_gather(there, at + i * step);
        }
        at += on, left -= on;
    }
    /* Back by so many elements of k, and on by so many lanes. */
    DEVICE void again(int back, int lanes) { at += lanes / 4 * step - back, rows -= lanes, left += back; }
};

/* A warp's ring. A slot has 32 lanes of the large operand, then the few ones, in rows of 128 bytes. */
template <int FEW, bool WHOLE> struct matmul_few_ring {
    enum { SLOT = MATMUL_FEW_SLOT(FEW), PAIRS = 2 * MATMUL_FEW_WARPS * MATMUL_FEW_CHUNK }; /* of all warps */
    matmul_few_copies<MATMUL_FEW_LANES, WHOLE> many;
    matmul_few_copies<FEW, WHOLE> few;
    char *memory;
    /* of 32 lanes, all and those that are asked for; of the ring, and places of the slots that are filled and read
     * next */
    int chunks, chunk, bytes, in, out;

    DEVICE void begin(const matmul_few_params &p, int64_t batch, int64_t first, int64_t end) {
        many.begin(p.many, batch, first, end, p.k);
        few.begin(p.few, batch, 0, p.count, p.k);
        bytes = p.slots * SLOT, memory = launch_memory() + thread_index() / WARP * bytes;
        chunks = (int)((p.k + PAIRS - 1) / PAIRS) * 2, chunk = in = out = 0;
        keep_address(many.at);
        keep_address(few.at);
    }
    DEVICE void fill() {
        const int on = chunk % 2 == 0 ? (int)MATMUL_FEW_CHUNK : PAIRS - MATMUL_FEW_CHUNK;
        few.copy(memory + in + MATMUL_FEW_LANES * 128, on);
        many.copy(memory + in, on);
        copy_commit();
        in = in + SLOT < bytes ? in + SLOT : 0;
        if (++chunk < chunks) return;
        many.again(chunks / 2 * PAIRS, MATMUL_FEW_LANES);
        few.again(chunks / 2 * PAIRS, 0);
        chunk = 0;
    }
    /* The next chunk, once all lanes' copies are there; the one before is no longer read. */
    DEVICE const char *next() {
        if (bytes == 4 * SLOT)
            copy_wait<2>();
        else
            copy_wait<1>();
        sync_warp();
        const char *const slot = memory + out;
        out = out + SLOT < bytes ? out + SLOT : 0;
        return slot;
    }
};

/* sum += a slot: 32 lanes by FEW, 64 elements of k. */
template <class T, int FEW> DEVICE void matmul_few_multiply(float (&sum)[2][FEW / 8][4], const char *slot) {
    enum { EIGHTS = FEW / 8 };
    const int lane = thread_index() % WARP;
    uint32_t y[EIGHTS][2][4];
#pragma unroll
    for (int i = 0; i < 2 * EIGHTS; i++)
        load_matrices<false>(y[i / 2][i % 2], slot + MATMUL_FEW_LANES * 128 + i / 2 * 1024 +
                                                  matmul_swizzled(lane % 8, i % 2 * 4 + lane / 8));
#pragma unroll
    for (int step = 0; step < 4; step++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t x[4];
            load_matrices<false>(x, slot + half * 2048 + matmul_swizzled(lane % 16, step * 2 + lane / 16));
#pragma unroll
            for (int e = 0; e < EIGHTS; e++)
                warp_multiply(T{}, sum[half][e], x, y[e][step / 2][step % 2 * 2], y[e][step / 2][step % 2 * 2 + 1]);
        }
}

/* The sums of all warps, in their order, of lanes from `first` on, before `end`, to d. */
template <int FEW>
DEVICE void matmul_few_end(const matmul_few_params &p, const matmul_target &to, const float (&sum)[2][FEW / 8][4],
                           int64_t batch, int64_t first, int64_t end) {
    enum { PITCH = MATMUL_FEW_PITCH, LANES = MATMUL_FEW_LANES };
    /* of each warp, each of the few lanes: 32 sums */
    float *const part = (float *)(launch_memory() + MATMUL_FEW_WARPS * p.slots * MATMUL_FEW_SLOT(FEW));
    const int thread = thread_index(), lane = thread % WARP;
#pragma unroll
    for (int i = 0; i < FEW; i++) {
        const int half = i / (FEW / 2), e = i % (FEW / 2);
        part[(thread / WARP * FEW + lane % 4 * 2 + e / 4 * 8 + e % 2) * PITCH + half * 16 + lane / 4 + e % 4 / 2 * 8] =
            sum[half][e / 4][e % 4];
    }
    sync_block();
    const int row = p.swapped ? thread / (LANES / 4) : thread / (FEW / 4); /* a thread has four columns of d */
    const int column = (p.swapped ? thread % (LANES / 4) : thread % (FEW / 4)) * 4;
    if (thread >= FEW * LANES / 4 || first + (p.swapped ? column : row) >= end) return;
    const float *from = part + (p.swapped ? row * PITCH + column : column * PITCH + row);
    float four[1][4] = {};
#pragma unroll
    for (int warp = 0; warp < MATMUL_FEW_WARPS; warp++, from += FEW * PITCH) {
        float next[4];
        if (p.swapped)
            matmul_take(next, from);
        else
#pragma unroll
            for (int i = 0; i < 4; i++) next[i] = from[i * PITCH];
#pragma unroll
        for (int i = 0; i < 4; i++) four[0][i] += next[i];
    }
    const matmul_block at = { batch, p.swapped ? row : first + row, 1, p.swapped ? first + column : column, p.m, p.n };
    if (!p.plain) return matmul_finish(four, to, at);
    if (at.row >= at.m || at.column >= at.n) return;
#pragma unroll
    for (int i = 0; i < 4; i++) four[0][i] *= to.alpha;
    matmul_store_four(four[0], to.type, to.d, at.batch * to.d_batch + at.row * to.d_row + at.column);
}

/* Prefetches what the block reads first into L2 while the previous launch ends, each warp for some of a lane. */
DEVICE void matmul_few_ask(const matmul_few_params &p, int batch, int64_t first, int64_t end) {
    const int64_t lane = first + thread_index() / WARP;
    const int bytes = p.k * 2 < MATMUL_FEW_AHEAD ? (int)p.k * 2 : (int)MATMUL_FEW_AHEAD;
    if (thread_index() % WARP == 0 && lane < end)
        fetch_bytes((const uint16_t *)p.many.data + batch * p.many.batch + lane * p.many.lane, bytes);
}

/* WHOLE: all pieces of 16 bytes begin at such. What the end asks for is brought to shared memory before: parameters
 * come from memory once in a launch, and asked for at the end, behind all copies, they cost 0.5 us of 11. */
template <class T, int FEW, bool WHOLE> DEVICE void matmul_few(const matmul_few_params &p) {
    enum { WORDS = sizeof(matmul_target) / 4 };
    SHARED matmul_target to;
    launch_next();
    const int thread = thread_index(), batch = block_count() == p.right ? 0 : (int)block_index() / (int)p.right;
    const int64_t first = ((int)block_index() - batch * (int)p.right) * p.own,
                  end = first + p.own < p.lanes ? first + p.own : p.lanes;
    if (WHOLE) matmul_few_ask(p, batch, first, end);
    if (thread < WORDS) ((uint32_t *)&to)[thread] = ((const uint32_t *)&p.to)[thread];
    matmul_few_ring<FEW, WHOLE> ring;
    ring.begin(p, batch, first, end);
    launch_wait();
#pragma unroll 1
    for (int i = 0; i < p.slots - 1; i++) ring.fill();
    for (int64_t lane = first; lane < end; lane += MATMUL_FEW_LANES) {
        float sum[2][FEW / 8][4] = {};
#pragma unroll 1
        for (int chunk = 0; chunk < ring.chunks; chunk++) {
            const char *const slot = ring.next();
            ring.fill();
            matmul_few_multiply<T, FEW>(sum, slot);
        }
        if (lane > first) sync_block(); /* the sums before have been read */
        matmul_few_end<FEW>(p, to, sum, batch, lane, end);
    }
    copy_wait<0>();
}

#endif
